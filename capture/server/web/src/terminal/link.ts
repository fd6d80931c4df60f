// The connection to a run's terminal: a WebSocket with patches of rows. After a break it reconnects, and the last
// screen stays visible. If the server answers but no WebSocket can be opened, the screen is polled once a second.

import { signal } from "@preact/signals";
import { ApiFailure, call } from "../api/client";
import type { Screen } from "../api/routes";
import { type Grid, type GridMessage, joined, patched, type Scrollback, type WireRun } from "./grid";

/** `away`: the last screen is shown while the page tries to reach the server. */
export type Mode = "connecting" | "live" | "away" | "polling";
export type Typed = { type: "input"; text: string; force?: boolean } | { type: "paste"; text: string; force?: boolean } | { type: "keys"; keys: string[] };
type Outgoing =
  | Typed
  | { type: "scrollback"; before: number; count: number }
  | { type: "lease"; take?: boolean }
  | { type: "resize"; cols: number; rows: number };
type Size = { cols: number; rows: number };

/** Number of failed WebSockets, while the server answers, after which the screen is polled. */
const TRIES = 2;
const POLL = 1_000;
/** Number of polls after which a WebSocket is tried again. */
const POLLS = 10;
/** Time limit for the answer to a message, ms. */
const ANSWER = 5_000;
/** Time limit for a connection to deliver a screen, ms. */
const FIRST = 10_000;
const RETRY = [300, 1_000, 2_000, 5_000];
/** Number of lines per request. */
const LINES = 200;

type Incoming =
  | GridMessage
  | { type: "scrollback"; from: number; oldest?: number; lines: WireRun[][] }
  | { type: "closed"; why: string }
  | { type: "done" }
  | { type: "refused"; code: string; message: string }
  | { type: "lease"; held: boolean; by?: string | null };

/** Why a terminal accepted no input. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** The terminal of one run. */
export class Link {
  readonly grid = signal<Grid | null>(null);
  readonly mode = signal<Mode>("connecting");
  readonly closed = signal<string | null>(null);
  readonly failed = signal<unknown>(null);
  /** When the connection that delivered the screen broke, ms. */
  readonly away = signal(0);
  /** The holder of the lease to resize the terminal: this view, another one by its name, or none. */
  readonly lease = signal<{ held: boolean; by: string | null }>({ held: false, by: null });
  readonly scrollback = signal<Scrollback | null>(null);
  private socket: WebSocket | null = null;
  // Every message gets one answer, in order.
  private waiting: { resolve: () => void; reject: (cause: unknown) => void }[] = [];
  private sending: Promise<unknown> = Promise.resolve();
  /** The last scrolled-off line that was requested. */
  private following = 0;
  /** Number of failed connections since the last one that delivered a screen. */
  private tries = 0;
  /** Number of those after which the server answered a request. */
  private refusals = 0;
  private polls = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stopped = false;
  /** The size that this view took and has not released; it is taken again after a break. */
  private size: Size | null = null;

  constructor(private readonly run: string) {}

  open(): void {
    this.stopped = false;
    clearTimeout(this.timer);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/runs/${encodeURIComponent(this.run)}/terminal`);
    this.socket = socket;
    socket.onmessage = (event) => {
      if (this.socket === socket) this.receive(JSON.parse(String(event.data)) as Incoming);
    };
    socket.onclose = () => {
      if (this.socket === socket) this.lost();
    };
    setTimeout(() => this.socket === socket && this.mode.value !== "live" && this.drop(), FIRST);
  }

  close(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }

  /** Reconnects immediately, because the server is reachable again. An earlier try may be waiting for a network that
   * is gone. */
  now(): void {
    const waits = this.mode.value === "away" && this.socket !== null;
    if (this.stopped || this.closed.value !== null || this.mode.value === "live" || (this.socket !== null && !waits)) return;
    this.tries = 0;
    const { socket } = this;
    this.open();
    socket?.close();
  }

  /** Drops a possibly dead connection and makes another, because browsers do not report unanswered pings. */
  drop(): void {
    const { socket } = this;
    if (socket === null) return;
    this.lost();
    socket.close();
  }

  /** Sends keys or text; fails with the reason if the server refuses. */
  async send(message: Typed): Promise<void> {
    if (this.mode.value !== "polling") return this.ask(message);
    // Sent one after another, because separate requests may overtake each other.
    const body = message.type === "keys" ? { keys: message.keys } : { text: message.text, ...(message.force === true ? { force: true } : {}) };
    const sent = this.sending.then(() => call("POST /api/v1/runs/{id}/input", { path: { id: this.run }, body }));
    this.sending = sent.catch(() => undefined);
    await sent;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.poll(), 80);
  }

  /** Takes the terminal's size, visibly for all attached users; resolves when the lease is answered. */
  async take(size: Size): Promise<void> {
    await this.ask({ type: "lease" });
    if (!this.lease.value.held) return;
    this.size = size;
    await this.ask({ type: "resize", ...size });
  }

  /** Fits the terminal to this view, which must have the lease. */
  async resize(size: Size): Promise<void> {
    if (!this.lease.value.held) return;
    this.size = size;
    await this.ask({ type: "resize", ...size });
  }

  /** Returns the size to the terminal that has control. */
  release(): Promise<void> {
    this.size = null;
    return this.ask({ type: "lease", take: false });
  }

  /** Requests lines above the loaded ones. */
  async more(): Promise<void> {
    const before = this.scrollback.value?.from ?? this.grid.value?.scrolled ?? 0;
    if (before > 0) await this.ask({ type: "scrollback", before, count: Math.min(LINES, before) });
  }

  private ask(message: Outgoing): Promise<void> {
    const { socket } = this;
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("The terminal is not connected."));
    const silent = setTimeout(() => this.socket === socket && this.drop(), ANSWER);
    return new Promise<void>((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      socket.send(JSON.stringify(message));
    }).finally(() => clearTimeout(silent));
  }

  private receive(message: Incoming): void {
    switch (message.type) {
      case "grid":
        this.show(message);
        break;
      case "scrollback":
        this.scrollback.value = joined(this.scrollback.value, message);
        this.waiting.shift()?.resolve();
        break;
      case "closed":
        // A host that cannot report changes can still send its screen.
        if (this.mode.value === "polling") break;
        if (this.grid.value === null) this.fallBack();
        else this.closed.value = message.why;
        break;
      case "done":
        this.waiting.shift()?.resolve();
        break;
      case "refused":
        this.waiting.shift()?.reject(new Refused(message.code, message.message));
        break;
      case "lease":
        this.lease.value = { held: message.held, by: message.by ?? null };
        this.waiting.shift()?.resolve();
        break;
    }
  }

  private show(message: GridMessage): void {
    const isFirst = this.mode.value !== "live";
    this.mode.value = "live";
    this.tries = 0;
    this.refusals = 0;
    this.polls = 0;
    clearTimeout(this.timer);
    this.failed.value = null;
    this.grid.value = patched(this.grid.value, message);
    // The lines above belong to a terminal whose count continues.
    if (this.scrollback.value !== null && this.grid.value.scrolled < this.scrollback.value.to) this.scrollback.value = null;
    if (isFirst && this.size !== null) this.take(this.size).catch(() => undefined);
    this.follow();
  }

  // Appends lines that scroll off while the lines above are shown.
  private follow(): void {
    const known = this.scrollback.value;
    const scrolled = this.grid.value?.scrolled ?? 0;
    if (known === null || scrolled <= known.to) return;
    if (this.following >= scrolled) return;
    this.following = scrolled;
    this.ask({ type: "scrollback", before: scrolled, count: scrolled - known.to }).catch(() => undefined);
  }

  private lost(): void {
    this.socket = null;
    for (const { reject } of this.waiting.splice(0)) reject(new Error("The connection to the terminal was lost; whether the input arrived is not known."));
    this.lease.value = { held: false, by: null };
    this.following = 0;
    if (this.stopped || this.closed.value !== null || this.mode.value === "polling") return;
    const isFirst = this.tries === 0;
    if (this.mode.value === "live") this.away.value = Date.now();
    this.mode.value = this.grid.value === null ? "connecting" : "away";
    const wait = RETRY[Math.min(this.tries, RETRY.length - 1)];
    this.tries += 1;
    // The first retry is immediate; a request would only delay it.
    this.timer = setTimeout(() => (isFirst ? this.open() : void this.look()), wait);
  }

  /** Checks whether the server answers at all: if it does but opens no WebSocket, the screen is polled. */
  private async look(): Promise<void> {
    const screen = await this.read();
    if (this.stopped || this.closed.value !== null || this.socket !== null || this.mode.value === "live") return;
    if (screen !== null) {
      this.refusals += 1;
      if (this.refusals >= TRIES) {
        this.fallBack(screen);
        return;
      }
    }
    this.open();
  }

  private fallBack(screen: Screen | null = null): void {
    this.mode.value = "polling";
    this.polls = 0;
    if (screen === null) void this.poll();
    else this.draw(screen);
  }

  private async poll(): Promise<void> {
    clearTimeout(this.timer);
    if (this.stopped) return;
    const screen = await this.read();
    if (this.stopped || this.mode.value !== "polling") return;
    if (screen !== null) this.draw(screen);
    else if (this.closed.value === null) this.timer = setTimeout(() => void this.poll(), POLL);
  }

  private draw(screen: Screen): void {
    this.grid.value = {
      columns: screen.size.columns,
      rows: screen.size.rows,
      cursor: screen.cursor == null ? null : { row: screen.cursor[0], column: screen.cursor[1] },
      title: screen.title ?? "",
      alternate: screen.alternate,
      scrolled: 0,
      skipped: screen.skipped_bytes,
      lines: screen.lines.map((text) => [{ text, fg: null, bg: null, flags: 0 }]),
    };
    this.scrollback.value = null;
    this.polls += 1;
    if (this.polls % POLLS === 0 && this.socket === null) this.open();
    this.timer = setTimeout(() => void this.poll(), document.visibilityState === "visible" ? POLL : POLL * 5);
  }

  /** Reads the screen with a request; `null` if there is none, with the reason in `closed` or `failed`. */
  private async read(): Promise<Screen | null> {
    try {
      const screen = await call("GET /api/v1/runs/{id}/screen", { path: { id: this.run } });
      this.failed.value = null;
      return screen;
    } catch (cause) {
      if (cause instanceof ApiFailure && cause.status === 409 && this.grid.value !== null) this.closed.value = cause.message;
      // While the server is unreachable, the last screen is more useful than an error.
      else if (this.grid.value === null || (cause instanceof ApiFailure && cause.status >= 400 && cause.status < 500)) this.failed.value = cause;
      return null;
    }
  }
}
