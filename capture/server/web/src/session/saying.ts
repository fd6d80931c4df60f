// What an agent says now, before any of it is stored: its text so far, as far as this page heard it.

/** The text; `cut` when its beginning is not here, `missed` when a piece may be missing after it. */
export type Saying = { text: string; cut: boolean; missed?: boolean };

/** What is shown of it, characters. */
const MOST = 8_000;
const FENCE = /^ {0,3}(?:`{3,}|~{3,})/gm;

/** Nothing; `whole`: what comes next is a beginning. */
export const silent = (whole: boolean): Saying => ({ text: "", cut: !whole });

/** Pieces may have been missed: what comes next does not go on from here. */
export const broken = (saying: Saying): Saying => ({ ...saying, missed: true });

/** Adds a piece. What is too long loses its beginning, up to the end of a line where there is one. */
export function heard({ text, cut, missed = false }: Saying, piece: string): Saying {
  if (missed) return heard(silent(false), piece);
  if (text === "" && cut) return { text: fromWord(piece), cut };
  const all = text + piece;
  if (all.length <= MOST) return { text: all, cut };
  const line = all.indexOf("\n", all.length - MOST * 0.75);
  const at = line < 0 ? Math.round(all.length - MOST * 0.75) : line + 1;
  // Inside a fence the rest is still code.
  const fence = (all.slice(0, at).match(FENCE)?.length ?? 0) % 2 === 1 ? "```\n" : "";
  return { text: fence + all.slice(at), cut: true };
}

/** A text from its first whole word. */
function fromWord(text: string): string {
  const at = text.search(/\s/);
  return at < 0 ? text : text.slice(at + 1);
}
