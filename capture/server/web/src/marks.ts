// Pin, snooze and archive: stored by the server, the same in every view.

import { call } from "./api/client";
import type { Marks, MarksRequest } from "./api/routes";
import { mark, type Row, row } from "./live/store";
import { attempt, notify } from "./parts/feedback";
import type { Item } from "./parts/menu";

const HOUR = 3_600_000;

/** Changes the marks of a session, shows them once the server has stored them, and offers to undo the change. */
export async function setMarks(id: string, change: MarksRequest, done: string, undoable = true): Promise<void> {
  const before = row(id)?.session.peek().marks ?? null;
  await attempt(async () => {
    const marks = await call("PUT /api/v1/sessions/{id}/marks", { path: { id }, body: change });
    mark(id, marks);
    notify(done, "done", undoable ? () => void setMarks(id, reversed(change, before), "Undone", false) : null);
  });
}

/** The change that restores the previous marks. */
export function reversed(change: MarksRequest, before: Marks | null): MarksRequest {
  const back: MarksRequest = {};
  if (change.pinned !== undefined) back.pinned = before?.pinned === true;
  if (change.archived !== undefined) back.archived = before?.archived === true;
  if (change.snoozed_until !== undefined) back.snoozed_until = before?.snoozed_until ?? null;
  return back;
}

const snooze = (id: string, until: number, done: string): Promise<void> => setMarks(id, { snoozed_until: new Date(until).toISOString() }, done);

/** Snoozes for an hour. */
export const snoozeHour = (id: string): Promise<void> => snooze(id, Date.now() + HOUR, "Snoozed for an hour");

/** Pins or unpins. */
export const togglePin = (row: Row): Promise<void> => {
  const pinned = row.session.value.marks?.pinned !== true;
  return setMarks(row.id, { pinned }, pinned ? "Pinned" : "Unpinned");
};

/** Archives a session, or brings it back. */
export const toggleArchive = (row: Row): Promise<void> => {
  const archived = row.session.value.marks?.archived !== true;
  return setMarks(row.id, { archived }, archived ? "Archived" : "Brought back");
};

/** The menu items for the marks of a session. */
export function markItems(id: string): Item[] {
  const known = row(id);
  if (known === undefined) return [];
  const marks = known.session.value.marks ?? null;
  const morning = new Date();
  morning.setDate(morning.getDate() + 1);
  morning.setHours(9, 0, 0, 0);
  const snoozes: Item[] =
    marks?.snoozed_until != null && Date.parse(marks.snoozed_until) > Date.now()
      ? [{ label: "End the snooze", run: () => void setMarks(id, { snoozed_until: null }, "Shown again") }]
      : [
          { label: "Snooze for an hour", run: () => void snoozeHour(id) },
          { label: "Snooze for four hours", run: () => void snooze(id, Date.now() + 4 * HOUR, "Snoozed for four hours") },
          { label: "Snooze until tomorrow", run: () => void snooze(id, morning.getTime(), "Snoozed until tomorrow, 9:00") },
        ];
  return [
    { label: marks?.pinned === true ? "Unpin" : "Pin", run: () => void togglePin(known) },
    ...snoozes,
    { label: marks?.archived === true ? "Bring back from the archive" : "Archive", run: () => void toggleArchive(known) },
  ];
}
