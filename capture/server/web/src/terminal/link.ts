// The connection to a run's terminal: a WebSocket with patches of rows; where there is none, the screen once a second.

import { signal } from "@preact/signals";
import { ApiFailure, call } from "../api/client";
import { patched, rowOf, type Grid, type GridMessage, type Row, type WireRun } from "./grid";

export type Mode = "connecting" | "live" | "polling";
export type Outgoing = { type: "input"; text: string } | { type: "paste"; text: string } | { type: "keys"; keys: string[] };

/** Times without a first message after which the screen is polled. */
const TRIES = 2;
const POLL = 1_000;
const RETRY = [300, 1_000, 2_000, 5_000];

type Incoming =
  | GridMessage
  | { type: "scrollback"; from: number; lines: WireRun[][] }
  | { type: "closed"; why: string }
  | { type: "done" }
  | { type: "refused"; code: string; message: string }
  | { type: "lease"; held: boolean; by?: string | null };

/** The terminal of one run. */
export class Link {
  readonly grid = signal<Grid | null>(null);
  readonly mode = signal<Mode>("connecting");
  readonly closed = signal<string | null>(null);
  readonly failed = signal<unknown>(null);
  readonly held = signal(false);
  /** Lines above the screen: the number of the first that is here, and the lines. */
  readonly scrollback = signal<{ from: number; lines: Row[] }>({ from: Number.MAX_SAFE_INTEGER, lines: [] });
  private socket: WebSocket | null = null;
  private waiting: { resolve: () => void; reject: (cause: unknown) => void }[] = [];
  private leasing: { cols: number; rows: number } | null = null;
  private sending: Promise<unknown> = Promise.resolve();
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
  async send(message: Outgoing): Promise<void> {
    if (this.mode.value === "live" && this.socket?.readyState === WebSocket.OPEN) {
      const { socket } = this;
      await new Promise<void>((resolve, reject) => {
        this.waiting.push({ resolve, reject });
        socket.send(JSON.stringify(message));
      });
      return;
    }
    // One after another: requests of their own may overtake each other.
    const body = message.type === "keys" ? { keys: message.keys } : { text: message.text };
    const sent = this.sending.then(() => call("POST /api/v1/runs/{id}/input", { path: { id: this.run }, body }));
    this.sending = sent.catch(() => undefined);
    await sent;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.poll(), 80);
  }

  /** Takes the size of the terminal, visibly for everybody who is attached. */
  lease(size: { cols: number; rows: number }): void {
    this.leasing = size;
    this.socket?.send(JSON.stringify({ type: "lease" }));
  }

  /** Asks for lines above those that are here. */
  more(): void {
    const { from } = this.scrollback.value;
    this.socket?.send(JSON.stringify({ type: "scrollback", before: from, count: 200 }));
  }

  private receive(message: Incoming): void {
    switch (message.type) {
      case "grid":
        this.mode.value = "live";
        this.tries = 0;
        this.failed.value = null;
        this.grid.value = patched(this.grid.value, message);
        break;
      case "scrollback": {
        const known = this.scrollback.value;
        this.scrollback.value = { from: message.from, lines: [...message.lines.map(rowOf), ...known.lines] };
        break;
      }
      case "closed":
        this.closed.value = message.why;
        break;
      case "done":
        this.waiting.shift()?.resolve();
        break;
      case "refused":
        this.waiting.shift()?.reject(new Error(message.message));
        break;
      case "lease":
        this.held.value = message.held && this.leasing !== null;
        if (this.held.value && this.leasing !== null) this.socket?.send(JSON.stringify({ type: "resize", ...this.leasing }));
        break;
    }
  }

  private lost(): void {
    for (const { reject } of this.waiting.splice(0)) reject(new Error("The connection to the terminal was lost; whether the input arrived is not known."));
    this.held.value = false;
    if (this.stopped || this.closed.value !== null) return;
    this.tries += 1;
    if (this.mode.value === "connecting" && this.tries >= TRIES) {
      this.mode.value = "polling";
      void this.poll();
      return;
    }
    if (this.mode.value === "polling") return;
    this.mode.value = "connecting";
    this.timer = setTimeout(() => this.open(), RETRY[Math.min(this.tries - 1, RETRY.length - 1)]);
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
        lines: screen.lines.map((text) => [{ text, fg: null, bg: null, flags: 0 }]),
      };
    } catch (cause) {
      if (cause instanceof ApiFailure && cause.status === 409 && this.grid.value !== null) this.closed.value = cause.message;
      else this.failed.value = cause;
    }
    if (!this.stopped && this.closed.value === null) this.timer = setTimeout(() => void this.poll(), document.visibilityState === "visible" ? POLL : POLL * 5);
  }
}
