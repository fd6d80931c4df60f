// The panels next to a conversation: why the status is what it is, findings, sub-agents, work, usage, labels, notes,
// the prompt queue, and how to continue in a terminal.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { call, words } from "../api/client";
import { FINDING_KINDS, type Finding, type MarkedSession, type Prompt, type Run } from "../api/routes";
import type { Cause } from "../live/need";
import { all, branchesOf, causeFor, childrenOf, descendantsOf, type Row, restarts, row } from "../live/store";
import { mayControl } from "../me";
import { Command } from "../parts/copy";
import { attempt, Failed, Loading, notify } from "../parts/feedback";
import { Icon, SignShape } from "../parts/icons";
import { useLoad } from "../parts/load";
import { quotes, rolledUp, Since, signOf, Title } from "../parts/sessions";
import { Shown, Ticked } from "../parts/text";
import { capital, counted, dollars, duration, moment, relative, short, shortId } from "../text/format";
import { STATES, spaced } from "../text/names";
import { titleOf } from "../text/title";
import { visible } from "../text/visible";
import { Claims } from "./claims";

/** A panel at the side. */
export function Panel({
  title,
  count,
  children,
  open = true,
  name = "",
  onOpen,
}: {
  title: string;
  count?: number;
  children: ComponentChildren;
  open?: boolean;
  name?: string;
  onOpen?: () => void;
}) {
  return (
    <details class={`side-panel ${name}`} open={open} onToggle={(event) => event.currentTarget.open && onOpen?.()}>
      <summary>
        <h2>{title}</h2>
        {count !== undefined && <span class="count">{count}</span>}
      </summary>
      <div class="side-body">{children}</div>
    </details>
  );
}

/** Stands for panels that are not read yet: what is below the explanation of the status is shown after that, so that
 * nothing moves. */
const Waiting = () => <div class="side-waits" />;

/** Why the status is what it is. */
export function Why({ id }: { id: string }) {
  const known = row(id);
  const status = known?.session.value.status;
  const need = known?.need.value;
  const { state, again } = useLoad(
    (abort) => call("GET /api/v1/sessions/{id}/status", { path: { id }, signal: abort }),
    [id, status?.since, status?.state, status?.reason],
  );
  const { value, cause } = state.value;
  const why = known === undefined ? null : causeFor(known);
  const needing = known === undefined || need == null ? null : { sign: need.need, since: need.since, cause: why && <CauseLine cause={why} of={id} /> };
  return (
    <Panel title="Why this status" name="why">
      {value === null && cause === null && <Waiting />}
      {cause !== null ? <Failed cause={cause} retry={again} /> : value === null ? <Loading lines={3} /> : <Claims found={value} needing={needing} />}
    </Panel>
  );
}

/** What makes a session need something, with a link to it. */
function CauseLine({ cause, of }: { cause: Cause; of: string }) {
  if ("child" in cause) {
    return (
      <>
        Its sub-agent{" "}
        <a href={`/s/${cause.child.id}`}>
          <Title of={cause.child} />
        </a>{" "}
        makes it so.
      </>
    );
  }
  const { id, kind, approval_id, session_id, what } = cause.finding;
  const place = session_id !== of ? `/s/${session_id}` : approval_id != null ? `/approvals/${approval_id}` : `#finding-${id}`;
  return (
    <>
      The finding <a href={place}>{FINDING_KINDS[kind].title}</a>
      {session_id !== of && " of a sub-agent"} makes it so: {quotes(cause.finding) ? <Shown text={what} /> : <Ticked text={what} />}
    </>
  );
}

/** Open findings. Findings of a request in `decided` are shown in the request's card. */
export function Findings({ known, decided }: { known: Row; decided: string[] }) {
  const findings = known.findings.value.filter(
    ({ kind, approval_id }) => !((kind === "approval" || kind === "risky_approval") && approval_id != null && decided.includes(approval_id)),
  );
  if (findings.length === 0) return null;
  const acknowledge = (finding: Finding): void => {
    void attempt(async () => {
      await call("POST /api/v1/findings/{id}/ack", { path: { id: finding.id }, body: {} });
      notify("Acknowledged");
    });
  };
  return (
    <Panel title="Findings" count={findings.length}>
      <ul class="findings">
        {findings.map((finding) => (
          <li key={finding.id} id={`finding-${finding.id}`} class={`finding severity-${finding.severity}`}>
            <p>
              <strong>{FINDING_KINDS[finding.kind].title}</strong> <span class="muted small">{finding.severity}</span>
              {finding.count > 1 && (
                <>
                  {" "}
                  <span class="chip">{finding.count}×</span>
                </>
              )}
            </p>
            <p>{quotes(finding) ? <WithSessions text={capital(finding.what)} /> : <Ticked text={capital(finding.what)} Plain={WithSessions} />}</p>
            <p class="muted small">
              <Ticked text={capital(finding.why)} Plain={WithSessions} /> · <Since time={finding.first_at} />
            </p>
            {finding.state === "acknowledged" ? (
              <span class="muted small">acknowledged</span>
            ) : (
              mayControl.value && (
                <button type="button" class="button small" onClick={() => acknowledge(finding)}>
                  Acknowledge
                </button>
              )
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** A text of the server in which short session ids become links. */
function WithSessions({ text }: { text: string }) {
  const named = new Map(all().map(({ id, session }) => [shortId(id), session.peek()]));
  return (
    <>
      {text.split(/\b([0-9A-HJKMNP-TV-Z]{8})\b/).map((piece, index) => {
        const session = index % 2 === 1 ? named.get(piece) : undefined;
        if (session === undefined) return <Shown key={index} text={piece} />;
        return (
          <a key={index} href={`/s/${session.id}`} title={visible(titleOf(session))}>
            {piece}
          </a>
        );
      })}
    </>
  );
}

/** Sub-agents, branches, and the session this one continues. */
export function Tree({ known }: { known: Row }) {
  const session = known.session.value;
  const children = childrenOf(known.id);
  const parent = session.parent_session_id;
  const fork = session.forked_from ?? null;
  const branches = branchesOf(session);
  if (children.length === 0 && parent === null && fork === null && branches.length === 0) return null;
  return (
    <Panel title="Sub-agents and branches" count={children.length + branches.length}>
      {parent !== null && (
        <p>
          Sub-agent of{" "}
          <a href={`/s/${parent}`}>
            <Title of={row(parent)?.session.value} id={parent} />
          </a>
        </p>
      )}
      {fork !== null && (
        <p>
          Continues{" "}
          <a href={`/s/${fork}`}>
            <Title of={row(fork)?.session.value} id={fork} />
          </a>
        </p>
      )}
      {children.length > 0 && <p class="muted small">{rolledUp(descendantsOf(known.id).map(signOf))}</p>}
      <Branches rows={children} depth={0} />
      {branches.length > 0 && (
        <p class="muted small">{counted(branches.length, "branch goes on with this conversation", "branches go on with this conversation")}</p>
      )}
      <Branches rows={branches} depth={0} />
    </Panel>
  );
}

function Branches({ rows, depth }: { rows: Row[]; depth: number }) {
  if (rows.length === 0 || depth > 6) return null;
  return (
    <ul class="tree">
      {rows.map((child) => {
        const session = child.session.value;
        return (
          <li key={child.id}>
            <a href={`/s/${child.id}`}>
              <SignShape sign={signOf(child)} size={14} />
              <span class="ellipsis">
                <Title of={session} />
              </span>
              <span class="muted small nowrap">
                {STATES[session.status.state].toLowerCase()} · {short(session.usage.output_tokens)} tokens out
              </span>
            </a>
            <Branches rows={childrenOf(child.id)} depth={depth + 1} />
          </li>
        );
      })}
    </ul>
  );
}

/** Files changed and commands run. */
export function Work({ id }: { id: string }) {
  const session = row(id)?.session.value;
  const { state } = useLoad((abort) => call("GET /api/v1/sessions/{id}/work", { path: { id }, signal: abort }), [id, session?.turns, session?.status.state]);
  const work = state.value.value;
  if (work === null) return state.value.cause === null ? <Waiting /> : <Failed cause={state.value.cause} />;
  const files = Object.entries(work.files).sort(([, left], [, right]) => right - left);
  return (
    <>
      {files.length > 0 && (
        <Panel title="Files changed" count={files.length}>
          <ul class="files">
            {files.slice(0, 60).map(([path, times]) => (
              <li key={path}>
                <span class="path">
                  <Shown text={relative(path, session?.cwd ?? null)} />
                </span>
                <span class="muted small nowrap">{times}×</span>
              </li>
            ))}
          </ul>
          {files.length > 60 && <p class="muted small">and {files.length - 60} more</p>}
        </Panel>
      )}
      {work.commands.length > 0 && (
        <Panel title="Commands" count={work.commands.length} open={false}>
          <ul class="commands">
            {work.commands.slice(-60).map((command, index) => (
              <li key={index}>
                <code>
                  <Shown text={command.command} />
                </code>
                <span class={`small nowrap ${command.outcome == null || command.outcome === "ok" ? "muted" : "error-text"}`}>
                  {command.outcome ?? (session?.turn == null ? "no result" : "running")}
                </span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** Turns; pressing one shows it in the conversation. */
export function Turns({ id, onTime }: { id: string; onTime: (time: string) => void }) {
  const count = row(id)?.session.value.turns ?? 0;
  const { state } = useLoad(
    (abort) => call("GET /api/v1/sessions/{id}/turns", { path: { id }, query: { after: Math.max(0, count - 100), limit: 100 }, signal: abort }),
    [id, count],
  );
  const turns = state.value.value?.turns ?? [];
  if (turns.length === 0) return state.value.loading ? <Waiting /> : null;
  return (
    <Panel title="Turns" count={count} open={false}>
      <ol class="turns">
        {turns.toReversed().map((turn) => (
          <li key={turn.id}>
            <button type="button" onClick={() => onTime(turn.started_at)}>
              <span class="turn-prompt">{turn.prompt === null ? <em class="untitled">without a prompt</em> : <Shown text={turn.prompt} />}</span>
              <span class="muted small">
                {turn.number} · {turn.outcome == null ? "open" : spaced(turn.outcome)} · {counted(turn.tool_calls, "call")}
                {turn.tool_errors > 0 && `, ${turn.tool_errors} failed`}
                {turn.completed_at != null && ` · ${duration(Date.parse(turn.completed_at) - Date.parse(turn.started_at))}`}
              </span>
            </button>
          </li>
        ))}
      </ol>
      {count > turns.length && (
        <p class="muted small">
          The last {turns.length} of {count} turns.
        </p>
      )}
    </Panel>
  );
}

/** Tokens and cost, including sub-agents. */
export function UsagePanel({ session }: { session: MarkedSession }) {
  const { state } = useLoad(
    (abort) => call("GET /api/v1/usage", { query: { by: "session", session: session.id }, signal: abort }),
    [session.id, session.turns],
  );
  const row_ = state.value.value?.usage.find((entry) => entry.session_id === session.id);
  const { usage } = session;
  const cells: [string, string][] = [
    ["Input", short(usage.input_tokens)],
    ["Output", short(usage.output_tokens)],
    ["From cache", short(usage.cache_read_tokens)],
    ["To cache", short(usage.cache_write_tokens)],
  ];
  if (usage.thinking_tokens !== undefined && usage.thinking_tokens > 0) cells.push(["Thinking", short(usage.thinking_tokens)]);
  if (row_ !== undefined) cells.push(["Cost", dollars(row_.cost_usd)]);
  if (row_?.subagents != null) cells.push(["Sub-agents", `${short(row_.subagents.output_tokens)} out, ${dollars(row_.subagents.cost_usd)}`]);
  if (session.approval_wait_ms > 0) cells.push(["Waited for you", duration(session.approval_wait_ms)]);
  return (
    <Panel title="Usage">
      <dl class="figures">
        {cells.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

/** Labels, which policies can refer to. */
export function LabelsPanel({ session }: { session: MarkedSession }) {
  const key = useSignal("");
  const value = useSignal("");
  const labels = Object.entries(session.labels ?? {});
  const set = (name: string, to: string | null): void => {
    void attempt(() => call("PUT /api/v1/sessions/{id}/labels", { path: { id: session.id }, body: { labels: { [name]: to } } }));
  };
  if (labels.length === 0 && !mayControl.value) return null;
  return (
    <Panel title="Labels" count={labels.length} open={labels.length > 0}>
      {labels.length === 0 && <p class="muted small">Rules of the policy and filters can refer to labels.</p>}
      <ul class="labels">
        {labels.map(([name, label]) => (
          <li key={name} class="chip">
            <Shown text={`${name}=${label}`} />
            {mayControl.value && (
              <button type="button" aria-label={`Remove the label ${visible(name)}`} onClick={() => set(name, null)}>
                <Icon name="cross" size={11} />
              </button>
            )}
          </li>
        ))}
      </ul>
      {mayControl.value && (
        <form
          class="label-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (key.value.trim() === "") return;
            set(key.value.trim(), value.value.trim());
            key.value = "";
            value.value = "";
          }}
        >
          <input aria-label="Key" placeholder="key" maxLength={100} value={key.value} onInput={(event) => (key.value = event.currentTarget.value)} />
          <input aria-label="Value" placeholder="value" maxLength={100} value={value.value} onInput={(event) => (value.value = event.currentTarget.value)} />
          <button type="submit" class="button small">
            Add
          </button>
        </form>
      )}
    </Panel>
  );
}

/** Notes of users and rules. They are stored as events of the session and cannot be deleted. */
export function NotesPanel({ session }: { session: MarkedSession }) {
  const text = useSignal("");
  const failed = useSignal<unknown>(null);
  const { state, again } = useLoad(
    (abort) => call("GET /api/v1/sessions/{id}/notes", { path: { id: session.id }, signal: abort }),
    [session.id, session.status.since, restarts.value],
  );
  const notes = state.value.value?.notes ?? [];
  const add = async (): Promise<void> => {
    failed.value = null;
    try {
      await call("POST /api/v1/sessions/{id}/notes", { path: { id: session.id }, body: { text: text.value } });
      text.value = "";
      again();
    } catch (cause) {
      failed.value = cause;
    }
  };
  if (notes.length === 0 && !mayControl.value) return null;
  return (
    <Panel title="Notes" count={notes.length} open={notes.length > 0}>
      <ul class="prompts">
        {notes.map((note) => (
          <li key={note.sequence}>
            <p class="prompt-text">
              <Shown text={note.text} />
            </p>
            <p class="muted small">{moment(note.at)}</p>
          </li>
        ))}
      </ul>
      {mayControl.value && (
        <form
          class="stack tight"
          onSubmit={(event) => {
            event.preventDefault();
            void add();
          }}
        >
          <textarea
            rows={2}
            aria-label="Note"
            placeholder="What to remember of this session"
            maxLength={2_000}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
          {failed.value !== null && (
            <p class="error-text" role="alert">
              {words(failed.value)}
            </p>
          )}
          <div class="row end">
            <button type="submit" class="button small" disabled={text.value.trim() === ""}>
              Add the note
            </button>
          </div>
        </form>
      )}
    </Panel>
  );
}

/** Queued prompts, which are typed when the session's run waits for one. */
export function Prompts({ session, run }: { session: MarkedSession; run: Run | null }) {
  const text = useSignal("");
  const failed = useSignal<unknown>(null);
  const { state, again } = useLoad(
    (abort) => call("GET /api/v1/prompts", { query: { session: session.id, limit: 20 }, signal: abort }),
    [session.id, session.status.state, restarts.value],
  );
  const prompts = state.value.value?.prompts ?? [];
  const open = prompts.filter((prompt) => prompt.state === "queued" || prompt.state === "delivering");
  useEffect(() => {
    if (open.length === 0) return;
    const timer = setInterval(again, 5_000);
    return () => clearInterval(timer);
  }, [open.length]);
  // For a session that accepts commands, the input is below its conversation.
  const types = run?.terminal && run.state === "running";
  if (!types && prompts.length === 0) return state.value.value === null && state.value.loading ? <Waiting /> : null;
  const queue = async (): Promise<void> => {
    failed.value = null;
    try {
      await call("POST /api/v1/sessions/{id}/prompts", { path: { id: session.id }, body: { text: text.value } });
      text.value = "";
      again();
    } catch (cause) {
      failed.value = cause;
    }
  };
  const cancel = (prompt: Prompt): void => {
    void attempt(async () => {
      await call("POST /api/v1/prompts/{id}/cancel", { path: { id: prompt.id }, body: {} });
      again();
    });
  };
  return (
    <Panel title="Prompt queue" count={open.length}>
      {mayControl.value && types && (
        <form
          class="stack tight"
          onSubmit={(event) => {
            event.preventDefault();
            void queue();
          }}
        >
          <textarea
            rows={3}
            aria-label="Prompt"
            placeholder="Typed when the agent waits for a prompt"
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
          {failed.value !== null && (
            <p class="error-text" role="alert">
              {words(failed.value)}
            </p>
          )}
          <div class="row end">
            <button type="submit" class="button small" disabled={text.value.trim() === ""}>
              Queue the prompt
            </button>
          </div>
        </form>
      )}
      <ul class="prompts">
        {prompts.map((prompt) => (
          <li key={prompt.id}>
            <p class="prompt-text">
              <Shown text={prompt.text} />
            </p>
            <p class="muted small">
              {prompt.state}
              {prompt.why != null && `: ${prompt.why}`} · {moment(prompt.queued_at)}
              {prompt.state === "queued" && mayControl.value && (
                <>
                  {" · "}
                  <button type="button" class="link-button" onClick={() => cancel(prompt)}>
                    cancel
                  </button>
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Commands that continue the session in a terminal. */
export function Continue({ session, run }: { session: MarkedSession; run: Run | null }) {
  const id = shortId(session.id);
  const live = session.status.state !== "exited";
  return (
    <Panel title="Continue in a terminal" open={false}>
      <div class="stack tight">
        {run?.terminal === true && run.state === "running" && live && <Command text={`capture attach ${run.id.slice(-8)}`} about="Attach to its terminal" />}
        {live && session.run_id === null && <Command text={`capture jump ${id}`} about="Bring its terminal to the front" />}
        <Command text={`capture resume ${id}`} about="Resume the session" />
        <Command text={`capture handoff ${id}`} about="Write a handoff note" />
        <Command text={`capture explain ${id}`} about="Explain the status" />
      </div>
    </Panel>
  );
}
