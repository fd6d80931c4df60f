// Texts of agents on the page: always text nodes, with escapes for what cannot be seen.

import { BOLD, DIM, INVERSE, ITALIC, UNDERLINE, runs, type Style } from "../text/ansi";
import { parts, type Strictness } from "../text/visible";

/** A text with visible escapes. */
export function Shown({ text, strictness = "reading" }: { text: string; strictness?: Strictness }) {
  const found = parts(text, strictness);
  if (found.length === 1 && found[0]?.escaped === false && found[0].foreign !== true) return <>{found[0].text}</>;
  return (
    <>
      {found.map((part, index) =>
        part.escaped ? (
          <span key={index} class="escape" title="A character that cannot be seen">
            {part.text}
          </span>
        ) : part.foreign === true ? (
          <span key={index} class="foreign" title={codes(part.text)}>
            {part.text}
          </span>
        ) : (
          part.text
        ),
      )}
    </>
  );
}

/** A sentence of the server: what stands between backticks is code. */
export function Ticked({ text }: { text: string }) {
  const pieces = text.split("`");
  // Of one that is not closed, the sign itself is shown.
  if (pieces.length % 2 === 0) return <Shown text={text} />;
  return (
    <>
      {pieces.map((piece, index) =>
        index % 2 === 0 ? (
          <Shown key={index} text={piece} />
        ) : (
          <code key={index} class="ticked">
            <Shown text={piece} strictness="exact" />
          </code>
        ),
      )}
    </>
  );
}

const codes = (text: string): string =>
  [...text]
    .slice(0, 12)
    .map((character) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`)
    .join(" ");

/** Class names of a style of a terminal: colours below 16 follow the theme. */
export function classes({ fg, bg, flags }: Style): string {
  const inverse = (flags & INVERSE) !== 0;
  const [front, back] = inverse ? [bg, fg] : [fg, bg];
  const names: string[] = [];
  if (typeof front === "number" && front < 16) names.push(`f${front}`);
  else if (front === null && inverse) names.push("fi");
  if (typeof back === "number" && back < 16) names.push(`b${back}`);
  else if (back === null && inverse) names.push("bi");
  if ((flags & BOLD) !== 0) names.push("bold");
  if ((flags & DIM) !== 0) names.push("dim");
  if ((flags & ITALIC) !== 0) names.push("italic");
  if ((flags & UNDERLINE) !== 0) names.push("underline");
  return names.join(" ");
}

/** Colours that no class has, for the style property. */
export function colours({ fg, bg, flags }: Style): { color?: string; backgroundColor?: string } | undefined {
  const [front, back] = (flags & INVERSE) !== 0 ? [bg, fg] : [fg, bg];
  const color = exact(front);
  const backgroundColor = exact(back);
  if (color === null && backgroundColor === null) return undefined;
  return { ...(color === null ? {} : { color }), ...(backgroundColor === null ? {} : { backgroundColor }) };
}

function exact(colour: number | string | null): string | null {
  if (colour === null || (typeof colour === "number" && colour < 16)) return null;
  if (typeof colour === "string") return /^#[0-9a-fA-F]{6}$/.test(colour) ? colour : null;
  if (colour >= 232) {
    const level = 8 + (colour - 232) * 10;
    return `rgb(${level},${level},${level})`;
  }
  const step = (value: number): number => (value === 0 ? 0 : 55 + value * 40);
  const cube = colour - 16;
  return `rgb(${step(Math.floor(cube / 36))},${step(Math.floor(cube / 6) % 6)},${step(cube % 6)})`;
}

/** Output of a program, with its colours. */
export function Output({ text }: { text: string }) {
  return (
    <>
      {runs(text).map((run, index) => {
        const names = classes(run);
        const style = colours(run);
        if (names === "" && style === undefined) return <Shown key={index} text={run.text} />;
        return (
          <span key={index} class={names} {...(style === undefined ? {} : { style })}>
            <Shown text={run.text} />
          </span>
        );
      })}
    </>
  );
}
