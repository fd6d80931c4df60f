// Makes texts of agents safe to read: characters that are invisible, or that control the terminal or the writing
// direction, become visible escapes.

/** A part of a text: unchanged, an escape for a character, or (`exact` only) letters outside ASCII. */
export type Part = { text: string; escaped: boolean; foreign?: boolean };

/** How much is escaped: `exact` for text a user decides on; `reading` keeps emoji sequences and no-break spaces. */
export type Strictness = "exact" | "reading";

// Blank letters and fillers that Unicode does not classify as formatting.
const BLANK = "\\u{34F}\\u{115F}\\u{1160}\\u{17B4}\\u{17B5}\\u{2800}\\u{3164}\\u{FFA0}\\u{E0100}-\\u{E01EF}";
const HIDDEN = `[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cn}\\p{Cs}${BLANK}]`;
const READING = new RegExp(`(?![\\n\\t])${HIDDEN}`, "u");
const EXACT = new RegExp(`(?![\\n\\t])(?:${HIDDEN}|(?! )\\p{Zs}|[\\u{180B}-\\u{180F}\\u{FE00}-\\u{FE0F}])`, "u");
const FOREIGN = /[^\x00-\x7E]/u;
const PICTURE = /\p{Extended_Pictographic}|[\u{1F3FB}-\u{1F3FF}\u{FE0F}]/u;
const JOINER = "\u200D";

/** The escape of one character. */
export function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code === 0x1b) return "\\e";
  if (code === 0x0d) return "\\r";
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

/** Splits a text into unchanged parts and escapes. */
export function parts(text: string, strictness: Strictness = "reading"): Part[] {
  const pattern = strictness === "exact" ? EXACT : READING;
  const exact = strictness === "exact";
  if (!pattern.test(text) && !(exact && FOREIGN.test(text))) return text === "" ? [] : [{ text, escaped: false }];
  const found: Part[] = [];
  const push = (piece: string, escaped: boolean, foreign: boolean): void => {
    const last = found.at(-1);
    if (last !== undefined && last.escaped === escaped && (last.foreign ?? false) === foreign) last.text += piece;
    else found.push(foreign ? { text: piece, escaped, foreign } : { text: piece, escaped });
  };
  const characters = [...text];
  characters.forEach((character, index) => {
    const joins = strictness === "reading" && character === JOINER && PICTURE.test(characters[index - 1] ?? "") && PICTURE.test(characters[index + 1] ?? "");
    const lineEnd = character === "\r" && characters[index + 1] === "\n" && strictness === "reading";
    if (lineEnd) return;
    const hidden = pattern.test(character) && !joins;
    push(hidden ? escaped(character) : character, hidden, exact && !hidden && FOREIGN.test(character));
  });
  return found;
}

/** The text with escapes, as one string: for attributes, titles and file names. */
export function visible(text: string, strictness: Strictness = "reading"): string {
  return parts(text, strictness)
    .map((part) => part.text)
    .join("");
}

// Letters of scripts that have the shapes of Latin letters, and those that do.
const KIN = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u;
const TWIN =
  /[\u{391}\u{392}\u{395}-\u{397}\u{399}\u{39A}\u{39C}\u{39D}\u{39F}\u{3A1}\u{3A4}\u{3A5}\u{3A7}\u{3BD}\u{3BF}\u{405}\u{406}\u{408}\u{410}\u{412}\u{415}\u{41A}\u{41C}-\u{41E}\u{420}-\u{423}\u{425}\u{430}\u{435}\u{43E}\u{440}\u{441}\u{443}\u{445}\u{455}\u{456}\u{458}\u{4BB}\u{4CF}\u{501}\u{51B}\u{51D}\u{570}\u{578}\u{57D}\u{585}]/u;
// Wide and mathematical letters and digits, and signs like `-`, `/` and `.`.
const GUISE = /[\u{FF10}-\u{FF19}\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\u{1D400}-\u{1D7FF}\u{2010}\u{2011}\u{2024}\u{2044}\u{2212}\u{2215}\u{29F8}]/gu;

/** Number of characters that pass for ASCII: letters of another script in a word with Latin ones, or in a text in which
 * all letters of these scripts look like Latin ones. */
export function lookalikes(text: string): number {
  const kin = [...text].filter((character) => KIN.test(character));
  const count = text.match(GUISE)?.length ?? 0;
  if (kin.every((character) => TWIN.test(character))) return count + kin.length;
  const mixed = (text.match(/[\p{L}\p{M}\p{N}_]+/gu) ?? []).filter((word) => /[A-Za-z]/.test(word));
  return count + mixed.reduce((sum, word) => sum + [...word].filter((character) => KIN.test(character)).length, 0);
}

/** Facts about a text for a user who decides about it. */
export type Census = { characters: number; lines: number; hidden: number; foreign: number };

/** Counts hidden characters, and visible ones outside ASCII. */
export function census(text: string): Census {
  let characters = 0;
  let lines = text === "" ? 0 : 1;
  let hidden = 0;
  let foreign = 0;
  for (const character of text) {
    characters += 1;
    if (character === "\n") lines += 1;
    if (EXACT.test(character)) hidden += 1;
    else if ((character.codePointAt(0) ?? 0) > 0x7e) foreign += 1;
  }
  return { characters, lines, hidden, foreign };
}
