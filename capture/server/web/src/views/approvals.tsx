// One queue of the permission requests of all sessions, oldest first. A closed request keeps its place until the user
// leaves the page, in one line; whatever moves up because of that is inactive for a moment.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call } from "../api/client";
import type { OpenApproval } from "../api/routes";
import { ApprovalCard, subjectOf } from "../approval/card";
import { approvals, closed, loaded, row } from "../live/store";
import { Command } from "../parts/copy";
import { Empty, Failed, Loading } from "../parts/feedback";
import { Icon, SignShape } from "../parts/icons";
import { useLoad } from "../parts/load";
import { Title } from "../parts/sessions";
import { Shown } from "../parts/text";
import { address, fragment, parameter, setParameters } from "../router";
import { counted, duration, moment } from "../text/format";
import { AGENTS, spaced } from "../text/names";

/** The page of approvals. `focus` is the request a link points to, in the path or after the `#`. */
export function ApprovalsPage({ focus: named }: { focus: string | null }) {
  address.value;
  const focus = named ?? (fragment.value || null);
  const past = parameter("view") === "decided";
  return (
    <div class="column approvals">
      <div class="page-head">
        <h1 tabIndex={-1}>Approvals</h1>
        <div class="segmented" role="group" aria-label="Which requests">
          <button type="button" aria-pressed={!past} onClick={() => setParameters({ view: "" })}>
            Pending
          </button>
          <button type="button" aria-pressed={past} onClick={() => setParameters({ view: "decided" })}>
            Decided
          </button>
        </div>
      </div>
      {past ? <Decided /> : <Queue focus={focus} />}
    </div>
  );
}

function Queue({ focus }: { focus: string | null }) {
  const order = useRef<string[]>([]);
  const known = useRef(new Map<string, OpenApproval>());
  const linked = useSignal<OpenApproval | null>(null);
  useEffect(() => {
    if (focus === null || approvals.peek().has(focus)) return;
    call("GET /api/v1/approvals/{id}", { path: { id: focus } })
      .then((found) => (linked.value = found))
      .catch(() => undefined);
  }, [focus]);
  const pending = useComputed(() =>
    [...approvals.value.values()].sort((left, right) =>
      left.opened_at < right.opened_at ? -1 : left.opened_at > right.opened_at ? 1 : left.id < right.id ? -1 : 1,
    ),
  );
  for (const approval of pending.value) {
    if (!known.current.has(approval.id)) order.current.push(approval.id);
    known.current.set(approval.id, approval);
  }
  const gone = linked.value;
  const alone = gone !== null && !known.current.has(gone.id) ? gone : null;
  const shown = order.current
    .map((id) => approvals.value.get(id) ?? closed.value.get(id) ?? known.current.get(id))
    .filter((approval) => approval !== undefined);
  const stamp = useStamp(shown.map((approval) => `${approval.id} ${approval.state}`).join());
  if (!loaded.value) return <Loading lines={6} label="Loading the requests" />;
  return (
    <>
      <p class="muted queue-count" role="status">
        {pending.value.length === 0 ? "" : counted(pending.value.length, "request pending", "requests pending")}
      </p>
      {alone !== null && <ApprovalCard key={alone.id} approval={alone} queue={stamp} focused />}
      {shown.length === 0 && alone === null ? (
        <Empty icon="approvals" title="Nothing is waiting for your decision">
          <p>Requests appear here as soon as an agent asks. They come from hooks that wait for an answer:</p>
          <div class="first-run">
            <Command text="capture hooks install --approver" />
          </div>
        </Empty>
      ) : (
        <div class="queue-frame">
          {shown.length > 1 && <Index shown={shown} />}
          <div class="queue">
            {shown.map((approval) => (
              <ApprovalCard key={approval.id} approval={approval} queue={stamp} focused={approval.id === focus} />
            ))}
          </div>
        </div>
      )}
    </>
  );
}

/** A compact index of the queue, next to it if there is room: waiting requests are visible without scrolling. */
function Index({ shown }: { shown: OpenApproval[] }) {
  const show = (id: string): void => {
    const card = document.querySelector<HTMLElement>(`[data-approval="${CSS.escape(id)}"]`);
    card?.scrollIntoView({ block: "start" });
    card?.focus({ preventScroll: true });
  };
  return (
    <ul class="queue-index" aria-label="Requests of the queue">
      {shown.map((approval) => {
        const session = row(approval.session_id);
        const risky = session?.findings.value.some((finding) => finding.kind === "risky_approval" && finding.approval_id === approval.id) === true;
        const done = approval.state !== "pending";
        return (
          <li key={approval.id}>
            <button type="button" class={done ? "index-done" : ""} onClick={() => show(approval.id)}>
              {done ? <Icon name="check" size={14} /> : <SignShape sign={approval.kind === "question" ? "question" : "approval"} size={14} />}
              <span class="index-subject">
                <Shown text={subjectOf(approval)} />
              </span>
              {risky && !done && <span class="chip chip-risky">risky</span>}
              <span class="index-session">{done ? spaced(approval.state) : <Title of={session?.session.value} id={approval.session_id} />}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** A number that changes when a text does. */
function useStamp(text: string): number {
  const last = useRef({ text, stamp: 0 });
  if (last.current.text !== text) last.current = { text, stamp: last.current.stamp + 1 };
  return last.current.stamp;
}

const CLOSED_STATES = ["allowed", "denied", "answered_elsewhere", "expired", "withdrawn"];

function Decided() {
  const { state, again } = useLoad((abort) => call("GET /api/v1/approvals", { query: { limit: 200 }, signal: abort }), [closed.value.size]);
  const { value, cause } = state.value;
  if (cause !== null) return <Failed cause={cause} retry={again} />;
  if (value === null) return <Loading lines={6} />;
  const decided = value.approvals.filter((approval) => CLOSED_STATES.includes(approval.state));
  if (decided.length === 0) return <Empty icon="approvals" title="No request has been decided yet" />;
  return (
    <div class="table-scroll panel decided" tabIndex={0} role="region" aria-label="Decided requests">
      <table>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col" class="wide-only">
              Outcome
            </th>
            <th scope="col">Request</th>
            <th scope="col" class="wide-only">
              By
            </th>
            <th scope="col" class="number wide-only">
              Waited
            </th>
          </tr>
        </thead>
        <tbody>
          {decided.map((approval) => (
            <tr key={approval.id}>
              <td class="nowrap">{approval.closed_at == null ? "" : moment(approval.closed_at)}</td>
              <td class={`nowrap wide-only outcome-${approval.state}`}>{spaced(approval.state)}</td>
              <td>
                <a href={`/s/${approval.session_id}`} class="mono decided-subject">
                  <Shown text={subjectOf(approval)} strictness="exact" />
                </a>
                <div class="muted small">
                  <span class={`narrow-only outcome-${approval.state}`}>{spaced(approval.state)} · </span>
                  {AGENTS[approval.provider]}
                  {approval.message != null && approval.message !== "" && (
                    <>
                      {" · "}
                      <Shown text={approval.message} />
                    </>
                  )}
                </div>
              </td>
              <td class="nowrap wide-only">
                {approval.by == null
                  ? approval.state === "answered_elsewhere"
                    ? "in the agent"
                    : ""
                  : approval.by === "policy"
                    ? `policy${approval.rule == null ? "" : ` (${approval.rule})`}`
                    : approval.by}
              </td>
              <td class="number wide-only">{approval.waited_ms == null ? "" : duration(approval.waited_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
