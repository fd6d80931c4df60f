// The routes of the server and their types, by the names the page uses.

import type { ApprovalView, Device as PairedDevice, Lane, Routes, Session } from "./generated";

export * from "./generated";

export type Device = PairedDevice & { current?: boolean };
export type Scope = PairedDevice["scope"];
export type MarkedSession = Session;
export type OpenApproval = ApprovalView;
export type Decision = Routes["POST /api/v1/approvals/{id}/decision"]["body"];
export type OverviewLane = Lane;
