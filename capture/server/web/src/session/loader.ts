// The conversation of a session; only visible parts are loaded. Its events have consecutive sequences, so any part can
// be requested: pages of 240 sequences, shown in blocks of 40.

import { signal } from "@preact/signals";
import { call } from "../api/client";
import type { ConversationItem } from "../api/routes";

/** Number of sequences per request. */
const PAGE = 240;
/** Number of sequences in a block, which is one row of the list. */
export const BLOCK = 40;
/** Time for which changes are collected before they are read, milliseconds. */
const SETTLE = 150;
/** Maximum number of pages kept. */
const KEPT = 40;

type Page = { blocks: Map<number, ConversationItem[]>; used: number; stale: boolean; loading: boolean; failed: unknown };

/** Items in sequence order, by block. */
export class Conversation {
  /** Changes when items arrive. */
  readonly version = signal(0);
  /** The number of blocks. */
  readonly blocks = signal(0);
  private readonly pages = new Map<number, Page>();
  private last = 0;
  private clock = 0;
  private wanted: [number, number] = [0, 0];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private due = 0;
  private readonly abort = new AbortController();

  constructor(private readonly session: string) {}

  /** Sets the session's last sequence; the end that was already read is read again. */
  grow(last: number): void {
    if (last <= this.last) return;
    const from = Math.max(0, Math.floor((this.last - 1) / PAGE));
    this.last = last;
    for (const [index, page] of this.pages) if (index >= from) page.stale = true;
    this.blocks.value = Math.ceil(last / BLOCK);
    this.later(SETTLE);
  }

  /** Reads the visible part again, and the rest once it is viewed, because a result arrived for an earlier call. */
  refresh(): void {
    for (const page of this.pages.values()) page.stale = true;
    this.later(SETTLE);
  }

  /** Sets the range of visible blocks. */
  look(first: number, last: number): void {
    this.wanted = [first, last];
    this.later(this.pages.size === 0 ? 0 : 60);
  }

  /** The items of a block; `null` until they are loaded. */
  items(block: number): ConversationItem[] | null {
    this.version.value;
    const page = this.pages.get(Math.floor((block * BLOCK) / PAGE));
    return page === undefined || page.blocks.size === 0 ? null : (page.blocks.get(block) ?? []);
  }

  /** Why a block could not be read. */
  failure(block: number): unknown {
    this.version.value;
    return this.pages.get(Math.floor((block * BLOCK) / PAGE))?.failed ?? null;
  }

  /** The block that contains a sequence. */
  blockOf(sequence: number): number {
    return Math.max(0, Math.floor((sequence - 1) / BLOCK));
  }

  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private near(): number[] {
    const first = Math.floor((this.wanted[0] * BLOCK) / PAGE);
    const last = Math.floor((Math.max(this.wanted[0], this.wanted[1] - 1) * BLOCK) / PAGE);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  }

  // A scheduled read is not postponed, because events may keep arriving.
  private later(wait: number): void {
    const due = performance.now() + wait;
    if (this.timer !== undefined && this.due <= due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.load();
    }, wait);
  }

  private load(): void {
    if (this.last === 0 || this.abort.signal.aborted) return;
    for (const index of this.near()) {
      const page = this.pages.get(index) ?? { blocks: new Map(), used: 0, stale: true, loading: false, failed: null };
      page.used = this.clock += 1;
      this.pages.set(index, page);
      if (page.stale && !page.loading) void this.read(index, page);
    }
    const old = [...this.pages].sort(([, left], [, right]) => left.used - right.used);
    for (const [index] of old.slice(0, Math.max(0, old.length - KEPT))) this.pages.delete(index);
  }

  private async read(index: number, page: Page): Promise<void> {
    page.loading = true;
    page.stale = false;
    try {
      const { items } = await call("GET /api/v1/sessions/{id}/conversation", {
        path: { id: this.session },
        query: { after: index * PAGE, limit: PAGE + 60 },
        signal: this.abort.signal,
      });
      const blocks = new Map<number, ConversationItem[]>();
      for (let block = (index * PAGE) / BLOCK; block < ((index + 1) * PAGE) / BLOCK; block += 1) blocks.set(block, []);
      for (const item of items) blocks.get(this.blockOf(item.sequence))?.push(item);
      page.blocks = blocks;
      page.failed = null;
    } catch (cause) {
      if (this.abort.signal.aborted) return;
      page.failed = cause;
      page.stale = true;
    } finally {
      page.loading = false;
      this.version.value += 1;
    }
    if (page.stale && page.failed === null) this.later(SETTLE);
  }
}
