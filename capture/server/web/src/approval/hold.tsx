// Buttons that decide. None works in its first 400 ms, nor just after the page came back or the queue moved; one that
// could do harm has to be held.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Time in which a decision that appears cannot be taken, milliseconds. */
export const INERT = 400;
/** Time for which a risky decision is held, milliseconds. */
export const HOLD = 900;

/** Whether decisions can be taken; not for a moment after anything of `keys` changed. */
export function useReady(keys: unknown[]): { ready: () => boolean; shown: boolean } {
  const since = useRef(performance.now());
  const shown = useSignal(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const restart = (): void => {
      since.current = performance.now();
      shown.value = false;
      clearTimeout(timer);
      timer = setTimeout(() => (shown.value = true), INERT);
    };
    restart();
    addEventListener("focus", restart);
    document.addEventListener("visibilitychange", restart);
    return () => {
      clearTimeout(timer);
      removeEventListener("focus", restart);
      document.removeEventListener("visibilitychange", restart);
    };
  }, keys);
  return { ready: () => performance.now() - since.current >= INERT && document.visibilityState === "visible", shown: shown.value };
}

/** Presses and releases a button by a key of its card. */
export type Pressed = { begin: () => void; end: () => void };
type Props = { children: ComponentChildren; onDecide: () => void; ready: boolean; busy: boolean; class: string; hold: boolean; shortcut?: string | undefined; pressed?: { current: Pressed | null } };

/** A button that decides at a press, or when it was held. */
export function DecideButton({ children, onDecide, ready, busy, class: name, hold, shortcut, pressed }: Props) {
  const holding = useSignal(false);
  const asked = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const held = useRef(false);
  const usable = ready && !busy;
  const begin = (): void => {
    if (!usable || holding.value) return;
    held.current = false;
    holding.value = true;
    timer.current = setTimeout(() => {
      held.current = true;
      holding.value = false;
      onDecide();
    }, HOLD);
  };
  const end = (): void => {
    clearTimeout(timer.current);
    holding.value = false;
  };
  useEffect(() => end, []);
  if (pressed !== undefined) pressed.current = hold ? { begin, end } : { begin: () => usable && onDecide(), end: () => undefined };
  if (!hold) {
    return (
      <button type="button" class={`button ${name}`} aria-disabled={!usable} aria-keyshortcuts={shortcut} onClick={() => usable && onDecide()}>
        {children}
      </button>
    );
  }
  // A screen reader presses without holding: it is asked once more instead.
  const onClick = (event: MouseEvent): void => {
    if (event.detail !== 0 || !usable || held.current) return;
    if (asked.value) onDecide();
    asked.value = !asked.value;
  };
  return (
    <button
      type="button"
      class={`button hold ${name} ${holding.value ? "holding" : ""}`}
      aria-disabled={!usable}
      aria-keyshortcuts={shortcut}
      aria-description="Hold for a second"
      onPointerDown={(event) => event.button === 0 && begin()}
      onPointerUp={end}
      onPointerLeave={end}
      onPointerCancel={end}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        if (!event.repeat) begin();
      }}
      onKeyUp={end}
      onBlur={end}
      onClick={onClick}
    >
      <span class="hold-fill" aria-hidden="true" />
      <span class="hold-words">{asked.value ? "Press again to confirm" : children}</span>
    </button>
  );
}
