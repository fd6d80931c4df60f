// Colours of terminal output (SGR). All other escape sequences stay in the text and are displayed as escapes by the
// caller.

/** Style of a run of text: colours are `null`, 0 to 255, or `#rrggbb`. */
export type Style = {
  fg: number | string | null;
  bg: number | string | null;
  flags: number;
};
export type Run = { text: string } & Style;

export const BOLD = 1;
export const DIM = 2;
export const ITALIC = 4;
export const UNDERLINE = 8;
export const INVERSE = 16;

const PLAIN: Style = { fg: null, bg: null, flags: 0 };
const SGR = /\x1b\[([0-9;:]*)m/g;

/** A text without colours. A search index may have removed the escape character itself. */
export const colourless = (text: string): string => text.replace(/\x1b\[[0-9;:]*m|\[\d[\d;:]*m(?!\])/g, "");

/** Splits a text where its colours change. */
export function runs(text: string): Run[] {
  if (!text.includes("\x1b[")) return text === "" ? [] : [{ text, ...PLAIN }];
  const found: Run[] = [];
  let style = PLAIN;
  let from = 0;
  for (const match of text.matchAll(SGR)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index), ...style });
    style = applied(style, match[1] ?? "");
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from), ...style });
  return found;
}

function applied(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  const style = { ...before };
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) Object.assign(style, PLAIN);
    else if (code === 1) style.flags |= BOLD;
    else if (code === 2) style.flags |= DIM;
    else if (code === 3) style.flags |= ITALIC;
    else if (code === 4) style.flags |= UNDERLINE;
    else if (code === 7) style.flags |= INVERSE;
    else if (code === 22) style.flags &= ~(BOLD | DIM);
    else if (code === 23) style.flags &= ~ITALIC;
    else if (code === 24) style.flags &= ~UNDERLINE;
    else if (code === 27) style.flags &= ~INVERSE;
    else if (code >= 30 && code <= 37) style.fg = code - 30;
    else if (code === 39) style.fg = null;
    else if (code >= 40 && code <= 47) style.bg = code - 40;
    else if (code === 49) style.bg = null;
    else if (code >= 90 && code <= 97) style.fg = code - 82;
    else if (code >= 100 && code <= 107) style.bg = code - 92;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(index + 1));
      if (code === 38) style.fg = colour;
      else style.bg = colour;
      index += used;
    }
  }
  return style;
}

function extended(codes: number[]): [number | string | null, number] {
  const byte = (value: number | undefined): number => Math.min(255, Math.max(0, Math.trunc(value ?? 0) || 0));
  if (codes[0] === 5) return [byte(codes[1]), 2];
  if (codes[0] !== 2) return [null, codes.length];
  const hex = [codes[1], codes[2], codes[3]].map((value) => byte(value).toString(16).padStart(2, "0"));
  return [`#${hex.join("")}`, 4];
}
