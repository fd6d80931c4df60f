// Complete texts by their hashes, as the server stores them. A text never changes, so it is read only once.

import { call } from "../api/client";

/** Number of characters kept; the least recently used texts are dropped. */
const KEPT = 8_000_000;

const texts = new Map<string, string>();
let size = 0;

/** A whole text, if it was read before. */
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

/** Caches a text, and drops the oldest ones. */
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
