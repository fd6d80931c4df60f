// One session: its activity and status, its conversation, and all its actions.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiFailure, call } from "../api/client";
import type { MarkedSession, OpenApproval, Run } from "../api/routes";
import { ApprovalCard } from "../approval/card";
import { arrived, isShortcut } from "../keys";
import { approvals, put, restarts, row } from "../live/store";
import { markItems } from "../marks";
import { mayControl } from "../me";
import { attempt, Empty, Failed, Loading } from "../parts/feedback";
import { Icon, SignShape } from "../parts/icons";
import { useLoad } from "../parts/load";
import { Menu } from "../parts/menu";
import { useNarrow } from "../parts/narrow";
import { RecordingLink } from "../parts/recording";
import { Since, StateWord, Title } from "../parts/sessions";
import { Shown } from "../parts/text";
import { address, go, parameter, setParameters } from "../router";
import { Checks, Scope } from "../session/checks";
import { ConversationView } from "../session/conversation";
import { Continue, Findings, LabelsPanel, NotesPanel, Prompts, Tree, Turns, UsagePanel, Why, Work } from "../session/panels";
import { Say } from "../session/say";
import { Timeline } from "../session/timeline";
import { counted, moment, shortId } from "../text/format";
import { AGENTS } from "../text/names";
import { visible } from "../text/visible";
import { shortModel } from "./row";

type Tab = "conversation" | "details";

/** The page of a session, by any of its ids. */
export function SessionPage({ id: named }: { id: string }) {
  const id = useSignal(row(named)?.id ?? null);
  const failed = useSignal<unknown>(null);
  const tab = useSignal<Tab>("conversation");
  const restarted = restarts.value;
  const narrow = useNarrow();
  useEffect(() => {
    const abort = new AbortController();
    call("GET /api/v1/sessions/{id}", { path: { id: named }, signal: abort.signal })
      .then((session) => {
        put(session);
        id.value = session.id;
        // Snapshots do not include ended sub-agents and branches.
        call("GET /api/v1/sessions", { query: { parent: session.id, active: "all", limit: 200 }, signal: abort.signal })
          .then(({ sessions }) => sessions.forEach(put))
          .catch(() => undefined);
        if (session.id !== named) go(`/s/${session.id}${location.search}`, true);
      })
      .catch((cause: unknown) => {
        if (!abort.signal.aborted && row(named) === undefined) failed.value = cause;
      });
    return () => abort.abort();
  }, [named, restarted]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "e" || !isShortcut(event)) return;
      tab.value = "details";
      document.querySelector(".side .claims")?.scrollIntoView({ block: "nearest" });
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const findings = id.value === null ? [] : (row(id.value)?.findings.value ?? []);
  const unseen = findings.filter(({ kind, state }) => kind === "completion" && state === "open").map((finding) => finding.id);
  useEffect(() => {
    if (!mayControl.value || unseen.length === 0) return;
    // A user who views the session has seen that its turn is over.
    const seen = (): void => {
      if (document.visibilityState !== "visible" || !document.hasFocus()) return;
      for (const id of unseen) void call("POST /api/v1/findings/{id}/ack", { path: { id }, body: {} }).catch(() => undefined);
    };
    seen();
    addEventListener("focus", seen);
    return () => removeEventListener("focus", seen);
  }, [unseen.join()]);
  const own = id.value === null ? undefined : row(id.value)?.session.value;
  const run = useRun(own?.run_id ?? null, own?.status.state === "exited");
  const asks = id.value !== null && [...approvals.value.values()].some((approval) => approval.session_id === id.value);
  useEffect(() => {
    if (asks && id.value !== null) arrived(id.value);
  }, [asks]);
  address.value;
  const at = Number.parseInt(parameter("at"), 10);

  if (failed.value !== null) {
    const all = (
      <p>
        <a class="button" href="/?view=all">
          Show all sessions
        </a>
      </p>
    );
    return (
      <div class="column">
        <h1 class="visually-hidden" tabIndex={-1}>
          Session
        </h1>
        {failed.value instanceof ApiFailure && failed.value.status === 404 ? (
          <Empty icon="search" title="Session not found">
            <p>It was deleted, or the address is not complete.</p>
            {all}
          </Empty>
        ) : (
          <>
            <Failed cause={failed.value} />
            {all}
          </>
        )}
      </div>
    );
  }
  const known = id.value === null ? undefined : row(id.value);
  if (known === undefined) {
    return (
      <div key="loading" class="column">
        <Loading lines={8} label="Loading the session" />
      </div>
    );
  }
  const session = known.session.value;
  const pending = [...approvals.value.values()].filter((approval) => approval.session_id === known.id);
  const place = (sequence: number): void => {
    tab.value = "conversation";
    setParameters({ at: String(sequence) });
  };
  const placeOfTime = async (time: string): Promise<void> => {
    const sequence = await attempt(() => sequenceAt(known.id, time));
    if (sequence !== undefined) place(sequence);
  };
  return (
    <div key="session" class="session" data-tab={tab.value}>
      <header class="session-head">
        <div class="session-title">
          <a href="/" class="icon-button" aria-label="All sessions">
            <Icon name="back" size={18} />
          </a>
          <div class="session-words">
            <h1 tabIndex={-1}>
              <Title of={session} />
            </h1>
            <div class="session-facts">
              <StateWord row={known} />
              <span>
                for <Since time={known.need.value?.since ?? session.status.since} />
              </span>
              <span>
                {AGENTS[session.provider]}
                {session.model !== null && ` · ${visible(shortModel(session.model))}`}
              </span>
              {session.permission_mode != null && <span class="chip">{visible(session.permission_mode)}</span>}
              {session.cwd !== null && (
                <span class="path">
                  <Shown text={session.cwd} />
                </span>
              )}
              {session.git_branch !== null && (
                <span class="with-icon">
                  <Icon name="branch" size={13} />
                  <Shown text={session.git_branch} />
                </span>
              )}
              <span class="muted">
                started {moment(session.started_at)} · {counted(session.turns, "turn")} · {shortId(session.id)}
              </span>
            </div>
          </div>
          <div class="session-actions">
            {run?.terminal === true && run.state === "running" && (
              <a class="button small" href={`/terminal/${run.id}`}>
                <Icon name="terminal" />
                <span>Terminal</span>
              </a>
            )}
            {session.run_id !== null && <RecordingLink id={session.run_id} />}
            {mayControl.value && (
              <Menu label="Pin, snooze or archive" items={markItems(known.id)}>
                <Icon name="more" size={18} />
              </Menu>
            )}
          </div>
        </div>
        {session.status.activity !== null && pending.length === 0 && (
          <p class="session-activity">
            <Shown text={session.status.activity} />
          </p>
        )}
        <div class="session-tabs segmented" role="tablist" aria-label="Parts of the session">
          {(["conversation", "details"] as Tab[]).map((name) => (
            <button key={name} type="button" role="tab" aria-controls={`session-${name}`} aria-selected={tab.value === name} onClick={() => (tab.value = name)}>
              {name === "conversation" ? "Conversation" : "Details"}
            </button>
          ))}
        </div>
      </header>
      <Timeline id={known.id} run={session.run_id} onPlace={place} />
      <div class="session-main" id="session-conversation">
        {pending.length > 0 &&
          (narrow ? (
            <PendingLink approvals={pending} />
          ) : (
            <div class="session-pending">
              {pending.map((approval) => (
                <ApprovalCard key={approval.id} approval={approval} queue={pending.length} inSession />
              ))}
            </div>
          ))}
        <ConversationView id={known.id} at={Number.isNaN(at) ? null : at} />
        {run !== null
          ? takesCommands(run) && <Say session={session} run={run} />
          : session.provider === "capture" && mayTake(session) && <div class="say-place" />}
      </div>
      <aside class="side" id="session-details" aria-label="Details">
        <Findings known={known} decided={narrow ? [] : pending.map(({ id }) => id)} />
        <Why id={known.id} />
        <Prompts session={session} run={run} />
        <Tree known={known} />
        <Checks id={known.id} onTime={(time) => void placeOfTime(time)} />
        <Work id={known.id} />
        <Scope key={known.id} id={known.id} onPlace={place} />
        <Turns id={known.id} onTime={(time) => void placeOfTime(time)} />
        <UsagePanel session={session} />
        <LabelsPanel session={session} />
        <NotesPanel session={session} />
        <Continue session={session} run={run} />
      </aside>
    </div>
  );
}

/** The run that hosts a session, and the commands it accepts; `null` until known, or if there is none. */
function useRun(id: string | null, ended: boolean): Run | null {
  const { state } = useLoad(
    (abort) => (id === null ? Promise.resolve(null) : call("GET /api/v1/runs/{id}", { path: { id }, signal: abort })),
    [id, ended, restarts.value],
  );
  const { value } = state.value;
  return value?.id === id ? value : null;
}

/** Whether a session's run, which is not known yet, may take commands. */
const mayTake = ({ run_id, status }: MarkedSession): boolean => run_id !== null && status.state !== "exited" && mayControl.value;

/** Whether a session is controlled by commands, because it has no terminal to type into. */
const takesCommands = (run: Run): boolean => run.state === "running" && !run.terminal && (run.takes ?? []).length > 0;

const isAnswerable = ({ unanswerable, state }: OpenApproval): boolean => unanswerable == null && state === "pending";

/** On a small screen, requests are on a separate page. Those that only the agent can answer are counted if there is no
 * other. */
function PendingLink({ approvals }: { approvals: OpenApproval[] }) {
  // The stream does not say whether a request can be answered here.
  const { state } = useLoad(
    async (abort) => (await Promise.all(approvals.map(({ id }) => call("GET /api/v1/approvals/{id}", { path: { id }, signal: abort })))).filter(isAnswerable),
    [approvals.map(({ id, revision }) => `${id} ${revision}`).join()],
  );
  const here = state.value.value;
  const shown = here === null || here.length === 0 ? approvals : here;
  const place = here === null ? "" : here.length === 0 ? " in the agent" : " for your decision";
  return (
    <a class="pending-link" href={`/approvals/${shown[0]?.id ?? ""}`}>
      <SignShape sign="approval" />
      <span>{shown.length === 1 ? `A request waits${place}` : `${shown.length} requests wait${place}`}</span>
      <Icon name="right" />
    </a>
  );
}

/** The sequence of the event at a time, found by binary search, because sequences have no gaps. */
async function sequenceAt(id: string, time: string): Promise<number> {
  let low = 0;
  let high = row(id)?.session.peek().last_sequence ?? 0;
  const wanted = Date.parse(time);
  for (let step = 0; step < 20 && low < high; step += 1) {
    const middle = Math.floor((low + high) / 2);
    const { events } = await call("GET /api/v1/sessions/{id}/events", { path: { id }, query: { after: middle, limit: 1 } });
    const event = events[0];
    if (event === undefined || Date.parse(event.created_at) >= wanted) high = middle;
    else low = middle + 1;
  }
  return low + 1;
}
