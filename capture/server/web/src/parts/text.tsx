// Texts of agents on the page: always text nodes, with escapes for invisible characters.

import type { ComponentChildren } from "preact";
import { colours } from "../terminal/colours";
import { BOLD, INVERSE, ITALIC, runs, type Style, UNDERLINE } from "../text/ansi";
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

/** A sentence of the server; text between backticks is code. `Plain` shows the rest. */
export function Ticked({ text, Plain = Shown }: { text: string; Plain?: (props: { text: string }) => ComponentChildren }) {
  const pieces = text.split("`");
  // Unpaired backticks are shown as they are.
  if (pieces.length % 2 === 0) return <Plain text={text} />;
  return (
    <>
      {pieces.map((piece, index) =>
        index % 2 === 0 ? (
          <Plain key={index} text={piece} />
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

/** Class names for a terminal style: `f1` and `b1` name the second of the 16 colours. */
export function classes({ fg, bg, flags }: Style): string {
  const inverse = (flags & INVERSE) !== 0;
  const [front, back] = inverse ? [bg, fg] : [fg, bg];
  const names: string[] = [];
  if (typeof front === "number" && front < 16) names.push(`f${front}`);
  if (typeof back === "number" && back < 16) names.push(`b${back}`);
  if ((flags & BOLD) !== 0) names.push("bold");
  if ((flags & ITALIC) !== 0) names.push("italic");
  if ((flags & UNDERLINE) !== 0) names.push("underline");
  return names.join(" ");
}

/** Output of a program, with its colours. */
export function Output({ text }: { text: string }) {
  return (
    <>
      {runs(text).map((run, index) => {
        const names = classes(run);
        const style = colours(run, run.text);
        if (names === "" && style === null) return <Shown key={index} text={run.text} />;
        return (
          <span key={index} class={names} {...(style === null ? {} : { style })}>
            <Shown text={run.text} />
          </span>
        );
      })}
    </>
  );
}
