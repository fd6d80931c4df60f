// What a session needs from the user, computed from the stream as `GET /api/v1/attention` computes it. The server's
// table maps reasons and findings to needs.

import { FINDING_KINDS, type Finding, type MarkedSession, type Need, REASONS, type Reason, type State } from "../api/routes";

/** Needs, most important first. */
export const NEEDS: Need[] = ["approval", "question", "failure", "stuck", "prompt"];

function ofStatus(state: State, reason: Reason | null): Need | null {
  if (state === "waiting_approval") return "approval";
  return state === "waiting" && reason !== null ? REASONS[reason].need : null;
}

/** What makes a session need something that its own status does not: a finding, or the status of a sub-agent. */
export type Cause = { finding: Finding } | { child: MarkedSession };

/** The cause of a need; `null` if it is the session's own status. */
export function causeOf({ session, findings }: Watched, below: Watched[], need: Need): Cause | null {
  if (ofStatus(session.status.state, session.status.reason) === need) return null;
  const all = [...findings, ...below.flatMap((of) => [...of.findings])];
  const finding = all.find(({ state, kind }) => state === "open" && FINDING_KINDS[kind].need === need);
  if (finding !== undefined) return { finding };
  const child = below.find((of) => ofStatus(of.session.status.state, of.session.status.reason) === need)?.session;
  return child === undefined ? null : { child };
}

/** A session's need, and since when it exists. */
export type Needed = { need: Need; since: string; risky: boolean; what: string | null; why: string | null };

/** A session and its findings. */
export type Watched = { session: MarkedSession; findings: Iterable<Finding> };

/** What a session needs from the user; `null` if nothing. A session also has the needs of its sub-agents, except for
 * the next prompt. */
export function needOf({ session, findings }: Watched, below: Watched[] = []): Needed | null {
  const { status } = session;
  const waiting: [Need, MarkedSession["status"]][] = [];
  const open: [Need, Finding][] = [];
  // A session that is working again or has ended does not wait for a prompt.
  const rests = status.state === "waiting" || status.state === "idle";
  const add = (of: Watched, own: boolean): void => {
    const need = ofStatus(of.session.status.state, of.session.status.reason);
    if (need !== null && (own || need !== "prompt")) waiting.push([need, of.session.status]);
    for (const finding of of.findings) {
      const need = finding.state === "open" ? FINDING_KINDS[finding.kind].need : null;
      if (need !== null && (need !== "prompt" || rests)) open.push([need, finding]);
    }
  };
  add({ session, findings }, true);
  for (const child of below) add(child, false);
  const need = NEEDS.find((need) => waiting.some(([of]) => of === need) || open.some(([of]) => of === need));
  if (need === undefined) return null;
  const ofNeed = open.filter(([of]) => of === need).map(([, finding]) => finding);
  const risky = ofNeed.find((finding) => finding.kind === "risky_approval");
  const first = risky ?? ofNeed[0];
  const since = ofNeed.map((finding) => finding.first_at);
  const blocked = waiting.filter(([of]) => of === need).map(([, status]) => status);
  since.push(...blocked.map((status) => status.since));
  return {
    need,
    since: since.sort()[0] ?? status.since,
    risky: risky !== undefined,
    what: blocked.find((status) => status.activity !== null)?.activity ?? first?.what ?? null,
    why: first?.why ?? null,
  };
}
