// Whole texts by their hashes, as the server keeps them. A text never changes, so that it is read once.

import { call } from "../api/client";

/** Characters that are kept; the texts that were used longest ago make room. */
const KEPT = 8_000_000;

const texts = new Map<string, string>();
let size = 0;

/** A whole text that was read before. */
export function known(hash: string): string | null {
  const text = texts.get(hash);
  if (text === undefined) return null;
  texts.delete(hash);
  texts.set(hash, text);
  return text;
}

/** Reads a whole text. */
export async function readWhole(hash: string): Promise<string> {
  const before = known(hash);
  if (before !== null) return before;
  const text = String(await call("GET /api/v1/texts/{hash}", { path: { hash } }));
  keep(hash, text);
  return text;
}

/** Keeps a text, and lets the oldest ones go. */
export function keep(hash: string, text: string): void {
  size += text.length - (texts.get(hash)?.length ?? 0);
  texts.delete(hash);
  texts.set(hash, text);
  for (const [oldest, { length }] of texts) {
    if (size <= KEPT || oldest === hash) break;
    texts.delete(oldest);
    size -= length;
  }
}
