// The one stream of the page: connects, reads frames, resumes after a break, and says how current it is.

import { signal } from "@preact/signals";
import { ApiFailure, failure, paired } from "../api/client";
import { FrameReader, type Frame } from "./frames";

/** `live`: frames or keepalives come. `stale`: the connection is open but silent for too long. */
export type Connection = "connecting" | "live" | "stale" | "offline";

/** State of the connection. */
export const connection = signal<Connection>("connecting");
/** When the server was last heard of, milliseconds; 0 for never. */
export const heardAt = signal(0);

/** Silence after which what is shown may be old, milliseconds; the server sends a keepalive more often. */
const SILENCE = 40_000;
/** What changes is sent together this often, milliseconds. */
const BATCH = 100;
const RETRIES = [200, 500, 1_000, 2_000, 5_000, 10_000];

/** What the stream hands on. */
export type Listener = (frame: Frame, received: number) => void;

/** Follows the stream until it is stopped. */
export class Stream {
  private position: string | null = null;
  private epoch: string | null = null;
  private attempt = 0;
  private abort: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly watch: ReturnType<typeof setInterval>;
  private stopped = false;
  private refused = false;
  /** Sessions whose events are sent, as the query has them. */
  private events = "none";
  private changing = false;

  constructor(private readonly listener: Listener) {
    this.watch = setInterval(() => this.look(), 2_000);
    addEventListener("online", this.now);
    addEventListener("offline", this.gone);
    document.addEventListener("visibilitychange", this.now);
    void this.follow();
  }

  /** Connects again after this browser was paired. */
  again(): void {
    if (!this.refused) return;
    this.refused = false;
    void this.follow();
  }

  /** Has the events of these sessions sent, and of no others. Takes up where the stream is, so nothing is missed. */
  follows(sessions: string[]): void {
    const events = sessions.sort().join(",") || "none";
    if (events === this.events) return;
    this.events = events;
    if (this.abort === null) return;
    this.changing = true;
    this.abort.abort();
  }

  stop(): void {
    this.stopped = true;
    clearInterval(this.watch);
    clearTimeout(this.timer);
    removeEventListener("online", this.now);
    removeEventListener("offline", this.gone);
    document.removeEventListener("visibilitychange", this.now);
    this.abort?.abort();
  }

  /** Connects again without waiting. */
  readonly now = (): void => {
    if (document.visibilityState !== "visible" || connection.value === "live" || this.stopped || this.refused) return;
    this.attempt = 0;
    this.abort?.abort();
    if (this.abort === null) {
      clearTimeout(this.timer);
      void this.follow();
    }
  };

  // The browser knows before any time-out that no network is left.
  private readonly gone = (): void => this.abort?.abort();

  private look(): void {
    if (connection.value === "live" && Date.now() - heardAt.value > SILENCE) {
      connection.value = "stale";
      this.abort?.abort();
    }
  }

  private async follow(): Promise<void> {
    if (this.stopped) return;
    this.abort = new AbortController();
    if (connection.value !== "offline" && !this.changing) connection.value = "connecting";
    this.changing = false;
    try {
      await this.read(this.abort.signal);
    } catch (cause) {
      // Not paired (any more): whoever pairs this browser follows again.
      if (cause instanceof ApiFailure && cause.status === 401) {
        this.abort = null;
        connection.value = "offline";
        this.refused = true;
        return;
      }
    }
    this.abort = null;
    if (this.stopped) return;
    if (this.changing) return this.follow();
    connection.value = "offline";
    const wait = RETRIES[Math.min(this.attempt, RETRIES.length - 1)] ?? 10_000;
    this.attempt += 1;
    this.timer = setTimeout(() => void this.follow(), wait * (0.8 + 0.4 * Math.random()));
  }

  private async read(abort: AbortSignal): Promise<void> {
    const headers: Record<string, string> = { Accept: "text/event-stream", "X-Capture": "1" };
    if (this.position !== null) headers["Last-Event-ID"] = this.position;
    const query = new URLSearchParams({ events: this.events, batch_ms: String(BATCH) });
    if (this.epoch !== null) query.set("epoch", this.epoch);
    const response = await fetch(`/api/v1/stream?${query.toString()}`, {
      headers,
      credentials: "same-origin",
      cache: "no-store",
      signal: abort,
    });
    if (!response.ok || response.body === null) throw await failure(response);
    paired.value = true;
    const frames = new FrameReader();
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const received = performance.now();
      heardAt.value = Date.now();
      this.attempt = 0;
      connection.value = "live";
      for (const frame of frames.read(decoder.decode(value, { stream: true }))) {
        if (frame.id !== null) this.position = frame.id;
        if (frame.name === "snapshot") this.epoch = /"epoch":"([^"\\]*)"/.exec(frame.data.slice(0, 300))?.[1] ?? null;
        if (frame.name !== "keepalive") this.listener(frame, received);
      }
    }
  }
}
