// The server's routes and their types, under the names the page uses.

import type { GridMessage } from "../terminal/grid";
import type { ApprovalView, Lane, Device as PairedDevice, RecordedFrame, RecordedFrames, RecordingInfo, Routes, Session } from "./generated";

export * from "./generated";

export type Device = PairedDevice & { current?: boolean };
export type Scope = PairedDevice["scope"];
export type MarkedSession = Session;
export type OpenApproval = ApprovalView;
export type Decision = Routes["POST /api/v1/approvals/{id}/decision"]["body"];
export type OverviewLane = Lane;
export type Recording = RecordingInfo;
/** The screen at a time in a recording, or the rows that changed since the previous frame. */
export type RecordingFrame = Omit<GridMessage, "type" | "rev"> & Pick<RecordedFrame, "at_ms">;
export type RecordingFrames = Omit<RecordedFrames, "frames"> & { frames: RecordingFrame[] };
