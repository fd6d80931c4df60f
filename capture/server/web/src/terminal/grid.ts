// The screen of a terminal, assembled from patches of rows.

import type { Run } from "../text/ansi";

/** A run of text in the wire format: text, foreground, background, flags. */
export type WireRun = [string, (number | string | null)?, (number | string | null)?, number?];
export type Cursor = { row: number; column: number } | null;
export type Row = Run[];
export type Grid = { columns: number; rows: number; cursor: Cursor; title: string; alternate: boolean; scrolled: number; skipped: number; lines: Row[] };

/** A message of the server with changed rows. */
export type GridMessage = {
  type: "grid";
  rev: number;
  cols: number;
  rows: number;
  cursor: { row: number; col: number; visible: boolean } | null;
  alternate?: boolean;
  title?: string | null;
  /** Number of lines that have scrolled off so far. */
  scrolled?: number;
  /** Number of bytes skipped since the screen was drawn, after which it may be wrong. */
  skipped_bytes?: number;
  lines: Record<string, WireRun[]>;
};

/** Converts a row from the wire format. */
export const rowOf = (runs: WireRun[]): Row => runs.map(([text, fg = null, bg = null, flags = 0]) => ({ text, fg, bg, flags }));

/** The screen after a message; unchanged rows remain the same objects. */
export function patched(before: Grid | null, message: GridMessage): Grid {
  const lines = Array.from({ length: message.rows }, (_, index) => {
    const fresh = message.lines[String(index)];
    return fresh === undefined ? (before?.lines[index] ?? []) : rowOf(fresh);
  });
  const { cursor } = message;
  return {
    columns: message.cols,
    rows: message.rows,
    cursor: cursor?.visible ? { row: cursor.row, column: cursor.col } : null,
    title: message.title ?? before?.title ?? "",
    alternate: message.alternate ?? before?.alternate ?? false,
    scrolled: message.scrolled ?? before?.scrolled ?? 0,
    skipped: message.skipped_bytes ?? 0,
    lines,
  };
}

/** Lines above the screen: numbers `from` up to `to`, and the oldest available. */
export type Scrollback = { from: number; to: number; oldest: number; lines: Row[] };

/** Joins new lines to the known ones; if that would leave a gap, the new lines replace them. */
export function joined(known: Scrollback | null, message: { from: number; oldest?: number; lines: WireRun[][] }): Scrollback {
  const lines = message.lines.map(rowOf);
  const fresh = { from: message.from, to: message.from + lines.length, oldest: message.oldest ?? 0, lines };
  if (known === null || known.lines.length === 0 || fresh.to < known.from || fresh.from > known.to) return fresh;
  const before = lines.slice(0, Math.max(0, known.from - fresh.from));
  const after = lines.slice(Math.max(0, known.to - fresh.from));
  return {
    from: Math.min(known.from, fresh.from),
    to: Math.max(known.to, fresh.to),
    oldest: fresh.oldest,
    lines: [...before, ...known.lines, ...(fresh.to > known.to ? after : [])],
  };
}

const NAMED: Record<string, string> = {
  Enter: "enter",
  Escape: "esc",
  Backspace: "backspace",
  Delete: "delete",
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
  Home: "home",
  End: "end",
  PageUp: "pgup",
  PageDown: "pgdn",
  Insert: "insert",
  Tab: "tab",
};

type Pressed = Pick<KeyboardEvent, "key" | "ctrlKey" | "altKey" | "metaKey" | "shiftKey">;

/** The server's name for a key; `null` if the browser turns it into text or handles it itself. */
export function keyOf({ key, ctrlKey, altKey, metaKey, shiftKey }: Pressed): string | null {
  if (metaKey) return null;
  if (key === "Tab" && shiftKey) return "shift-tab";
  const named = NAMED[key];
  if (named !== undefined) return named;
  if (/^F([1-9]|1[0-2])$/.test(key)) return ctrlKey || altKey ? null : key.toLowerCase();
  if (ctrlKey && !altKey && /^[a-z]$/i.test(key)) {
    const letter = key.toLowerCase();
    // With Shift, copying and pasting remain the browser's.
    return shiftKey ? null : letter === "v" ? null : `ctrl-${letter}`;
  }
  return null;
}
