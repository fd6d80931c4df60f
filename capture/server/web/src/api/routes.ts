// The routes of the server and their types, by the names the page uses.

import type { GridMessage } from "../terminal/grid";
import type { ApprovalView, Device as PairedDevice, Lane, Routes as Served, Session, Timestamp } from "./generated";

export * from "./generated";

export type Device = PairedDevice & { current?: boolean };
export type Scope = PairedDevice["scope"];
export type MarkedSession = Session;
export type OpenApproval = ApprovalView;
export type Decision = Routes["POST /api/v1/approvals/{id}/decision"]["body"];
export type OverviewLane = Lane;

/** The recording of a run's terminal. */
export type Recording = {
  /** When its first output came. */
  started_at: Timestamp;
  /** How much there is to play, ms; grows while it is written. */
  duration_ms: number;
  /** Whether nothing more is written to it. */
  ended: boolean;
  /** Time at its beginning that made room for what came later, ms. */
  dropped_ms: number;
};
/** The screen at a time of a recording, or the rows that changed since the frame before. */
export type RecordingFrame = Omit<GridMessage, "type" | "rev"> & { at_ms: number };
/** Frames in order. The first one is the whole screen at the time that was asked for. */
export type RecordingFrames = {
  frames: RecordingFrame[];
  /** Where the next frames begin; `null` at the end. */
  next_ms: number | null;
};

/** Routes that not every server has: what needs them is offered once they answered. */
type Optional = {
  "GET /api/v1/runs/{id}/recording": { path: { id: string }; query: Record<never, never>; body: undefined; answer: Recording };
  "GET /api/v1/runs/{id}/recording/frames": { path: { id: string }; query: { from_ms?: number; limit?: number }; body: undefined; answer: RecordingFrames };
};
export type Routes = Served & Optional;
