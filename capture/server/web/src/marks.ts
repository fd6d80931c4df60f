// Pin, snooze and archive: kept by the server, the same in every view.

import { call } from "./api/client";
import type { MarksRequest } from "./api/routes";
import { mark, row, type Row } from "./live/store";
import { attempt, notify } from "./parts/feedback";
import type { Item } from "./parts/menu";

const HOUR = 3_600_000;

/** Changes marks of a session; shows them once the server has them. */
export async function setMarks(id: string, change: MarksRequest, done: string): Promise<void> {
  await attempt(async () => {
    const marks = await call("PUT /api/v1/sessions/{id}/marks", { path: { id }, body: change });
    mark(id, marks);
    notify(done);
  });
}

const snooze = (id: string, until: number, done: string): Promise<void> =>
  setMarks(id, { snoozed_until: new Date(until).toISOString() }, done);

/** Snoozes for an hour. */
export const snoozeHour = (id: string): Promise<void> => snooze(id, Date.now() + HOUR, "Snoozed for an hour");

/** Pins or unpins. */
export const togglePin = (row: Row): Promise<void> => {
  const pinned = row.session.value.marks?.pinned !== true;
  return setMarks(row.id, { pinned }, pinned ? "Pinned" : "Unpinned");
};

/** Archives, or brings back. */
export const toggleArchive = (row: Row): Promise<void> => {
  const archived = row.session.value.marks?.archived !== true;
  return setMarks(row.id, { archived }, archived ? "Archived" : "Brought back");
};

/** The commands for the marks of a session. */
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
