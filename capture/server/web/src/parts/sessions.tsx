// The parts of a session in lists: its sign, its words, its times.

import { type Finding, REASONS } from "../api/routes";
import { descendantsOf, now, type Row } from "../live/store";
import { groupBy } from "../text/collect";
import { ago, counted, exactly, millis, relative, shortId } from "../text/format";
import { CONFIDENCE } from "../text/names";
import { givenTitle, type Named, titleOf } from "../text/title";
import type { Sign } from "./icons";
import { SignShape, TONES, WORDS } from "./icons";
import { Shown, Ticked } from "./text";

/** The sign of a row: its need, otherwise its state. */
export const signOf = (row: Row): Sign => row.need.value?.need ?? row.session.value.status.state;

/** The sign and word of a session. */
export function StateWord({ row, reason = true }: { row: Row; reason?: boolean }) {
  const { status } = row.session.value;
  const sign = signOf(row);
  const unsure = status.confidence !== "high";
  return (
    <span class={`state-word ${TONES[sign]}`}>
      <SignShape sign={sign} />
      <span>{WORDS[sign]}</span>
      {reason && status.reason !== null && status.reason !== "quiet" && status.reason !== sign && <span class="reason">{REASONS[status.reason].title}</span>}
      {unsure && <Confidence level={status.confidence} />}
    </span>
  );
}

/** Bars for a confidence below high. */
export function Confidence({ level }: { level: "low" | "medium" | "high" }) {
  const bars = level === "high" ? 3 : level === "medium" ? 2 : 1;
  return (
    <span class="confidence" title={CONFIDENCE[level]}>
      <svg width="12" height="10" viewBox="0 0 12 10" aria-hidden="true" focusable="false">
        {[0, 1, 2].map((bar) => (
          <rect key={bar} x={bar * 4.5} y={7 - bar * 3} width="3" height={3 + bar * 3} rx="0.8" fill="currentColor" opacity={bar < bars ? 1 : 0.25} />
        ))}
      </svg>
      <span class="visually-hidden">{CONFIDENCE[level]}</span>
    </span>
  );
}

/** How long ago, with the exact time. */
export function Since({ time }: { time: string }) {
  return (
    <time dateTime={time} title={exactly(time)}>
      {ago(now.value - millis(time))}
    </time>
  );
}

/** The title of a session; without one, its agent and directory. For an unknown session, its id. */
export function Title({ of, id = "" }: { of: Named | undefined; id?: string }) {
  if (of === undefined) return <span class="untitled">{id === "" ? "Session" : `Session ${shortId(id)}`}</span>;
  const text = <Shown text={titleOf(of)} />;
  return givenTitle(of) === null ? <span class="untitled">{text}</span> : text;
}

function activityOf(row: Row): string | null {
  const session = row.session.value;
  const need = row.need.value;
  const text = need?.what ?? session.status.activity ?? session.summary.current ?? need?.why ?? null;
  if (text === null) return null;
  // A plan is Markdown; remove the markup so that it fits on one line.
  const { reason } = session.status;
  if (reason === "plan") return text.replace(/(^|\s)#{1,6}\s/g, "$1").replace(/\*\*|`/g, "");
  return reason === "edit" ? relative(text, session.cwd) : text;
}

/** Whether a finding quotes what the agent wrote, in which a backtick is a backtick. */
export const quotes = ({ kind }: Finding): boolean => ["approval", "risky_approval", "question", "completion"].includes(kind);

/** What a session is doing, in one line; of a session at rest, what its checks showed comes first. */
export function Activity({ row }: { row: Row }) {
  const { checks } = row.session.value.summary;
  if (checks == null) return <Doing row={row} />;
  return (
    <>
      <Shown text={checks} /> · <Doing row={row} />
    </>
  );
}

function Doing({ row }: { row: Row }) {
  const text = activityOf(row);
  if (text === null) return <>{"\u00a0"}</>;
  const isFinding =
    text.includes("`") && [row, ...descendantsOf(row.id)].some(({ findings }) => findings.value.some((finding) => finding.what === text && !quotes(finding)));
  return isFinding ? <Ticked text={text} /> : <Shown text={text} />;
}

/** Counts of sub-agents that work, and of those that are blocked. */
export function SubagentBadge({ row }: { row: Row }) {
  const below = descendantsOf(row.id);
  const working = below.filter((child) => child.session.value.status.state === "running").length;
  const stopped = below.filter((child) => STOPS.has(signOf(child))).length;
  return (
    <>
      {working > 0 && <span class="chip">{counted(working, "sub-agent")}</span>}
      {stopped > 0 && <span class="chip chip-need">{counted(stopped, "sub-agent")} stopped</span>}
    </>
  );
}

/** Needs of a sub-agent that its parent cannot meet. A sub-agent that is done with its prompt has simply ended. */
const STOPS = new Set<Sign>(["approval", "question", "failure", "stuck"]);

/** The states of sub-agents, counted: `2 working · 1 needs approval`. */
export function rolledUp(signs: Sign[]): string {
  return [...groupBy(signs, (sign) => WORDS[sign])].map(([word, of]) => `${of.length} ${word.toLowerCase()}`).join(" · ");
}
