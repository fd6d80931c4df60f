// The page's data: sessions, open approvals and findings, as received from the stream. Views read signals; only this
// file writes them. Frames are applied once per painted picture, so that a busy stream never blocks typing.

import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { ConversationPage, Event, Finding, MarkedSession, Marks, OpenApproval } from "../api/routes";
import { groupBy } from "../text/collect";
import { type Cause, causeOf, type Needed, needOf, type Watched } from "./need";
import { connection, heardAt, type Message, Stream } from "./stream";

export type { ConversationPage };

/** One session as every view reads it; the signal changes with the session. */
export type Row = {
  id: string;
  session: Signal<MarkedSession>;
  findings: Signal<Finding[]>;
  need: ReadonlySignal<Needed | null>;
};

const rows = new Map<string, Row>();
/** Changes when a session is added or removed, or when something that determines the order changes. */
export const changed = signal(0);
/** Whether the first snapshot has been received. */
export const loaded = signal(false);
/** Number of new snapshots so far. After each, data that is not in the stream must be read again. */
export const restarts = signal(0);
/** Open permission requests by id. */
export const approvals = signal<ReadonlyMap<string, OpenApproval>>(new Map());
/** Permission requests that were closed while the page was open, by id. */
export const closed = signal<ReadonlyMap<string, OpenApproval>>(new Map());
/** The page's clock, updated regularly. */
export const now = signal(Date.now());

/** Age of the displayed data if it may be old, ms; `null` while the stream is live, and for a short break. */
export const outdated = computed(() => {
  const state = connection.value;
  if (state === "live" || heardAt.value === 0) return null;
  const since = now.value - heardAt.value;
  return state === "stale" || since > 5_000 ? Math.max(since, 0) : null;
});

/** All known sessions. */
export function all(): Row[] {
  changed.value;
  return [...rows.values()];
}

/** The row of a known session. */
export const row = (id: string): Row | undefined => rows.get(id);

const children = computed(() => groupBy(all(), (row) => row.session.peek().parent_session_id ?? ""));

const branches = computed(() => groupBy(all(), (row) => row.session.peek().forked_from ?? ""));

/** The known sessions that continue this one's conversation. */
export const branchesOf = ({ provider_session_id: id }: MarkedSession): Row[] => (id == null || id === "" ? [] : (branches.value.get(id) ?? []));

/** The known sub-agents of a session. */
export const childrenOf = (id: string): Row[] => children.value.get(id) ?? [];

/** All sub-agents below a session. */
export const descendantsOf = (id: string, depth = 0): Row[] =>
  depth > 6 ? [] : childrenOf(id).flatMap((child) => [child, ...descendantsOf(child.id, depth + 1)]);

const watchedIn = ({ session, findings }: Row): Watched => ({ session: session.value, findings: findings.value });

/** What makes a session need something; `null` if it is its own status, or if it needs nothing. */
export function causeFor(row: Row): Cause | null {
  const need = row.need.value?.need;
  return need === undefined ? null : causeOf(watchedIn(row), descendantsOf(row.id).map(watchedIn), need);
}

/** Number of sessions that need the user, except snoozed and archived ones. */
export const needing = computed(() => {
  changed.value;
  return [...rows.values()].filter((row) => isTop(row) && isShown(row.session.peek().marks) && row.need.peek() !== null);
});

/** Whether a session has its own list entry; a sub-agent is part of its parent's. */
export function isTop(row: Row): boolean {
  const session = row.session.peek();
  if (session.merged_into != null) return false;
  const parent = session.parent_session_id;
  return parent === null || !rows.has(parent);
}

/** Whether marks keep a session in the list. */
export function isShown(marks: Marks | null | undefined): boolean {
  return marks == null || (marks.archived !== true && !isSnoozed(marks));
}

export const isSnoozed = (marks: Marks | null | undefined): boolean => marks?.snoozed_until != null && Date.parse(marks.snoozed_until) > now.value;

/** Adds or replaces a session that was read separately. */
export function put(session: MarkedSession): Row {
  const known = rows.get(session.id);
  if (known !== undefined) {
    const before = known.session.value;
    if (session.last_sequence < before.last_sequence) return known;
    known.session.value = session;
    if (orders(before) !== orders(session)) changed.value += 1;
    return known;
  }
  const current = signal(session);
  const findings = signal<Finding[]>([]);
  const fresh: Row = {
    id: session.id,
    session: current,
    findings,
    need: computed(() => needOf(watchedIn(fresh), descendantsOf(session.id).map(watchedIn))),
  };
  rows.set(session.id, fresh);
  changed.value += 1;
  return fresh;
}

/** Applies marks that the server has confirmed. */
export function mark(id: string, marks: Marks): void {
  const known = rows.get(id);
  if (known === undefined) return;
  known.session.value = { ...known.session.value, marks };
  changed.value += 1;
}

// The values that determine a session's place in the list.
function orders(session: MarkedSession): string {
  const { status } = session;
  return `${status.state} ${status.reason} ${status.since} ${session.parent_session_id} ${session.merged_into} ${session.cwd} ${JSON.stringify(session.marks ?? null)}`;
}

function putFinding(finding: Finding): void {
  const known = rows.get(finding.session_id);
  if (known === undefined) return;
  const others = known.findings.value.filter((other) => other.id !== finding.id);
  known.findings.value = finding.state === "resolved" ? others : [...others, finding];
  changed.value += 1;
}

function putApproval(approval: OpenApproval): void {
  const open = new Map(approvals.value);
  if (approval.state === "pending") open.set(approval.id, { ...open.get(approval.id), ...approval });
  else {
    open.delete(approval.id);
    closed.value = new Map(closed.value).set(approval.id, approval);
  }
  approvals.value = open;
}

type Snapshot = { sessions: MarkedSession[]; approvals: OpenApproval[]; findings: Finding[] };

function restart(snapshot: Snapshot): void {
  const kept = new Set(snapshot.sessions.map((session) => session.id));
  for (const [id, known] of rows) {
    known.findings.value = [];
    if (!kept.has(id) && !watched.has(id)) rows.delete(id);
  }
  for (const session of snapshot.sessions) put(session);
  const bySession = groupBy(snapshot.findings, (finding) => finding.session_id);
  for (const [id, findings] of bySession) {
    const known = rows.get(id);
    if (known !== undefined) known.findings.value = findings;
  }
  approvals.value = new Map(snapshot.approvals.map((approval) => [approval.id, approval]));
  loaded.value = true;
  restarts.value += 1;
  changed.value += 1;
}

/** What a view of one session follows besides its row. `missed`: deltas may have been lost, and they are never sent
 * again. */
export type Watcher = { event?: (event: Event) => void; delta?: (delta: Delta) => void; restart?: () => void; missed?: () => void };
/** Text an agent is currently writing. */
export type Delta = { session_id: string; text: string; source: string };

const watched = new Map<string, Set<Watcher>>();

function missed(): void {
  for (const of of watched.values()) for (const watcher of of) watcher.missed?.();
}

effect(() => {
  if (connection.value !== "live") missed();
});

function follows(): void {
  stream?.follows([...watched.keys()]);
  missed();
}

/** Follows the events of a session until the returned function is called. */
export function watch(id: string, watcher: Watcher): () => void {
  const of = watched.get(id) ?? new Set();
  of.add(watcher);
  watched.set(id, of);
  // Update the stream immediately, so that data of the session read from now on is not older than the stream's
  // position.
  follows();
  return () => {
    of.delete(watcher);
    if (of.size > 0) return;
    watched.delete(id);
    // Delayed, so that switching to another session changes the stream only once.
    setTimeout(follows, 1_000);
  };
}

const waiting: [Message, number][] = [];
let scheduled = false;

function flush(): void {
  scheduled = false;
  const messages = waiting.splice(0);
  batch(() => {
    for (const [message] of messages) apply(message);
  });
  const first = messages[0]?.[1];
  if (first !== undefined && messages.some(([message]) => message.name === "status")) measure(first);
}

/** Name of the measure for the time from a frame's arrival to the picture that shows it. */
const PAINTED = "frame to paint";
let measures = 0;

function measure(received: number): void {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    channel.port1.close();
    // The browser keeps measures until they are cleared.
    if ((measures += 1) % 256 === 0) performance.clearMeasures(PAINTED);
    performance.measure(PAINTED, { start: received });
  };
  requestAnimationFrame(() => channel.port2.postMessage(null));
}

function apply({ name, data }: Message): void {
  switch (name) {
    case "snapshot":
      restart(data as Snapshot);
      for (const of of watched.values()) for (const watcher of of) watcher.restart?.();
      break;
    case "status":
      put(data as MarkedSession);
      break;
    case "approval":
      putApproval(data as OpenApproval);
      break;
    case "finding":
      putFinding(data as Finding);
      break;
    // Events of a session that was just closed may still arrive.
    case "event":
      for (const watcher of watched.get((data as Event).session_id) ?? []) watcher.event?.(data as Event);
      break;
    case "delta":
      for (const watcher of watched.get((data as Delta).session_id) ?? []) watcher.delta?.(data as Delta);
      break;
  }
}

if (typeof document !== "undefined") {
  // A page that is hidden before its next frame does not paint it.
  document.addEventListener("visibilitychange", () => {
    if (waiting.length > 0) flush();
  });
}

let stream: Stream | null = null;

/** Starts following the server. */
export function follow(): void {
  stream?.again();
  if (stream !== null) return;
  stream = new Stream((message, received) => {
    waiting.push([message, received]);
    if (scheduled) return;
    scheduled = true;
    // A hidden page does not paint, but its title and order stay up to date.
    if (document.visibilityState === "visible" && message.name !== "snapshot") requestAnimationFrame(flush);
    else setTimeout(flush, 0);
  });
  stream.follows([...watched.keys()]);
}

/** Stops following, after signing out. */
export function unfollow(): void {
  stream?.stop();
  stream = null;
}

/** Connects again at once. */
export const reconnect = (): void => stream?.now();

if (typeof window !== "undefined") setInterval(() => (now.value = Date.now()), 5_000);
