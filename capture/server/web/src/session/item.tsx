// One item of a conversation.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { words } from "../api/client";
import type { ConversationItem, ItemText, OpenApproval, Subagent, TextRef, ToolKind } from "../api/routes";
import { RequestBody } from "../approval/body";
import { request as readRequest } from "../approval/request";
import { Icon, type IconName, SignShape } from "../parts/icons";
import { Markdown } from "../parts/markdown";
import { Output, Shown } from "../parts/text";
import { bytes, clock, counted, duration, exactly, relative } from "../text/format";
import { STATES, spaced } from "../text/names";
import { known, readWhole } from "./whole";

const ORIGINS = { human: "You", steering: "You, while it worked", wakeup: "Wake-up", agent: "Agent", command: "Command", monitor: "A rule" } as const;

/** The request for which a call waits. */
export function requestOf(item: ConversationItem & { type: "tool_call" }, pending: OpenApproval[]): OpenApproval | undefined {
  if ((item.result ?? null) !== null) return undefined;
  const calls = pending.filter(({ call_id }) => call_id != null);
  const named = item.call_id === "" ? undefined : calls.find(({ call_id }) => call_id === item.call_id);
  // A hook that names no call is matched by the subject of its request.
  const fits = ({ call_id, tool, command, subject }: OpenApproval): boolean =>
    call_id == null && tool === item.name && item.title != null && (command === item.title || subject === item.title);
  return named ?? pending.find(fits);
}

/** An item; a marked one is the target of a link. A call without a result is shown as running only while a turn is
 * `ongoing`. Files below `cwd` are named relative to it. `asked`: the session's open requests. */
export function ItemView({
  item,
  marked,
  ongoing,
  cwd,
  asked,
}: {
  item: ConversationItem;
  marked: boolean;
  ongoing: boolean;
  cwd: string | null;
  asked: OpenApproval[];
}) {
  const name = `item item-${item.type} ${marked ? "item-marked" : ""}`;
  const frame = (children: ComponentChildren) => (
    <div class={name} data-sequence={item.sequence} data-target={marked ? "" : undefined}>
      {children}
      <a class="item-time" href={`?at=${item.sequence}`} title={`${exactly(item.at)}, link to this place`}>
        {clock(item.at)}
      </a>
    </div>
  );
  switch (item.type) {
    case "prompt":
      return frame(
        <div class="prompt">
          <span class="speaker">
            <Icon name="person" size={14} /> {ORIGINS[item.origin]}
            {item.attachments !== undefined && item.attachments > 0 && <span class="muted"> · {counted(item.attachments, "attachment")}</span>}
          </span>
          <Long text={item.text} reference={item.text_ref ?? null} render={(text) => <Markdown text={text} />} />
        </div>,
      );
    case "message":
      return frame(
        <>
          {item.thinking != null && item.thinking !== "" && (
            <details class="thinking">
              <summary>Thinking</summary>
              <Markdown text={item.thinking} />
            </details>
          )}
          {item.text !== "" && <Long text={item.text} reference={item.text_ref ?? null} render={(text) => <Markdown text={text} />} />}
        </>,
      );
    case "tool_call":
      return frame(<ToolView item={item} ongoing={ongoing} cwd={cwd} request={requestOf(item, asked)} />);
    case "subagent":
      return frame(<SubagentLine subagent={item} />);
    case "approval":
      // While the request is open, its card and its call show the same.
      if (asked.some(({ id }) => id === item.approval_id)) return null;
      return frame(
        <a class="line" href={`/approvals/${item.approval_id}`}>
          <Icon name="approvals" size={14} />
          <span>
            Permission request: {spaced(item.state)}
            {item.by != null && ` by ${item.by === "grant" ? "an earlier decision" : item.by}`}
          </span>
          {item.subject != null && (
            <span class="line-detail mono">
              <Shown text={item.subject} strictness="exact" />
            </span>
          )}
        </a>,
      );
    case "question":
      return frame(
        <div class="question">
          <span class="speaker">
            <Icon name="question" size={14} /> Question
          </span>
          <Long text={item.text} reference={item.text_ref ?? null} render={(text) => <Markdown text={text} />} />
          {item.options !== undefined && item.options.length > 0 && (
            <ul class="options">
              {item.options.map((option, index) => (
                <li key={index} class="chip">
                  <Shown text={option} />
                </li>
              ))}
            </ul>
          )}
          {item.answer != null && (
            <p>
              <span class="muted">Answer:</span> <Shown text={item.answer.text} />
            </p>
          )}
        </div>,
      );
    case "error":
      return frame(
        <div class="error-box">
          <Icon name="warning" size={15} />
          <span>
            <strong>{spaced(item.class)}</strong>
            {item.code != null && item.code !== item.class && ` (${item.code})`}: <Shown text={item.text} />
          </span>
        </div>,
      );
    case "compaction":
      return frame(
        <details class="line-details">
          <summary class="divider">
            <span>Context compacted{item.trigger == null ? "" : `, ${item.trigger}`}</span>
          </summary>
          <Long text={item.text} reference={item.text_ref ?? null} render={(text) => <Markdown text={text} />} />
        </details>,
      );
    case "turn_end":
      return (
        <div class={`${name} divider`} data-sequence={item.sequence}>
          <span>
            Turn {item.number} · {spaced(item.outcome)} · {duration(item.duration_ms)}
          </span>
        </div>
      );
  }
}

/** Maximum length of a text that is loaded as soon as it comes into view, bytes. */
const AT_ONCE = 256 * 1024;
/** Distance from the window at which such a text is loaded. */
const AHEAD = "600px";

/** A text whose middle may be missing: the whole text is loaded when it comes into view, or on a press if it is very
 * long. With a gap, it is not rendered as Markdown. */
function Long({
  text,
  reference,
  render,
  plain = false,
}: {
  text: string;
  reference: TextRef | null;
  render: (text: string) => ComponentChildren;
  plain?: boolean;
}) {
  const hash = reference?.hash ?? "";
  const read = useSignal<{ hash: string; text: string } | null>(null);
  const failed = useSignal<unknown>(null);
  /** The text being read; another one may be requested before it arrives. */
  const reading = useRef<string | null>(null);
  const element = useRef<HTMLDivElement>(null);
  const whole = reference === null ? text : read.value?.hash === hash ? read.value.text : known(hash);
  const load = async (): Promise<void> => {
    if (reading.current === hash) return;
    reading.current = hash;
    failed.value = null;
    const [text, cause] = await readWhole(hash).then(
      (text) => [text, null] as const,
      (cause: unknown) => [null, cause] as const,
    );
    if (reading.current !== hash) return;
    reading.current = null;
    if (text === null) failed.value = cause;
    else read.value = { hash, text };
  };
  const atOnce = whole === null && reference !== null && reference.stored && reference.length <= AT_ONCE;
  useEffect(() => {
    const target = element.current;
    if (!atOnce || target === null) return;
    const observer = new IntersectionObserver(
      (seen) => {
        if (seen.some(({ isIntersecting }) => isIntersecting)) void load();
      },
      { root: target.closest("[data-scroller]"), rootMargin: AHEAD },
    );
    observer.observe(target);
    return () => observer.disconnect();
  }, [atOnce, hash]);
  if (whole !== null || reference === null) return <>{render(whole ?? text)}</>;
  return (
    <div ref={element}>
      {plain ? (
        render(text)
      ) : (
        <p class="cut">
          <Shown text={text} />
        </p>
      )}
      <p class="long">
        {!reference.stored ? (
          <span class="muted">A part is missing. The whole text ({bytes(reference.length)}) is in the agent's file only.</span>
        ) : atOnce && failed.value === null ? (
          <span class="muted">Reading the whole text ({bytes(reference.length)})…</span>
        ) : (
          <>
            <span class="muted">A part is missing. </span>
            <button type="button" class="link-button" onClick={() => void load()}>
              Show the whole text ({bytes(reference.length)})
            </button>
          </>
        )}
        {failed.value !== null && <span class="error-text"> {words(failed.value)}</span>}
      </p>
    </div>
  );
}

const TOOL_ICONS: Record<ToolKind, IconName> = {
  execute: "terminal",
  edit: "edit",
  read: "read",
  fetch: "globe",
  mcp: "tool",
  plan: "overview",
  question: "question",
  subagent: "branch",
  other: "tool",
};

function ToolView({
  item,
  ongoing,
  cwd,
  request,
}: {
  item: ConversationItem & { type: "tool_call" };
  ongoing: boolean;
  cwd: string | null;
  request: OpenApproval | undefined;
}) {
  const shown = useSignal(false);
  const result = item.result ?? null;
  const failed = result !== null && result.outcome !== "ok";
  return (
    <div class={`tool ${failed ? "tool-failed" : ""}`}>
      <button type="button" class="tool-line" aria-expanded={shown.value} onClick={() => (shown.value = !shown.value)}>
        <span class={shown.value ? "fold" : "fold closed"}>
          <Icon name="down" size={11} />
        </span>
        <Icon name={TOOL_ICONS[item.tool]} size={14} />
        <span class="tool-called">{item.name === "" ? "tool" : <Shown text={item.name} />}</span>
        <span class="tool-title">
          {item.title != null && <Shown text={item.tool === "edit" || item.tool === "read" ? relative(item.title, cwd) : item.title} />}
        </span>
        <span class={`tool-result ${failed ? "error-text" : ""}`}>
          {request !== undefined ? (
            <span class="tool-waits">waits for your decision</span>
          ) : result === null ? (
            ongoing ? (
              "running"
            ) : (
              "no result"
            )
          ) : failed ? (
            `${result.outcome}${result.exit_code == null ? "" : ` (${result.exit_code})`}`
          ) : (
            ""
          )}
          {result?.duration_ms != null && <span class="muted"> {duration(result.duration_ms)}</span>}
        </span>
      </button>
      {item.subagents?.map((subagent) => (
        <SubagentLine key={subagent.session_id} subagent={subagent} />
      ))}
      {shown.value && (
        <div class="tool-body">
          <Input tool={item.tool} input={item.input} title={item.title ?? null} cwd={cwd} />
          {result !== null && result.text !== "" && (
            <>
              <p class="tool-heading">Result</p>
              <Long
                text={result.text}
                reference={result.text_ref ?? null}
                plain
                render={(text) => (
                  <pre class="output" tabIndex={0} aria-label="result">
                    <Output text={text} />
                  </pre>
                )}
              />
            </>
          )}
        </div>
      )}
    </div>
  );
}

function Input({ tool, input, title, cwd }: { tool: ToolKind; input: ItemText; title: string | null; cwd: string | null }) {
  const read = useMemo(() => {
    const kind =
      tool === "edit" ? "edit" : tool === "execute" ? "command" : tool === "plan" ? "plan" : tool === "question" ? "question" : tool === "mcp" ? "mcp" : null;
    return readRequest({
      kind,
      input: input.text,
      command: tool === "execute" ? commandOf(input.text, title) : null,
      exact: true,
      paths: [],
      url: null,
      subject: null,
      question: null,
    });
  }, [tool, input.text, title]);
  const unfolded = useSignal<ReadonlySet<number>>(new Set());
  if (read.body.kind === "questions") return <pre class="output">{input.text}</pre>;
  return <RequestBody request={read} unfolded={unfolded} cwd={cwd} past />;
}

function commandOf(input: string, title: string | null): string | null {
  try {
    const fields = JSON.parse(input) as Record<string, unknown> | null;
    const command = fields?.["command"] ?? fields?.["cmd"];
    if (typeof command === "string") return command;
  } catch {
    // The input was cut or is not JSON; its title contains the command.
  }
  return title;
}

function SubagentLine({ subagent }: { subagent: Subagent }) {
  return (
    <a class="line subagent" href={`/s/${subagent.session_id}`}>
      <SignShape sign={subagent.state} size={14} />
      <span>Sub-agent{subagent.agent_type == null ? "" : ` ${subagent.agent_type}`}</span>
      <span class="line-detail">{subagent.title != null && <Shown text={subagent.title} />}</span>
      <span class="muted">
        {STATES[subagent.state].toLowerCase()} · {counted(subagent.turns, "turn")}
      </span>
    </a>
  );
}
