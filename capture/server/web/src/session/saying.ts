// The text an agent is currently writing, before any of it is stored, to the extent this page has received it.

/** The text; `cut` if its beginning is missing, `missed` if a piece after it may be missing. */
export type Saying = { text: string; cut: boolean; missed?: boolean };

/** Maximum number of characters shown. */
const MOST = 8_000;
const FENCE = /^ {0,3}(?:`{3,}|~{3,})/gm;

/** The empty text; `whole`: the next piece is a beginning. */
export const silent = (whole: boolean): Saying => ({ text: "", cut: !whole });

/** Pieces may have been lost, so the next piece does not continue this text. */
export const broken = (saying: Saying): Saying => ({ ...saying, missed: true });

/** Adds a piece. A text that becomes too long loses its beginning, up to the end of a line if there is one. */
export function heard({ text, cut, missed = false }: Saying, piece: string): Saying {
  if (missed) return heard(silent(false), piece);
  if (text === "" && cut) return { text: fromWord(piece), cut };
  const all = text + piece;
  if (all.length <= MOST) return { text: all, cut };
  const line = all.indexOf("\n", all.length - MOST * 0.75);
  const at = line < 0 ? Math.round(all.length - MOST * 0.75) : line + 1;
  // Inside a fence, the rest is still code.
  const fence = (all.slice(0, at).match(FENCE)?.length ?? 0) % 2 === 1 ? "```\n" : "";
  return { text: fence + all.slice(at), cut: true };
}

/** The text from its first complete word. */
function fromWord(text: string): string {
  const at = text.search(/\s/);
  return at < 0 ? text : text.slice(at + 1);
}
