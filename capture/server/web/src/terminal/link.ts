// The connection to a run's terminal: a WebSocket with patches of rows; where there is none, the screen once a second.

import { signal } from "@preact/signals";
import { ApiFailure, call } from "../api/client";
import { joined, patched, type Grid, type GridMessage, type Scrollback, type WireRun } from "./grid";

export type Mode = "connecting" | "live" | "polling";
export type Typed = { type: "input"; text: string; force?: boolean } | { type: "paste"; text: string; force?: boolean } | { type: "keys"; keys: string[] };
type Outgoing = Typed | { type: "scrollback"; before: number; count: number } | { type: "lease"; take?: boolean } | { type: "resize"; cols: number; rows: number };

/** Connections that failed after which the screen is polled. */
const TRIES = 2;
const POLL = 1_000;
const RETRY = [300, 1_000, 2_000, 5_000];
/** Lines that are asked for at once. */
const LINES = 200;

type Incoming =
  | GridMessage
  | { type: "scrollback"; from: number; oldest?: number; lines: WireRun[][] }
  | { type: "closed"; why: string }
  | { type: "done" }
  | { type: "refused"; code: string; message: string }
  | { type: "lease"; held: boolean; by?: string | null };

/** Why a terminal took no input. */
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
  /** Who may resize the terminal: this view, another one by its name, or nobody. */
  readonly lease = signal<{ held: boolean; by: string | null }>({ held: false, by: null });
  readonly scrollback = signal<Scrollback | null>(null);
  private socket: WebSocket | null = null;
  // Every message gets one answer, in order.
  private waiting: { resolve: () => void; reject: (cause: unknown) => void }[] = [];
  private sending: Promise<unknown> = Promise.resolve();
  /** Up to which line that scrolled off was asked for. */
  private following = 0;
  private tries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stopped = false;

  constructor(private readonly run: string) {}

  open(): void {
    this.stopped = false;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/runs/${encodeURIComponent(this.run)}/terminal`);
    this.socket = socket;
    socket.onmessage = (event) => this.receive(JSON.parse(String(event.data)) as Incoming);
    socket.onclose = () => this.lost();
  }

  close(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
    this.socket = null;
  }

  /** Sends keys or text; fails with the reason when the server refuses. */
  async send(message: Typed): Promise<void> {
    if (this.mode.value === "live") return this.ask(message);
    // One after another: requests of their own may overtake each other.
    const body = message.type === "keys" ? { keys: message.keys } : { text: message.text, ...(message.force === true ? { force: true } : {}) };
    const sent = this.sending.then(() => call("POST /api/v1/runs/{id}/input", { path: { id: this.run }, body }));
    this.sending = sent.catch(() => undefined);
    await sent;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.poll(), 80);
  }

  /** Takes the size of the terminal, visibly for everybody who is attached; resolves when the lease was answered. */
  async take(size: { cols: number; rows: number }): Promise<void> {
    await this.ask({ type: "lease" });
    if (this.lease.value.held) await this.ask({ type: "resize", ...size });
  }

  /** Fits the terminal to this view, which has the lease. */
  async resize(size: { cols: number; rows: number }): Promise<void> {
    if (this.lease.value.held) await this.ask({ type: "resize", ...size });
  }

  /** Gives the size back to the terminal that types. */
  release(): Promise<void> {
    return this.ask({ type: "lease", take: false });
  }

  /** Asks for lines above those that are here. */
  async more(): Promise<void> {
    const before = this.scrollback.value?.from ?? this.grid.value?.scrolled ?? 0;
    if (before > 0) await this.ask({ type: "scrollback", before, count: Math.min(LINES, before) });
  }

  private ask(message: Outgoing): Promise<void> {
    const { socket } = this;
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("The terminal is not connected."));
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      socket.send(JSON.stringify(message));
    });
  }

  private receive(message: Incoming): void {
    switch (message.type) {
      case "grid":
        this.mode.value = "live";
        this.tries = 0;
        this.failed.value = null;
        this.grid.value = patched(this.grid.value, message);
        this.follow();
        break;
      case "scrollback":
        this.scrollback.value = joined(this.scrollback.value, message);
        this.waiting.shift()?.resolve();
        break;
      case "closed":
        // A host that cannot tell changes still tells its screen.
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

  // Lines that scroll off while the lines above are shown belong to them.
  private follow(): void {
    const known = this.scrollback.value;
    const scrolled = this.grid.value?.scrolled ?? 0;
    if (known === null || scrolled <= known.to) return;
    if (this.following >= scrolled) return;
    this.following = scrolled;
    this.ask({ type: "scrollback", before: scrolled, count: scrolled - known.to }).catch(() => undefined);
  }

  private lost(): void {
    for (const { reject } of this.waiting.splice(0)) reject(new Error("The connection to the terminal was lost; whether the input arrived is not known."));
    this.lease.value = { held: false, by: null };
    if (this.stopped || this.closed.value !== null || this.mode.value === "polling") return;
    this.tries += 1;
    if (this.mode.value === "connecting" && this.tries >= TRIES) {
      this.fallBack();
      return;
    }
    this.mode.value = "connecting";
    this.timer = setTimeout(() => this.open(), RETRY[Math.min(this.tries - 1, RETRY.length - 1)]);
  }

  private fallBack(): void {
    this.mode.value = "polling";
    void this.poll();
  }

  private async poll(): Promise<void> {
    clearTimeout(this.timer);
    if (this.stopped) return;
    try {
      const screen = await call("GET /api/v1/runs/{id}/screen", { path: { id: this.run } });
      this.failed.value = null;
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
    } catch (cause) {
      if (cause instanceof ApiFailure && cause.status === 409 && this.grid.value !== null) this.closed.value = cause.message;
      else this.failed.value = cause;
    }
    if (!this.stopped && this.closed.value === null) this.timer = setTimeout(() => void this.poll(), document.visibilityState === "visible" ? POLL : POLL * 5);
  }
}
