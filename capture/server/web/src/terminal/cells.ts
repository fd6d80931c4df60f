// Characters on a terminal's grid: the number of cells of each, and which need a fixed width.

import { CELL } from "./screen";

const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f202}\u{1f210}-\u{1f23b}\u{1f240}-\u{1f248}\u{20000}-\u{3fffd}]|(?![\u{1f1e6}-\u{1f1ff}])\p{Emoji_Presentation}/u;
const NONE = /[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]/u;

/** The number of cells of a character, as terminals count them: 0, 1 or 2. */
export const cells = (character: string): 0 | 1 | 2 => (character < "\u0300" ? 1 : NONE.test(character) ? 0 : WIDE.test(character) ? 2 : 1);

/** A part of a line: ordinary text, or one character with a fixed width. */
export type Held = { text: string; cells: number | null };

/** Splits a text into ordinary text and characters that need a fixed width; `fits` reports whether the font draws a
 * character as wide as its cells. */
export function held(text: string, fits: (character: string, cells: number) => boolean = fitsFont): Held[] {
  if (/^[\x20-\x7e]*$/.test(text)) return [{ text, cells: null }];
  const found: Held[] = [];
  for (const character of text) {
    const last = found.at(-1);
    const count = cells(character);
    if (count === 0 && last !== undefined) last.text += character;
    else if (character <= "~" || fits(character, count)) {
      if (last !== undefined && last.cells === null) last.text += character;
      else found.push({ text: character, cells: null });
    } else found.push({ text: character, cells: Math.max(1, count) });
  }
  return found;
}

const SIZE = 100;
const known = new Map<string, boolean>();
let canvas: CanvasRenderingContext2D | null | undefined;
let family = "";

/** Whether the terminal's font, or its fallback, draws a character as wide as its cells. */
function fitsFont(character: string, count: number): boolean {
  if (count !== 1) return false;
  const before = known.get(character);
  if (before !== undefined) return before;
  if (canvas === undefined) {
    canvas = document.createElement("canvas").getContext("2d");
    family = getComputedStyle(document.documentElement).getPropertyValue("--mono");
    if (canvas !== null) canvas.font = `${SIZE}px ${family}`;
  }
  if (canvas === null) return true;
  const cell = canvas.measureText("0").width || CELL * SIZE;
  const fits = Math.abs(canvas.measureText(character).width - cell) < cell / 100;
  known.set(character, fits);
  return fits;
}
