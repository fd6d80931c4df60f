// The order of sessions on Home. It changes only when a session's group does; activity alone moves nothing.

import { inOrder } from "../keys";
import { isShown, isSnoozed, isTop, type Row } from "../live/store";
import { groupBy } from "../text/collect";
import { basename } from "../text/format";
import { titleOf } from "../text/title";

export type View = "active" | "all" | "archived";
export type Grouping = "need" | "project";
export type Group = { key: string; title: string; rows: Row[]; folded: boolean };

/** Whether a row's text contains all words of a filter. */
export function matches(row: Row, filter: string, agent: string): boolean {
  const session = row.session.peek();
  if (agent !== "" && session.provider !== agent) return false;
  if (filter === "") return true;
  const labels = Object.entries(session.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  const text = [
    titleOf(session),
    session.cwd,
    session.provider,
    session.git_branch,
    session.model,
    session.status.activity,
    session.status.state,
    session.status.reason,
    session.id,
    ...labels,
  ]
    .join(" ")
    .toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

const pinnedFirst = (rows: Row[]): Row[] => {
  const pinned = (row: Row): number => (row.session.peek().marks?.pinned === true ? 0 : 1);
  return rows.toSorted((left, right) => pinned(left) - pinned(right));
};
const byStart = (rows: Row[]): Row[] =>
  rows.toSorted((left, right) => {
    const [a, b] = [left.session.peek().started_at, right.session.peek().started_at];
    return a > b ? -1 : a < b ? 1 : left.id < right.id ? -1 : 1;
  });
const byLast = (rows: Row[]): Row[] =>
  rows.toSorted((left, right) => {
    const [a, b] = [left.session.peek().status.since, right.session.peek().status.since];
    return a > b ? -1 : a < b ? 1 : left.id < right.id ? -1 : 1;
  });

/** The groups of a list, in order, without empty ones. */
export function groups(rows: Row[], view: View, grouping: Grouping): Group[] {
  const top = rows.filter(isTop);
  if (view === "archived") {
    const archived = top.filter((row) => row.session.peek().marks?.archived === true);
    return filled([{ key: "archived", title: "Archived", rows: byLast(archived), folded: false }]);
  }
  const shown = top.filter((row) => isShown(row.session.peek().marks));
  const snoozed = top.filter((row) => row.session.peek().marks?.archived !== true && isSnoozed(row.session.peek().marks));
  const later: Group = { key: "snoozed", title: "Snoozed", rows: byLast(snoozed), folded: true };
  if (grouping === "project") {
    const projects = groupBy(shown, (row) => row.session.peek().began_in ?? row.session.peek().cwd ?? "");
    const named = [...projects].sort(([left], [right]) => basename(left).localeCompare(basename(right)) || (left < right ? -1 : 1));
    // Sessions without a directory come last.
    named.sort(([left], [right]) => Number(left === "") - Number(right === ""));
    return filled([
      ...named.map(([project, of]) => ({
        key: `project ${project}`,
        title: project === "" ? "No directory" : project,
        rows: pinnedFirst([...inOrder(of.filter((row) => row.need.peek() !== null)), ...byStart(of.filter((row) => row.need.peek() === null))]),
        folded: false,
      })),
      later,
    ]);
  }
  const needs: Row[] = [];
  const working: Row[] = [];
  const quiet: Row[] = [];
  const ended: Row[] = [];
  for (const row of shown) {
    const { state } = row.session.peek().status;
    if (row.need.peek() !== null) needs.push(row);
    else if (state === "running") working.push(row);
    else if (state === "exited") ended.push(row);
    else quiet.push(row);
  }
  return filled([
    { key: "needs", title: "Needs you", rows: pinnedFirst(inOrder(needs)), folded: false },
    { key: "working", title: "Working", rows: pinnedFirst(byStart(working)), folded: false },
    { key: "quiet", title: "Quiet", rows: pinnedFirst(byLast(quiet)), folded: false },
    later,
    { key: "ended", title: "Ended", rows: byLast(ended), folded: false },
  ]);
}

const filled = (all: Group[]): Group[] => all.filter((group) => group.rows.length > 0);
