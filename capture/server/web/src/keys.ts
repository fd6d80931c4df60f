// Keys that work on every page. Views add their own; a key never decides anything outside a focused card.

import { needing, type Row } from "./live/store";
import { NEEDS } from "./live/need";
import { open, opened } from "./parts/dialogs";
import { address, go, route } from "./router";

/** A key and what it does, for the list of keys. */
export const KEYS: [string[], string][] = [
  [["]"], "Next session that needs you"],
  [["["], "Previous session that needs you"],
  [["`"], "Back to where you were before the jump"],
  [["/"], "Filter the sessions"],
  [["Ctrl", "K"], "Search or jump to anything"],
  [["?"], "Show the keys"],
  [["↑", "↓"], "Move in a list"],
  [["Enter"], "Open what is selected"],
  [["z"], "Snooze the selected session for an hour"],
  [["."], "Archive the selected session"],
  [["p"], "Pin the selected session"],
  [["a"], "Allow, in a selected request"],
  [["d"], "Deny, in a selected request"],
  [["r"], "Deny with a reason, in a selected request"],
  [["e"], "Explain the status, on a session"],
  [["Space"], "Play or pause, in a recording"],
  [["←", "→"], "Five seconds back or on, in a recording"],
];

/** Whether a key goes to a field, where it is text. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (element === null || element.tagName === undefined) return false;
  return /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable || element.closest("[data-keys=own]") !== null;
}

/** The sessions that need a person, the most urgent first. */
export function inOrder(rows: Row[]): Row[] {
  const key = (row: Row): [number, number, string] => {
    const need = row.need.peek();
    return need === null ? [NEEDS.length, 1, ""] : [NEEDS.indexOf(need.need), need.risky ? 0 : 1, need.since];
  };
  return rows.toSorted((left, right) => {
    const [a, b] = [key(left), key(right)];
    return a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : a[2] > b[2] ? 1 : left.id < right.id ? -1 : 1);
  });
}

let cameFrom: string | null = null;

/** Goes to the next session that needs a person, or the one before. */
export function jump(step: 1 | -1): void {
  const order = inOrder(needing.value);
  if (order.length === 0) return;
  const page = route.value;
  const here = page.name === "session" ? order.findIndex((row) => row.id === page.id) : -1;
  if (here < 0) cameFrom = address.value;
  const next = here < 0 ? (step === 1 ? 0 : order.length - 1) : (here + step + order.length) % order.length;
  const row = order[next];
  if (row !== undefined) go(`/s/${row.id}`);
}

/** Listens until the returned function is called. */
export function listenToKeys(): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.isComposing) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open("palette");
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || opened.value !== null) return;
    switch (event.key) {
      case "]":
        jump(1);
        break;
      case "[":
        jump(-1);
        break;
      case "`":
        if (cameFrom !== null) go(cameFrom);
        cameFrom = null;
        break;
      case "?":
        open("keys");
        break;
      case "/": {
        const field = document.querySelector<HTMLInputElement>("[data-filter]");
        if (field === null) open("palette");
        else field.focus();
        break;
      }
      default:
        return;
    }
    event.preventDefault();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
