// One permission request: its content, the arguments for and against it, and the decision. A decision is shown only
// after the server confirmed it, and it is bound to the revision that was shown.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { ApiFailure, call, words } from "../api/client";
import type { ApprovalState, Decision, OpenApproval } from "../api/routes";
import { give, handed, isShortcut, singleKeys } from "../keys";
import { approvals, closed, row } from "../live/store";
import { connection } from "../live/stream";
import { elevated, mayControl } from "../me";
import { stepUp } from "../parts/dialogs";
import { notify } from "../parts/feedback";
import { Icon } from "../parts/icons";
import { Since, Title } from "../parts/sessions";
import { Shown, Ticked } from "../parts/text";
import { ago, capital, counted, exactly, moment, relative } from "../text/format";
import { AGENTS } from "../text/names";
import { givenTitle } from "../text/title";
import { visible } from "../text/visible";
import { hasFolded, isLong, Path, RequestBody, Rest, sizeOf } from "./body";
import { DecideButton, type Press, useReady } from "./hold";
import { answers, type Choices, Questions } from "./questions";
import { type Body, type Question, request, sameRequest } from "./request";

type Scope = "once" | "session" | "rule";

/** Headings for the kinds of requests. */
export const KINDS: Record<string, string> = {
  command: "Run a command",
  edit: "Edit a file",
  write: "Write a file",
  read: "Read a file",
  plan: "Approve a plan",
  mcp: "Call an MCP tool",
  fetch: "Fetch from the network",
  trust: "Trust",
  question: "Answer a question",
};

const CLOSED: Record<ApprovalState, string> = {
  pending: "Pending",
  allowed: "Allowed",
  denied: "Denied",
  answered_elsewhere: "Answered in the agent",
  expired: "Expired: nobody answered in time, or it is no longer known whether the agent waits",
  withdrawn: "Withdrawn: the agent no longer asks",
};

/** The requests decided on this page. */
const decidedHere = new Set<string>();

/** The subject of a request in one line: a plan has none, and a file is named relative to its directory. */
export function subjectOf({ kind, command, subject, cwd, tool }: OpenApproval): string {
  if (kind === "plan") return "Approve a plan";
  return command ?? (subject == null ? null : relative(subject, cwd)) ?? KINDS[kind ?? ""] ?? tool ?? "Permission request";
}

/** Why a request is risky, according to the request or a finding of the monitor. */
function useRisk(approval: OpenApproval): string | null {
  const found = useComputed(
    () =>
      row(approval.session_id)?.findings.value.find(
        (finding) => finding.kind === "risky_approval" && finding.approval_id === approval.id && finding.state !== "resolved",
      )?.why ?? null,
  );
  return approval.risk ?? found.value;
}

/** A request. When `queue` changes, the buttons are inactive for a moment. */
export function ApprovalCard({
  approval: streamed,
  queue,
  focused = false,
  inSession = false,
}: {
  approval: OpenApproval;
  queue: number;
  focused?: boolean;
  inSession?: boolean;
}) {
  const id = streamed.id;
  const detail = useSignal<OpenApproval | null>(null);
  const outcome = useSignal<OpenApproval | null>(null);
  const failed = useSignal<unknown>(null);
  const busy = useSignal<"allow" | "deny" | null>(null);
  /** The decision pressed here, if it came too late. */
  const lost = useSignal<"allow" | "deny" | null>(null);
  const scope = useSignal<Scope>("once");
  const reason = useSignal("");
  const reasoning = useSignal(false);
  const bulk = useSignal(false);
  const choices = useSignal<Choices>({});
  const unfolded = useSignal<ReadonlySet<number>>(new Set());
  /** Whether a decided request is shown whole, and not in one line. */
  const open = useSignal(focused && streamed.state !== "pending");
  const card = useRef<HTMLElement>(null);
  const reasonField = useRef<HTMLTextAreaElement>(null);
  const allowing = useRef<Press | null>(null);
  const heading = useId();

  const read = (): void => {
    call("GET /api/v1/approvals/{id}", { path: { id } })
      .then((value) => {
        detail.value = value;
        if (value.state !== "pending") outcome.value = value;
      })
      .catch((cause: unknown) => (failed.value = cause));
  };
  const isNear = useSignal(false);
  useLayoutEffect(() => watchNear(card.current, (is) => (isNear.value = is)), []);
  // When the stream reports a change, read the whole request again: a decision is bound to its revision.
  const last = useRef<OpenApproval | null>(null);
  useEffect(() => {
    if (!isNear.value || last.current === streamed) return;
    last.current = streamed;
    read();
  }, [streamed, isNear.value]);

  useEffect(() => {
    if (!focused) return;
    give(card.current);
  }, [focused]);

  const approval = useMemo<OpenApproval>(() => ({ ...streamed, ...detail.value, state: streamed.state }), [streamed, detail.value]);
  const parsed = useMemo(() => request(approval), [approval]);
  const risk = useRisk(approval);
  // A request read from a screen may be incomplete, so the current screen is shown next to it.
  const isReadOff = approval.answer === "keys" && !approval.exact;
  const screen = useSignal<string[] | null>(null);
  const below = useSignal(true);
  // Each question has its answers below it.
  const isHidden = below.value && parsed.body.kind !== "questions";
  const held = risk !== null || isReadOff || isHidden || isLong(parsed) || hasFolded(parsed, unfolded.value);
  const done = outcome.value ?? closed.value.get(id) ?? null;
  // What the user viewed of an earlier revision does not count for this one.
  useEffect(() => {
    unfolded.value = new Set();
  }, [streamed.revision, done === null]);
  const session = row(approval.session_id)?.session.value;
  const same = (approval.same_as ?? []).filter((other) => {
    const found = approvals.value.get(other);
    return other !== id && found !== undefined && sameRequest(approval, { ...found, input: found.input ?? approval.input ?? null });
  });

  const { revision } = approval;
  const selected = handed.value?.id === id ? handed.value.at : 0;
  const { ready, shown, rest } = useReady([id, revision, queue, done === null, detail.value === null, selected]);
  useEffect(() => {
    if (!isReadOff || detail.value === null) return undefined;
    let isCurrent = true;
    screen.value = null;
    call("GET /api/v1/runs/{id}/screen", { path: { id: approval.session_id } })
      .then((now) => isCurrent && (screen.value = now.lines))
      .catch((cause: unknown) => isCurrent && (failed.value = cause));
    return () => {
      isCurrent = false;
    };
  }, [isReadOff, revision, detail.value === null]);
  useLayoutEffect(() => watchBelow(card.current, (is) => (below.value = is)), [done === null, screen.value, parsed]);
  const live = connection.value === "live";
  const unanswerable = approval.unanswerable ?? null;
  const questions = parsed.body.kind === "questions" ? parsed.body.questions : null;
  const given = questions === null ? null : answers(questions, choices.value);
  // An agent may begin to wait for an answer later, and only reading the request again shows that.
  useEffect(() => {
    if (unanswerable === null || done !== null || !isNear.value) return;
    const timer = setInterval(() => document.visibilityState === "visible" && read(), 2_000);
    return () => clearInterval(timer);
  }, [unanswerable === null, done === null, isNear.value]);
  const usable = shown && live && mayControl.value && unanswerable === null && busy.value === null && done === null && detail.value !== null;

  const decide = async (decision: "allow" | "deny"): Promise<void> => {
    if (!ready() || !usable) return;
    if (decision === "allow" && scope.value === "rule" && !elevated.value) {
      stepUp(() => undefined);
      return;
    }
    busy.value = decision;
    failed.value = null;
    try {
      outcome.value = await send(id, decision, revision);
      lost.value = null;
      if (bulk.value) await others(decision);
    } catch (cause) {
      failed.value = cause;
      if (cause instanceof ApiFailure && cause.code === "step_up_required") stepUp(() => undefined);
      if (cause instanceof ApiFailure && cause.status === 409) {
        const told = late(cause, decision);
        lost.value = told === null ? null : decision;
        if (told !== null) {
          open.value = true;
          notify(told, "failed");
        }
        read();
      }
    } finally {
      busy.value = null;
    }
  };
  const send = async (of: string, decision: "allow" | "deny", revision: OpenApproval["revision"]): Promise<OpenApproval> => {
    const body: Decision = { decision };
    if (revision !== undefined && revision !== "") body.revision = revision;
    if (decision === "deny" && reason.value.trim() !== "") body.message = reason.value.trim();
    if (decision === "allow" && given !== null) body.answers = given;
    if (decision === "allow" && scope.value === "session") body.scope = "session";
    if (decision === "allow" && scope.value === "rule") body.rule = true;
    const decided = await call("POST /api/v1/approvals/{id}/decision", { path: { id: of }, body });
    decidedHere.add(of);
    return decided;
  };
  // Equal requests are decided one after another, each after reading it again; those that changed are left alone.
  const others = async (decision: "allow" | "deny"): Promise<void> => {
    for (const other of same) {
      const fresh = await call("GET /api/v1/approvals/{id}", { path: { id: other } });
      if (fresh.state === "pending" && sameRequest(approval, fresh)) await send(other, decision, fresh.revision);
    }
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== card.current || !isShortcut(event)) return;
    if (!["a", "d", "r"].includes(event.key) || done !== null || !mayControl.value || unanswerable !== null) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.repeat) return;
    if (event.key === "r") {
      reason_();
      return;
    }
    // A key may decide only a request whose buttons are in view, as with a press of the button.
    const row = card.current?.querySelector(".decide");
    if (row != null && !isInView(row)) {
      row.scrollIntoView({ block: "center" });
      rest();
      return;
    }
    if (event.key === "d") void decide("deny");
    // The key acts like the button: a decision that must be held must be held with the key too. Questions are answered
    // in their form.
    else if (questions === null && ready()) allowing.current?.();
  };
  // Runs before the next key event, because text typed from now on is the reason.
  useLayoutEffect(() => {
    if (reasoning.value) reasonField.current?.focus();
  }, [reasoning.value]);
  const reason_ = (): void => {
    reasoning.value = true;
    reasonField.current?.focus();
  };

  const kind = approval.kind === null ? "Permission request" : (KINDS[approval.kind] ?? "Permission request");
  const isFolded = done !== null && !open.value;
  return (
    <article
      class={`card ${risk !== null && done === null ? "card-risky" : ""} ${done !== null ? "card-done" : ""} ${isFolded ? "card-folded" : ""}`}
      aria-labelledby={heading}
      tabIndex={-1}
      ref={card}
      data-approval={id}
      onKeyDown={onKeyDown}
    >
      {done !== null && (
        <div class="done-line">
          {isFolded && (
            <h2 id={heading} class="done-subject ellipsis" title={visible(subjectOf(approval), "exact")}>
              <Shown text={subjectOf(approval)} strictness="exact" />
            </h2>
          )}
          <Done approval={done} lost={lost.value} />
          <button
            type="button"
            class="icon-button"
            aria-expanded={open.value}
            aria-label={open.value ? "Hide the request" : "Show the request"}
            onClick={() => (open.value = !open.value)}
          >
            <span class={open.value ? "fold" : "fold closed"}>
              <Icon name="down" size={14} />
            </span>
          </button>
        </div>
      )}
      <header class="card-head">
        <div class="card-title">
          <h2 id={isFolded ? undefined : heading}>
            {kind}
            {approval.tool !== null && approval.kind !== "question" && approval.kind !== "plan" && (
              <span class="tool-name">
                <Shown text={approval.tool} strictness="exact" />
              </span>
            )}
          </h2>
          <p class="card-where">
            {(inSession || session === undefined || givenTitle(session) !== null) && AGENTS[approval.provider]}
            {!inSession && (
              <>
                {session === undefined || givenTitle(session) !== null ? " in " : ""}
                <a href={`/s/${approval.session_id}`}>
                  <Title of={session} id={approval.session_id} />
                </a>
              </>
            )}
            {approval.agent_id != null && <span class="chip">sub-agent</span>}
            {approval.cwd !== null && !(inSession && approval.cwd === session?.cwd) && (
              <span class="path">
                <Shown text={approval.cwd} strictness="exact" />
              </span>
            )}
          </p>
        </div>
        <span class="card-wait" title={exactly(approval.opened_at)}>
          <Icon name="clock" size={14} />
          {done === null ? <Since time={approval.opened_at} /> : waited(done)}
        </span>
      </header>
      {isFolded ? null : done !== null ? (
        <>
          {approval.boundary != null && (
            <p class="risk">
              <Icon name="warning" />
              <span>
                <strong>You said at {moment(approval.boundary.at)}:</strong> <Shown text={approval.boundary.said} strictness="exact" />
              </span>
            </p>
          )}
          {questions === null ? (
            <RequestBody request={parsed} unfolded={unfolded} cwd={approval.cwd} files={approval.files} />
          ) : (
            <Asked questions={questions} given={given} />
          )}
          {failed.value !== null && !(failed.value instanceof ApiFailure && failed.value.status === 409) && (
            <p class="error-text" role="alert">
              {words(failed.value)}
            </p>
          )}
        </>
      ) : (
        <>
          {risk !== null && (
            <p class="risk">
              <Icon name="warning" />
              <span>
                <strong>Risky:</strong> <Shown text={risk} strictness="exact" />
              </span>
            </p>
          )}
          {questions === null ? (
            <RequestBody request={parsed} unfolded={unfolded} cwd={approval.cwd} files={approval.files} />
          ) : (
            <Questions id={id} questions={questions} choices={choices} disabled={!mayControl.value || unanswerable !== null} />
          )}
          {questions !== null && <Rest rest={parsed.rest} />}
          {screen.value !== null && <SeenOnScreen lines={screen.value} />}
          {approval.cannot_allow != null && approval.excerpt == null && (
            <p class="census census-warns">
              <Icon name="warning" size={14} />
              <Ticked text={approval.cannot_allow} />
            </p>
          )}
          <Facts approval={approval} body={parsed.body} />
          {unanswerable !== null ? (
            <p class="unanswerable">
              <Icon name="terminal" />
              <span>
                <Ticked text={capital(unanswerable)} />
              </span>
            </p>
          ) : !mayControl.value ? (
            <p class="unanswerable">
              <span>
                This device may only look. Pair it with the scope <code>control</code> to decide.
              </span>
            </p>
          ) : (
            <>
              {questions === null && <ScopeChoice id={id} scope={scope} approval={approval} />}
              {same.length > 0 && questions === null && (
                <label class="option bulk">
                  <input
                    type="checkbox"
                    checked={bulk.value}
                    disabled={scope.value !== "once"}
                    onChange={(event) => (bulk.value = event.currentTarget.checked)}
                  />
                  <span>Decide {counted(same.length, "equal request", "equal requests")} the same way, once each</span>
                </label>
              )}
              {reasoning.value && (
                <label class="field">
                  <span>Reason, which the agent receives when you deny</span>
                  <textarea
                    ref={reasonField}
                    rows={2}
                    value={reason.value}
                    onInput={(event) => (reason.value = event.currentTarget.value)}
                    placeholder="Use pnpm instead."
                  />
                </label>
              )}
              {failed.value !== null && (
                <p class="error-text" role="alert">
                  {conflict(failed.value)}
                </p>
              )}
              <div class="decide">
                <div class="decide-deny">
                  <DecideButton
                    class="danger"
                    hold={false}
                    ready={usable}
                    busy={busy.value !== null}
                    onDecide={() => void decide("deny")}
                    shortcut={singleKeys.value ? "d" : undefined}
                  >
                    {busy.value === "deny" ? "Denying…" : questions === null ? "Deny" : "Decline"}
                  </DecideButton>
                  {!reasoning.value && (
                    <button type="button" class="button quiet" aria-keyshortcuts={singleKeys.value ? "r" : undefined} onClick={reason_}>
                      Reason…
                    </button>
                  )}
                </div>
                <DecideButton
                  class="primary allow"
                  hold={held}
                  ready={usable && approval.cannot_allow == null && (!isReadOff || screen.value !== null) && (questions === null || given !== null)}
                  busy={busy.value !== null}
                  onDecide={() => void decide("allow")}
                  shortcut={singleKeys.value ? "a" : undefined}
                  pressed={allowing}
                >
                  {busy.value === "allow" ? "Sending…" : label(approval, scope.value, held, questions !== null)}
                </DecideButton>
              </div>
            </>
          )}
        </>
      )}
    </article>
  );
}

/** The screen from which a request was read. */
function SeenOnScreen({ lines }: { lines: string[] }) {
  const filled = lines.reduce((last, line, index) => (line.trim() === "" ? last : index + 1), 0);
  return (
    <figure class="seen-on-screen">
      <figcaption class="muted small">This is the agent’s screen. A key answers its dialog.</figcaption>
      <pre class="exact" tabIndex={0} aria-label="the agent’s screen">
        <Shown text={lines.slice(0, filled).join("\n")} strictness="reading" />
      </pre>
    </figure>
  );
}

/** Whether an element is visible: inside the window, and neither scrolled away nor covered. */
function isInView(element: Element): boolean {
  const { left, top, width, bottom } = element.getBoundingClientRect();
  return [top + 1, bottom - 1].every((y) => element.contains(document.elementFromPoint(left + width / 2, y)));
}

/** Distance from the window at which a request is loaded, so that it is complete when it comes into view. */
const AHEAD = "400px";

/** Reports whether a card is in or near the window. */
function watchNear(card: HTMLElement | null, tell: (isNear: boolean) => void): (() => void) | undefined {
  if (card === null) return undefined;
  const observer = new IntersectionObserver((seen) => tell(seen.at(-1)?.isIntersecting === true), { rootMargin: AHEAD });
  observer.observe(card);
  return () => observer.disconnect();
}

/** Height of the bars above and below the page, px. */
const BARS = 110;

/** Reports whether part of a request is hidden when it is answered: below the edge of its box or of the window. */
function watchBelow(card: HTMLElement | null, tell: (isBelow: boolean) => void): (() => void) | undefined {
  const button = card?.querySelector<HTMLElement>(".decide .allow");
  if (card == null || button == null) return undefined;
  // Elements for screen readers only are never visible. Lines of a diff are clipped only by their box, and there may be
  // thousands.
  const boxes = [
    ...card.querySelectorAll<HTMLElement>(".request-body, .request-body *:not(.visually-hidden, .diff-line, .diff-line *), .seen-on-screen .exact"),
  ];
  const measure = (): void => {
    const begins = Math.min(...boxes.map((box) => box.getBoundingClientRect().top));
    const isCut = boxes.some((box) => {
      const { overflowX, overflowY } = getComputedStyle(box);
      return (overflowY !== "visible" && box.scrollHeight > box.clientHeight + 1) || (overflowX !== "visible" && box.scrollWidth > box.clientWidth + 1);
    });
    // A phone zooms out if the page is wider than the window, and then reports a larger window.
    const { clientWidth, clientHeight } = document.documentElement;
    const height = Math.min(window.innerHeight, clientHeight, window.screen.height) * Math.min(1, window.screen.width / clientWidth);
    // In the page of a session the card itself scrolls, below its buttons.
    const scrolls = getComputedStyle(card).overflowY !== "visible" && card.scrollHeight > card.clientHeight + 1;
    card.toggleAttribute("data-scrolls", scrolls);
    tell(isCut || scrolls || button.getBoundingClientRect().bottom - begins > height - BARS);
  };
  const observer = new ResizeObserver(measure);
  observer.observe(card);
  window.addEventListener("resize", measure);
  measure();
  return () => {
    observer.disconnect();
    window.removeEventListener("resize", measure);
  };
}

function label(approval: OpenApproval, scope: Scope, held: boolean, asks: boolean): string {
  if (asks) return "Send the answer";
  const verb =
    approval.kind === "plan" ? "Approve the plan" : scope === "once" ? "Allow once" : scope === "session" ? "Allow in this session" : "Allow and add the rule";
  return held ? `Hold: ${verb.toLowerCase()}` : verb;
}

/** The earlier decision, for a user who pressed too late; `null` if there is none. */
function late({ details: { state, decided_by: by, device, decided_at: at } }: ApiFailure, pressed: "allow" | "deny"): string | null {
  if (state === "pending" || !isState(state)) return null;
  const where =
    by === "policy"
      ? " by the policy"
      : by === "grant"
        ? " by an earlier decision"
        : typeof device === "string"
          ? ` in ${visible(device)}`
          : state === "answered_elsewhere"
            ? " in the agent"
            : by === "person"
              ? " by a person"
              : "";
  return `Already ${state === "answered_elsewhere" ? "answered" : state}${where}${typeof at === "string" ? ` at ${moment(at)}` : ""}.${unused(state, pressed)}`;
}

const isState = (state: unknown): state is ApprovalState => typeof state === "string" && Object.hasOwn(CLOSED, state);

/** Reports that a decision was not used, unless it was the same. */
const unused = (state: ApprovalState, pressed: "allow" | "deny"): string =>
  state === (pressed === "allow" ? "allowed" : "denied") ? "" : pressed === "allow" ? " What you allowed was not used." : " Your denial was not used.";

/** Who decided first, if someone did. */
function conflict(cause: unknown): string {
  if (cause instanceof ApiFailure && cause.status === 409) {
    const { state, decided_by: by, device, decided_at: at } = cause.details;
    const when = typeof at === "string" ? ` at ${moment(at)}` : "";
    if (typeof by === "string")
      return `Answered elsewhere by ${by === "person" ? `a person${typeof device === "string" ? ` on ${visible(device)}` : ""}` : by === "policy" ? "the policy" : "an earlier decision"}${when}.`;
    if (state === "answered_elsewhere") return `Answered in the agent${when}.`;
  }
  return words(cause);
}

/** Answered questions, with the options chosen here. */
function Asked({ questions, given }: { questions: Question[]; given: Record<string, string> | null }) {
  return (
    <dl class="rest">
      {questions.map(({ question }, index) => (
        <div key={index}>
          <dt>
            <Shown text={question} strictness="exact" />
          </dt>
          <dd>{given?.[question] != null && <Shown text={given[question]} strictness="exact" />}</dd>
        </div>
      ))}
    </dl>
  );
}

/** How long a closed request waited. */
function waited({ waited_ms, opened_at, closed_at }: OpenApproval): string {
  const ms = waited_ms ?? (closed_at == null ? null : Date.parse(closed_at) - Date.parse(opened_at));
  return ms === null ? "closed" : `waited ${ago(ms)}`;
}

function Done({ approval, lost }: { approval: OpenApproval; lost: "allow" | "deny" | null }) {
  const by =
    approval.by === "policy"
      ? " by the policy"
      : approval.by === "grant"
        ? " by an earlier decision for the session"
        : approval.by === "person"
          ? ` by a person${decidedHere.has(approval.id) ? " on this device" : approval.device == null ? "" : ` on ${visible(approval.device)}`}`
          : "";
  const sign = approval.state === "allowed" ? "check" : approval.state === "denied" ? "cross" : "clock";
  return (
    <p class={`done done-${approval.state}`} role="status">
      <Icon name={sign} />
      <span>
        {lost !== null && "Already "}
        {lost === null ? CLOSED[approval.state] : CLOSED[approval.state].toLowerCase()}
        {by}
        {approval.closed_at != null && <> at {moment(approval.closed_at)}</>}
        {approval.state === "denied" && approval.message != null && approval.message !== "" && (
          <>
            : <Shown text={approval.message} />
          </>
        )}
        {lost !== null && unused(approval.state, lost) !== "" && <strong>.{unused(approval.state, lost)}</strong>}
      </span>
    </p>
  );
}

/** Facts the user should know in addition to the request itself. */
function Facts({ approval, body }: { approval: OpenApproval; body: Body }) {
  // The head of a file's changes names it and its size.
  const named = body.kind === "changes" ? body.files.map(({ path }) => path) : [];
  const files = (approval.files ?? []).filter(({ path }) => !named.includes(path));
  const policy = approval.policy ?? null;
  if (files.length === 0 && policy === null && approval.sandbox == null && approval.more_files !== true && approval.confidence === "high") return null;
  return (
    <dl class="facts">
      {files.length > 0 && (
        <div>
          <dt>Files</dt>
          <dd>
            <ul>
              {files.map((file) => (
                <li key={file.path}>
                  <Path path={file.path} cwd={approval.cwd} /> <span class="muted">{sizeOf(file)}</span>
                </li>
              ))}
              {approval.more_files === true && <li class="muted">and files that are not listed</li>}
            </ul>
          </dd>
        </div>
      )}
      {files.length === 0 && approval.more_files === true && (
        <div>
          <dt>Files</dt>
          <dd>It may run or change files that capture cannot list.</dd>
        </div>
      )}
      {approval.sandbox != null && (
        <div>
          <dt>Sandbox</dt>
          <dd>{approval.sandbox === "none" ? "None: what you allow runs with your rights." : <Shown text={approval.sandbox} strictness="exact" />}</dd>
        </div>
      )}
      {policy !== null && (
        <div>
          <dt>Policy</dt>
          <dd>
            <strong>{policy.decision}</strong>: <Ticked text={policy.reason} /> <span class="muted">({policy.rule})</span>
          </dd>
        </div>
      )}
      {approval.confidence !== "high" && (
        <div>
          <dt>Certainty</dt>
          <dd>capture is not certain that the agent waits for this.</dd>
        </div>
      )}
    </dl>
  );
}

function ScopeChoice({ id, scope, approval }: { id: string; scope: { value: Scope }; approval: OpenApproval }) {
  const rule = approval.suggested_rule ?? null;
  const scopes: [Scope, string, string][] = [
    ["once", "Once", "This request only"],
    ["session", "This session", "The same request again in this session, until the server stops"],
    ["rule", "Always", "Adds the rule below to your policy"],
  ];
  const open = scopes.filter(([name]) => name === "once" || (name === "session" && approval.repeatable === true) || (name === "rule" && rule !== null));
  if (open.length === 1 || approval.kind === "plan") return null;
  return (
    <fieldset class="scope">
      <legend>Allow</legend>
      <div class="scope-choices">
        {open.map(([name, word, about]) => (
          <label key={name} class="scope-choice" title={about}>
            <input type="radio" name={`scope-${id}`} checked={scope.value === name} onChange={() => (scope.value = name)} />
            <span>{word}</span>
          </label>
        ))}
      </div>
      {scope.value === "session" && <p class="muted small">The same request again in this session is allowed without asking, until the server stops.</p>}
      {scope.value === "rule" && rule !== null && (
        <div class="rule">
          <p class="muted small">This rule is added to your policy. It needs a confirmation at your terminal.</p>
          <pre tabIndex={0} aria-label="the rule">
            <Shown text={rule} strictness="exact" />
          </pre>
        </div>
      )}
    </fieldset>
  );
}
