// The part of a text that matches a search.

import type { Snippet } from "../api/routes";
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

/** Splits a snippet at its ranges. */
export function pieces({ text, highlights }: Snippet): { text: string; marked: boolean }[] {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  const found: { text: string; marked: boolean }[] = [];
  let from = 0;
  for (const [start, end] of highlights as [number, number][]) {
    if (start < from || end > bytes.length) continue;
    if (start > from) found.push({ text: decoder.decode(bytes.subarray(from, start)), marked: false });
    found.push({ text: decoder.decode(bytes.subarray(start, end)), marked: true });
    from = end;
  }
  if (from < bytes.length) found.push({ text: decoder.decode(bytes.subarray(from)), marked: false });
  return found;
}
