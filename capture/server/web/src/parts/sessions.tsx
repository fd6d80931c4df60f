// What a session looks like in lists: its sign, its words, its times.

import { now, childrenOf, type Row } from "../live/store";
import type { Sign } from "./icons";
import { SignShape, TONES, WORDS } from "./icons";
import { ago, exactly, millis, relative } from "../text/format";
import { CONFIDENCE, REASONS } from "../text/names";
import { Shown } from "./text";

/** What a row shows first: its need, else its state. */
export const signOf = (row: Row): Sign => row.need.value?.need ?? row.session.value.status.state;

/** Sign and word of a session. */
export function StateWord({ row, reason = true }: { row: Row; reason?: boolean }) {
  const { status } = row.session.value;
  const sign = signOf(row);
  const unsure = status.confidence !== "high";
  return (
    <span class={`state-word ${TONES[sign]}`}>
      <SignShape sign={sign} />
      <span>{WORDS[sign]}</span>
      {reason && status.reason !== null && status.reason !== "quiet" && <span class="reason">{REASONS[status.reason]}</span>}
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

/** How long ago, and when exactly. */
export function Since({ time }: { time: string }) {
  return (
    <time dateTime={time} title={exactly(time)}>
      {ago(now.value - millis(time))}
    </time>
  );
}

/** The title of a session. */
export function Title({ text }: { text: string | null }) {
  return text === null || text.trim() === "" ? <em class="untitled">Untitled session</em> : <Shown text={text} />;
}

/** What a session is doing, in one line. */
export function activityOf(row: Row): string | null {
  const session = row.session.value;
  const need = row.need.value;
  const text = need?.what ?? session.status.activity ?? session.summary.current ?? need?.why ?? null;
  if (text === null) return null;
  // A plan is Markdown, which one line has no room for.
  const { reason } = session.status;
  if (reason === "plan") return text.replace(/(^|\s)#{1,6}\s/g, "$1").replace(/\*\*|`/g, "");
  return reason === "edit" ? relative(text, session.cwd) : text;
}

/** Sub-agents that work. */
export function SubagentBadge({ row }: { row: Row }) {
  const working = childrenOf(row.id).filter((child) => child.session.value.status.state === "running").length;
  return working === 0 ? null : <span class="chip">{working === 1 ? "1 sub-agent" : `${working} sub-agents`}</span>;
}
