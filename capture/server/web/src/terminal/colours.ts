// The displayed colours of a program's output, with enough contrast for every character in both themes.

import { DIM, INVERSE, type Style } from "../text/ansi";

type Rgb = readonly [number, number, number];
type Palette = { ground: Rgb; text: Rgb; front: readonly Rgb[]; back: readonly Rgb[] };

const rgb = (hex: string): Rgb => [Number.parseInt(hex.slice(1, 3), 16), Number.parseInt(hex.slice(3, 5), 16), Number.parseInt(hex.slice(5, 7), 16)];
const list = (text: string): Rgb[] => text.split(" ").map(rgb);

/** We report a black background to programs, so a terminal is dark in both themes. */
const DARK: Palette = {
  ground: rgb("#0c0d10"),
  text: rgb("#d9dbe1"),
  front: list("#7f8592 #ff8078 #6fd09d #e3bd5c #8fa6ff #d698e6 #6ccbd6 #c9ccd4 #969ba8 #ffa099 #93e3b8 #f2d587 #b0c0ff #e6b8f1 #97e0e8 #ffffff"),
  back: list("#2a2d34 #6b211c #16492f #5a4310 #25357c #55265f #134850 #43474f #43474f #6b211c #16492f #5a4310 #25357c #55265f #134850 #5b5f6b"),
};
/** The output of a tool is part of the page and follows its theme. */
const LIGHT: Palette = {
  ground: rgb("#f0f0f3"),
  text: rgb("#191b20"),
  front: list("#3a3d45 #b42318 #15724a #7d5500 #2b4fc2 #8a3a9c #0b6b78 #5b5f6b #5f636e #a91d14 #116640 #765000 #2444ab #7b3190 #085e6a #24262b"),
  back: list("#d9dbe1 #fbd5d2 #cdeedd #f7e5b5 #d3dcff #f0d6f6 #c9ecf0 #e3e4e9 #e3e4e9 #fbd5d2 #cdeedd #f7e5b5 #d3dcff #f0d6f6 #c9ecf0 #ffffff"),
};

/** Minimum contrast between a character and its background; WCAG requires 4.5. */
export const CONTRAST = 4.6;
const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast of two colours as WCAG defines it, 1 to 21. */
export function contrast(left: Rgb, right: Rgb): number {
  const [a, b] = [luminance(left), luminance(right)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

const mixed = (from: Rgb, to: Rgb, part: number): Rgb =>
  [0, 1, 2].map((index) => Math.round((from[index] ?? 0) + ((to[index] ?? 0) - (from[index] ?? 0)) * part)) as unknown as Rgb;

/** The colour, or the nearest one towards white or black that is readable on a background. */
function readable(colour: Rgb, ground: Rgb): Rgb {
  if (contrast(colour, ground) >= CONTRAST) return colour;
  const towards = contrast(WHITE, ground) >= contrast(BLACK, ground) ? WHITE : BLACK;
  for (let part = 0.1; part < 1; part += 0.1) {
    const tried = mixed(colour, towards, part);
    if (contrast(tried, ground) >= CONTRAST) return tried;
  }
  return towards;
}

/** A colour by number: 16 of the palette, 216 of a cube, 24 greys. */
function numbered(colour: number, palette: readonly Rgb[]): Rgb {
  if (colour < 16) return palette[colour] ?? WHITE;
  const grey = 8 + (colour - 232) * 10;
  if (colour >= 232) return [grey, grey, grey];
  const step = (value: number): number => (value === 0 ? 0 : 55 + value * 40);
  return [step(Math.floor((colour - 16) / 36)), step(Math.floor((colour - 16) / 6) % 6), step((colour - 16) % 6)];
}

function known(colour: Style["fg"], palette: readonly Rgb[]): Rgb | null {
  if (colour === null) return null;
  if (typeof colour === "number") return numbered(colour, palette);
  return /^#[0-9a-fA-F]{6}$/.test(colour) ? rgb(colour) : null;
}

/** The foreground and background of a style on a palette; the background is `null` if it is the palette's own. */
export function shades({ fg, bg, flags }: Style, palette: Palette, drawn = false): { front: Rgb; back: Rgb | null } {
  let front: Rgb;
  let back: Rgb | null;
  if ((flags & INVERSE) !== 0) {
    front = known(bg, palette.back) ?? palette.ground;
    back = known(fg, palette.front) ?? palette.text;
  } else {
    front = known(fg, palette.front) ?? palette.text;
    back = known(bg, palette.back);
  }
  const ground = back ?? palette.ground;
  if ((flags & DIM) !== 0) front = mixed(front, ground, 0.3);
  return { front: drawn ? front : readable(front, ground), back };
}

/** Blanks and blocks, which keep their colours because they form pictures. */
const DRAWN = /^[\s\u2580-\u259f\u{1fb00}-\u{1fbff}]*$/u;

export type Colours = { color?: string; backgroundColor?: string };
const found = new Map<string, Colours | null>();

/** The colours of a style for the style property, for both themes; the browser selects one. */
export function colours(style: Style, text: string): Colours | null {
  if (style.fg === null && style.bg === null && (style.flags & (DIM | INVERSE)) === 0) return null;
  const drawn = DRAWN.test(text);
  const key = `${style.fg} ${style.bg} ${style.flags & (DIM | INVERSE)} ${drawn}`;
  const before = found.get(key);
  if (before !== undefined) return before;
  if (found.size > 4_000) found.clear();
  const [light, dark] = [shades(style, LIGHT, drawn), shades(style, DARK, drawn)];
  const css = ([red, green, blue]: Rgb): string => `rgb(${red} ${green} ${blue})`;
  const both = (left: Rgb, right: Rgb): string => `light-dark(${css(left)}, ${css(right)})`;
  const answer: Colours = { color: both(light.front, dark.front) };
  if (light.back !== null && dark.back !== null) answer.backgroundColor = both(light.back, dark.back);
  found.set(key, answer);
  return answer;
}

export const PALETTES = { dark: DARK, light: LIGHT };
