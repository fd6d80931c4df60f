// The page's only stream: connects, reads messages, resumes after a break, and reports how current it is. It is a
// WebSocket, because browsers open only six connections per server for requests, whatever the number of tabs.

import { signal } from "@preact/signals";
import { ApiFailure, call, failure, paired } from "../api/client";
import { FrameReader, type Line, LineReader } from "./frames";
import { Lag } from "./lag";

/** `live`: messages arrive. `stale`: the connection is open but has been silent for too long. */
export type Connection = "connecting" | "live" | "stale" | "offline";

/** The state of the connection. */
export const connection = signal<Connection>("connecting");
/** When the last message of the server arrived, milliseconds; 0 for never. */
export const heardAt = signal(0);
/** The age of the displayed data, seconds; 0 while it is current. */
export const behind = signal(0);

/** Number of failed tries after which we assume that a WebSocket cannot reach the server. */
const TRIES = 2;
/** Silence after which the displayed data may be old, milliseconds: over a WebSocket the server sends something every
 * 5 s. */
const SILENCE = 16_000;
/** The same for server-sent events, whose keepalives arrive every 15 s. */
const SILENCE_OF_EVENTS = 40_000;
/** Age from which the page reports that it is behind, milliseconds. */
const BEHIND = 2_000;
/** Interval at which changes are sent together, milliseconds. */
const BATCH = 100;
/** The same while the page is hidden. */
const BATCH_HIDDEN = 1_000;
const RETRIES = [200, 500, 1_000, 2_000, 5_000, 10_000];

/** One message: `snapshot`, `status`, `approval`, `finding`, `event` or `delta`, and its data. */
export type Message = { name: string; data: unknown };
/** Receives the stream's messages, with the time of arrival. */
export type Listener = (message: Message, received: number) => void;

const batch = (): number => (document.visibilityState === "hidden" ? BATCH_HIDDEN : BATCH);

/** Follows the stream until it is stopped. */
export class Stream {
  private position: string | null = null;
  private epoch: string | null = null;
  private attempt = 0;
  private abort: AbortController | null = null;
  private socket: WebSocket | null = null;
  private lag = new Lag();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly watch: ReturnType<typeof setInterval>;
  private stopped = false;
  private refused = false;
  /** Whether this browser was paired during the current attempt. */
  private pairedMeanwhile = false;
  /** Number of consecutive times no WebSocket could be opened although the server answers. */
  private unopened = 0;
  /** The sessions whose events are sent. */
  private sessions: string[] = [];
  private changing = false;

  constructor(private readonly listener: Listener) {
    this.watch = setInterval(() => this.look(), 1_000);
    addEventListener("online", this.now);
    addEventListener("offline", this.gone);
    document.addEventListener("visibilitychange", this.shown);
    void this.follow();
  }

  /** Reconnects after this browser was paired. */
  again(): void {
    // An attempt from before the pairing may still be under way, and is about to be refused.
    this.pairedMeanwhile = !this.refused;
    if (!this.refused) return;
    this.refused = false;
    void this.follow();
  }

  /** Selects the sessions whose events are sent. The stream continues from its position, so nothing is missed. */
  follows(sessions: string[]): void {
    const wanted = sessions.sort();
    if (wanted.join() === this.sessions.join()) return;
    this.sessions = wanted;
    if (this.socket?.readyState === WebSocket.OPEN) {
      const { position, epoch } = this;
      const from = position === null ? {} : { after: Number(position), epoch };
      this.socket.send(JSON.stringify({ events: wanted, ...from }));
      return;
    }
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
    document.removeEventListener("visibilitychange", this.shown);
    this.abort?.abort();
  }

  /** Reconnects without waiting. */
  readonly now = (): void => {
    if (document.visibilityState !== "visible" || connection.value === "live" || this.stopped || this.refused) return;
    this.attempt = 0;
    this.abort?.abort();
    if (this.abort === null) {
      clearTimeout(this.timer);
      void this.follow();
    }
  };

  // After the page slept, its connection may be long dead.
  private readonly shown = (): void => {
    this.look();
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ batch_ms: batch() }));
    this.now();
  };

  // The browser detects a lost network before any time-out.
  private readonly gone = (): void => this.abort?.abort();

  private look(): void {
    const now = Date.now();
    const age = this.lag.behind(performance.now());
    behind.value = connection.value === "live" && age >= BEHIND ? Math.round(age / 1_000) : 0;
    const silence = this.socket === null ? SILENCE_OF_EVENTS : SILENCE;
    if (connection.value === "live" && now - heardAt.value > silence) {
      connection.value = "stale";
      this.abort?.abort();
    }
  }

  private async follow(): Promise<void> {
    if (this.stopped) return;
    this.abort = new AbortController();
    if (connection.value !== "offline" && !this.changing) connection.value = "connecting";
    this.changing = false;
    this.lag = new Lag();
    try {
      if (typeof DecompressionStream !== "undefined" && this.unopened < TRIES) await this.readLines(this.abort.signal);
      else {
        // Next time, try a WebSocket once more.
        this.unopened = TRIES - 1;
        await this.readEvents(this.abort.signal);
      }
    } catch (cause) {
      // Not paired, or not any more: pairing this browser starts the stream again.
      if (cause instanceof ApiFailure && cause.status === 401) {
        this.abort = null;
        if (this.pairedMeanwhile) {
          this.pairedMeanwhile = false;
          return this.follow();
        }
        connection.value = "offline";
        this.refused = true;
        return;
      }
    }
    this.abort = null;
    if (this.stopped) return;
    if (this.changing) return this.follow();
    connection.value = "offline";
    behind.value = 0;
    const wait = RETRIES[Math.min(this.attempt, RETRIES.length - 1)] ?? 10_000;
    this.attempt += 1;
    this.timer = setTimeout(() => void this.follow(), wait * (0.8 + 0.4 * Math.random()));
  }

  private query(): URLSearchParams {
    const query = new URLSearchParams({ events: this.sessions.join(",") || "none", batch_ms: String(batch()) });
    if (this.epoch !== null) query.set("epoch", this.epoch);
    return query;
  }

  private heard(): void {
    heardAt.value = Date.now();
    this.attempt = 0;
    connection.value = "live";
  }

  /** Reads the WebSocket until it ends. A failed WebSocket gives no reason, so a request is sent to find out. */
  private async readLines(abort: AbortSignal): Promise<void> {
    const query = this.query();
    query.set("compress", "gzip");
    if (this.position !== null) query.set("after", this.position);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/ws?${query.toString()}`);
    socket.binaryType = "arraybuffer";
    const unpacked = new DecompressionStream("gzip");
    const packed = unpacked.writable.getWriter();
    const lines = new LineReader();
    let opened = false;
    const read = (text: string): void => {
      const received = performance.now();
      for (const line of lines.read(text)) this.take(line, received);
    };
    const reading = this.unpack(unpacked.readable, read).catch(() => socket.close());
    const ended = new Promise<void>((resolve) => {
      socket.onopen = () => {
        opened = true;
        this.unopened = 0;
        paired.value = true;
        this.socket = socket;
      };
      socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
        this.heard();
        if (typeof data === "string") read(data);
        else packed.write(new Uint8Array(data)).catch(() => socket.close());
      };
      socket.onclose = () => resolve();
      abort.addEventListener("abort", () => {
        socket.close();
        // A dead connection takes long to close.
        resolve();
      });
    });
    await ended;
    this.socket = null;
    socket.onmessage = null;
    await packed.abort().catch(() => undefined);
    await reading;
    if (opened || abort.aborted) return;
    await call("GET /api/v1/me", { signal: abort });
    this.unopened += 1;
    this.changing = true;
  }

  private async unpack(stream: ReadableStream<Uint8Array>, read: (text: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      read(decoder.decode(value, { stream: true }));
    }
  }

  private take(line: Line, received: number): void {
    if (line.type === "sent") {
      if (line.position !== undefined) this.position = String(line.position);
      if (line.at !== undefined) this.lag.heard(Date.parse(line.at), received);
      return;
    }
    if (line.type === "snapshot") this.epoch = line.epoch ?? null;
    this.listener({ name: line.type, data: line.data }, received);
  }

  private async readEvents(abort: AbortSignal): Promise<void> {
    const headers: Record<string, string> = { Accept: "text/event-stream", "X-Capture": "1" };
    if (this.position !== null) headers["Last-Event-ID"] = this.position;
    const response = await fetch(`/api/v1/stream?${this.query().toString()}`, {
      headers,
      credentials: "same-origin",
      cache: "no-store",
      signal: abort,
    });
    if (!response.ok || response.body === null) throw await failure(response);
    paired.value = true;
    const frames = new FrameReader();
    const read = (text: string): void => {
      const received = performance.now();
      this.heard();
      for (const frame of frames.read(text)) {
        if (frame.id !== null) this.position = frame.id;
        if (frame.name === "keepalive") continue;
        const data: unknown = JSON.parse(frame.data);
        if (frame.name === "snapshot") this.epoch = (data as { epoch?: string }).epoch ?? null;
        this.listener({ name: frame.name, data }, received);
      }
    };
    await this.unpack(response.body, read);
  }
}
