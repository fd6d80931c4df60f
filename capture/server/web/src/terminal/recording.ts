// Plays a terminal's recording: reads frames ahead of the displayed time, and buffers them.

import { computed, signal } from "@preact/signals";
import type { Recording, RecordingFrames } from "../api/routes";
import { type Grid, patched } from "./grid";

/** The screen from a time on, in ms since the beginning. */
export type Frame = { at: number; grid: Grid };
type Read = (from_ms: number) => Promise<RecordingFrames>;

export const SPEEDS = [0.5, 1, 2, 4, 8];
/** Longer pauses are shortened to this if pauses are skipped, ms. */
export const PAUSE = 1_000;
/** Playing time to read ahead, ms. */
const AHEAD = 4_000;
/** Maximum number of buffered frames; the oldest are dropped first. */
const HELD = 20_000;

/** The last frame at or before a time; `undefined` before the first frame. */
export function frameAt(frames: Frame[], time: number): Frame | undefined {
  let low = 0;
  let high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((frames[middle]?.at ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return frames[low - 1];
}

/** The time of the first change after a time; `null` if none is loaded. */
export function changeAfter(frames: Frame[], time: number): number | null {
  const shown = frameAt(frames, time);
  const next = frames[shown === undefined ? 0 : frames.indexOf(shown) + 1];
  return next?.at ?? null;
}

/** The frames of an answer as complete screens; unchanged rows remain the same objects. */
export function screens(answer: RecordingFrames): Frame[] {
  let grid: Grid | null = null;
  return answer.frames.map((frame) => {
    grid = patched(grid, { type: "grid", rev: 0, ...frame });
    return { at: frame.at_ms, grid };
  });
}

/** The player of one recording. Call `tick` for every picture while it plays. */
export class Player {
  readonly recording = signal<Recording | null>(null);
  /** The displayed time, ms since the beginning. */
  readonly position = signal(0);
  readonly playing = signal(false);
  readonly speed = signal(1);
  /** Whether long pauses are skipped. */
  readonly skips = signal(true);
  readonly failed = signal<unknown>(null);
  /** The buffered frames, without gaps. */
  private readonly frames = signal<Frame[]>([]);
  /** The end of the buffered frames, where the next ones begin; `null` at the end of the recording. */
  private readonly next = signal<number | null>(0);
  readonly grid = computed(() => frameAt(this.frames.value, this.position.value)?.grid ?? null);
  private reading: Promise<void> | null = null;
  /** Incremented by every jump, to discard the answers to earlier requests. */
  private turn = 0;

  constructor(
    private readonly summary: () => Promise<Recording>,
    private readonly read: Read,
  ) {}

  get duration(): number {
    return this.recording.value?.duration_ms ?? 0;
  }

  /** Reads the recording's description and shows the screen at a time. */
  async open(at = 0): Promise<void> {
    try {
      this.recording.value = await this.summary();
      await this.seek(at);
    } catch (cause) {
      this.failed.value = cause;
    }
  }

  /** Shows the screen at a time. */
  async seek(time: number): Promise<void> {
    const to = Math.min(this.duration, Math.max(0, time));
    this.failed.value = null;
    const [first] = this.frames.peek();
    const end = this.next.peek() ?? Number.POSITIVE_INFINITY;
    if (first !== undefined && first.at <= to && to < end) {
      this.position.value = to;
      return;
    }
    this.turn += 1;
    this.reading = null;
    this.next.value = to;
    await this.more(true);
    this.position.value = to;
  }

  /** Checks whether a recording in progress has grown. A player at the end moves to the new end. */
  async follow(): Promise<void> {
    const before = this.duration;
    await this.lengthen().catch(() => undefined);
    if (!this.playing.peek() && this.duration > before && this.position.peek() >= before) await this.seek(this.duration);
  }

  private async lengthen(): Promise<void> {
    if (this.recording.peek()?.ended !== false) return;
    const before = this.duration;
    this.recording.value = await this.summary();
    // Read again from the former end.
    if (this.next.peek() === null && this.duration > before) this.next.value = before;
  }

  async play(): Promise<void> {
    try {
      await this.lengthen();
    } catch (cause) {
      this.failed.value = cause;
      return;
    }
    if (this.position.peek() >= this.duration) await this.seek(0);
    this.playing.value = this.failed.peek() === null;
  }

  pause(): void {
    this.playing.value = false;
  }

  /** Advances the displayed time by `passed` ms of real time. */
  tick(passed: number): void {
    if (!this.playing.peek()) return;
    const speed = this.speed.peek();
    const here = this.position.peek();
    const end = this.next.peek();
    if (end !== null && end - here < AHEAD * speed) void this.more(false);
    let to = here + passed * speed;
    const change = changeAfter(this.frames.peek(), here) ?? end ?? this.duration;
    if (this.skips.peek() && change - to > PAUSE * speed) to = change - PAUSE * speed;
    // Wait for frames that are not loaded yet.
    if (end !== null) to = Math.min(to, Math.max(here, end - 1));
    if (to >= this.duration) {
      to = this.duration;
      this.playing.value = false;
    }
    this.position.value = to;
  }

  private more(whole: boolean): Promise<void> {
    if (this.reading !== null) return this.reading;
    const from = this.next.peek();
    if (from === null) return Promise.resolve();
    const { turn } = this;
    const reading = this.read(from).then(
      (answer) => {
        if (turn !== this.turn) return;
        const fresh = screens(answer);
        this.frames.value = whole ? fresh : [...this.frames.peek(), ...fresh].slice(-HELD);
        // If the server's position does not advance, treat it as the end, to avoid a loop.
        this.next.value = answer.next_ms !== null && answer.next_ms > from ? answer.next_ms : null;
      },
      (cause: unknown) => {
        if (turn !== this.turn) return;
        this.failed.value = cause;
        this.playing.value = false;
      },
    );
    const settled = reading.finally(() => {
      if (this.reading === settled) this.reading = null;
    });
    this.reading = settled;
    return settled;
  }
}
