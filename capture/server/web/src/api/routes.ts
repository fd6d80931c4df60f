// The routes the page calls: those of the server's OpenAPI document, and until it has them all, the ones here.

import type { Routes as Generated, ApprovalView, DecisionRequest, Session, SessionId, State, Confidence, Timestamp } from "./generated";

export type Scope = "read" | "control" | "admin";

export type Device = {
  id: string;
  name: string;
  scope: Scope;
  paired_at: Timestamp;
  last_used_at: Timestamp;
  current?: boolean;
  /** Whether it was paired through a proxy. */
  tunnel?: boolean;
};
export type Me = { device: Device; elevated_until: Timestamp | null; version: string; started_at: Timestamp };

export type Marks = { pinned?: boolean; snoozed_until?: Timestamp | null; archived?: boolean };

export type MarkedSession = Session & { marks?: Marks | null };

export type OpenApproval = ApprovalView & {
  revision?: string | number | null;
  rule_preview?: string | null;
  same_as?: string[] | null;
};
export type Decision = DecisionRequest & { revision?: string | number | null; rule?: boolean };

export type OverviewLane = {
  session: SessionId;
  title?: string | null;
  provider?: string;
  segments: { state: State; from: Timestamp; until: Timestamp; confidence: Confidence }[];
  marks: { at: Timestamp; kind: string }[];
};
export type Overview = {
  days: { day: string; agent_s: number; tool_s: number; waiting_s: number }[];
  approval_waits: {
    buckets: { up_to_s: number | null; person: number; rule: number; expired: number }[];
    p50_s: number | null;
    p90_s: number | null;
    by_tool: { tool: string; count: number; p50_s: number | null; p90_s: number | null }[];
  };
  findings: { day: string; kind: string; count: number }[];
  lanes: OverviewLane[];
  more_lanes?: number;
};

type Plain = Record<never, never>;
type Route<Body, Answer, Path = Plain, Query = Plain> = { path: Path; query: Query; body: Body; answer: Answer };

interface Pending {
  "POST /api/v1/pair": Route<{ code: string; name: string }, { device: Device }>;
  "GET /api/v1/me": Route<undefined, Me>;
  "POST /api/v1/step-up": Route<{ code: string }, { elevated_until: Timestamp }>;
  "GET /api/v1/devices": Route<undefined, { devices: Device[] }>;
  "DELETE /api/v1/devices/{id}": Route<undefined, unknown, { id: string }>;
  "POST /api/v1/sign-out": Route<Plain, unknown>;
  "PUT /api/v1/sessions/{id}/marks": Route<Marks, Marks, { id: string }>;
  "GET /api/v1/overview": Route<undefined, Overview, Plain, { since?: Timestamp; until?: Timestamp; tz?: string }>;
  "GET /api/v1/approvals/{id}": Route<undefined, OpenApproval, { id: string }>;
  "POST /api/v1/approvals/{id}/decision": Route<Decision, OpenApproval, { id: string }>;
  "GET /api/v1/push": Route<undefined, { public_key: string }>;
  "POST /api/v1/push/subscriptions": Route<{ endpoint: string; keys: Record<string, string> }, unknown>;
  "DELETE /api/v1/push/subscriptions": Route<{ endpoint: string }, unknown>;
}

export type Routes = Omit<Generated, keyof Pending> & Pending;
export * from "./generated";
