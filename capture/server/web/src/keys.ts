// Keys that work on every page. Views add their own. A key decides something only inside a focused card.

import { effect, signal } from "@preact/signals";
import { NEEDS } from "./live/need";
import { needing, type Row } from "./live/store";
import { open, opened } from "./parts/dialogs";
import { address, go, route } from "./router";

/** A key and its effect, for the list of keys. */
export const KEYS: [string[], string][] = [
  [["]", "["], "Next or previous session that needs you, or request in Approvals"],
  [["j", "k"], "Select the next or previous request or session"],
  [["`"], "Back to where you were before the jump"],
  [["/"], "Filter the sessions"],
  [["Ctrl", "K"], "Search or jump to anything"],
  [["?"], "Show the keys"],
  [["↑", "↓"], "Move in a list, or between requests"],
  [["Enter"], "Open what is selected"],
  [["p", "z", "."], "Pin, snooze for an hour, or archive the selected session"],
  [["a"], "Allow, in a selected request; hold it if the request is risky or long"],
  [["d", "r"], "Deny, or deny with a reason, in a selected request"],
  [["e"], "Explain the status, on a session"],
  [["Space"], "Play or pause, in a recording"],
  [["←", "→"], "Five seconds back or on, in a recording"],
];

const STORED = "capture.keys";

/** Whether single letters and signs are shortcuts. Users who dictate, or press keys by accident, can turn them off.
 * Stored only in this browser. */
export const singleKeys = signal(stored());

function stored(): boolean {
  try {
    return localStorage.getItem(STORED) !== "off";
  } catch {
    return true;
  }
}

/** Turns shortcuts of a single letter or sign on or off. */
export function setSingleKeys(on: boolean): void {
  singleKeys.value = on;
  try {
    if (on) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, "off");
  } catch {
    // Without storage, the browser forgets the choice.
  }
}

/** Whether a key event is a single-key shortcut, and these are on. */
export const isShortcut = (event: KeyboardEvent): boolean =>
  singleKeys.value && !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing && !isTyping(event.target);

/** Whether a key event goes to a text field. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (element === null || element.tagName === undefined) return false;
  return /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable || element.closest("[data-keys=own]") !== null;
}

/** The sessions that need the user, most urgent first. */
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

/** The page's requests that can be decided, in order. */
const cards = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("main [data-approval]")];
const isOpen = (card: HTMLElement): boolean => !card.classList.contains("card-done");

/** The request that received the focus without a key or press of the user, and when, ms. Its decisions are inactive
 * for a moment. */
export const handed = signal<{ id: string; at: number } | null>(null);

/** Moves the focus to a request automatically, except while the user types or a dialog is open. */
export function give(card: HTMLElement | null | undefined): void {
  if (card == null || isTyping(document.activeElement) || opened.peek() !== null) return;
  handed.value = { id: card.dataset["approval"] ?? "", at: performance.now() };
  select(card);
}

function select(card: HTMLElement): void {
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: card.offsetHeight > innerHeight * 0.7 ? "start" : "nearest" });
}

/** Moves the focus to the next or previous open request of the page; `false` if there is none. */
export function selectRequest(step: 1 | -1): boolean {
  const all = cards();
  const at = all.findIndex((card) => card.contains(document.activeElement));
  const behind = step === 1 ? all.slice(at + 1) : all.slice(0, at < 0 ? all.length : at).reverse();
  const next = behind.find(isOpen) ?? (step === 1 ? all.find(isOpen) : all.findLast(isOpen));
  if (next === undefined) return false;
  select(next);
  return true;
}

/** Whether an arrow key has no function of its own at its target: no field, no list, nothing scrollable. */
function isFree(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return element === null || element === document.body || element.matches?.("h1, main, [data-approval]") === true;
}

let cameFrom: string | null = null;
/** How long a jump waits for its request, ms. */
const ARRIVES = 2_000;
/** The session a jump leads to; its request is selected if it appears in time. */
let wanted: { id: string; until: number } | null = null;

/** Called by a session's page once its requests are shown: after a jump to it, the first one is selected. */
export function arrived(id: string): void {
  const isWanted = wanted !== null && wanted.id === id && performance.now() < wanted.until;
  wanted = null;
  if (isWanted) requestAnimationFrame(() => give(cards().find(isOpen)));
}

/** Goes to the next or previous session that needs the user. */
export function jump(step: 1 | -1): void {
  const order = inOrder(needing.value);
  if (order.length === 0) return;
  const page = route.value;
  const here = page.name === "session" ? order.findIndex((row) => row.id === page.id) : -1;
  if (here < 0) cameFrom = address.value;
  const next = here < 0 ? (step === 1 ? 0 : order.length - 1) : (here + step + order.length) % order.length;
  const row = order[next];
  if (row === undefined) return;
  if (next === here) {
    selectRequest(step);
    return;
  }
  go(`/s/${row.id}`);
  const need = row.need.peek()?.need;
  if (need === "approval" || need === "question") wanted = { id: row.id, until: performance.now() + ARRIVES };
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
    if (opened.value !== null) return;
    const arrow = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : null;
    if (arrow !== null && !event.shiftKey && !event.altKey && route.value.name === "approvals" && isFree(event.target) && selectRequest(arrow)) {
      event.preventDefault();
      return;
    }
    if (!isShortcut(event)) return;
    const inQueue = route.value.name === "approvals";
    switch (event.key) {
      case "j":
        if (!selectRequest(1)) return;
        break;
      case "k":
        if (!selectRequest(-1)) return;
        break;
      case "]":
        if (!inQueue || !selectRequest(1)) jump(1);
        break;
      case "[":
        if (!inQueue || !selectRequest(-1)) jump(-1);
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
  // Navigating elsewhere cancels the jump.
  const stop = effect(() => {
    address.value;
    wanted = null;
  });
  return () => {
    stop();
    document.removeEventListener("keydown", onKey);
  };
}
