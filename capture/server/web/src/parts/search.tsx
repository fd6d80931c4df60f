// The part of a text that matches a search.

import type { Snippet } from "../api/routes";
import { colourless } from "../text/ansi";
import { Shown } from "./text";

/** A snippet with its matches marked; its ranges count bytes of UTF-8. */
export function Highlighted({ snippet }: { snippet: Snippet }) {
  return (
    <>
      {pieces(snippet).map((piece, index) =>
        piece.marked ? (
          <mark key={index}>
            <Shown text={piece.text} />
          </mark>
        ) : (
          <Shown key={index} text={piece.text} />
        ),
      )}
    </>
  );
}

/** Splits a snippet at its ranges, and leaves out what set colours. */
export function pieces({ text, highlights }: Snippet): { text: string; marked: boolean }[] {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  const found: { text: string; marked: boolean }[] = [];
  const push = (part: Uint8Array, marked: boolean): void => {
    const text = colourless(decoder.decode(part));
    if (text !== "") found.push({ text, marked });
  };
  let from = 0;
  for (const [start, end] of highlights as [number, number][]) {
    if (start < from || end > bytes.length) continue;
    push(bytes.subarray(from, start), false);
    push(bytes.subarray(start, end), true);
    from = end;
  }
  push(bytes.subarray(from), false);
  return found;
}
