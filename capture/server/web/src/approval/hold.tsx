// Buttons that decide. None works in its first 400 ms, nor just after the page came back or the queue moved; one that
// could do harm has to be held.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Time in which a decision that appears cannot be taken, milliseconds. */
export const INERT = 400;
/** Time for which a risky decision is held, milliseconds. */
export const HOLD = 900;

/** Whether decisions can be taken; not for a moment after anything of `keys` changed, or `rest` was called. */
export function useReady(keys: unknown[]): { ready: () => boolean; shown: boolean; rest: () => void } {
  const since = useRef(performance.now());
  const shown = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const rest = (): void => {
    since.current = performance.now();
    shown.value = false;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => (shown.value = true), INERT);
  };
  // Before the next key.
  useLayoutEffect(() => {
    rest();
    addEventListener("focus", rest);
    document.addEventListener("visibilitychange", rest);
    return () => {
      clearTimeout(timer.current);
      removeEventListener("focus", rest);
      document.removeEventListener("visibilitychange", rest);
    };
  }, keys);
  return { ready: () => performance.now() - since.current >= INERT && document.visibilityState === "visible", shown: shown.value, rest };
}

/** Presses a button by a key of its card. */
export type Press = () => void;
type Props = {
  children: ComponentChildren;
  onDecide: () => void;
  ready: boolean;
  busy: boolean;
  class: string;
  hold: boolean;
  shortcut?: string | undefined;
  pressed?: { current: Press | null };
};

/** A button that decides at a press, or when it was held. */
export function DecideButton({ children, onDecide, ready, busy, class: name, hold, shortcut, pressed }: Props) {
  const holding = useSignal(false);
  const asked = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const held = useRef(false);
  const letGo = useRef<AbortController | null>(null);
  const usable = ready && !busy;
  const end = (): void => {
    clearTimeout(timer.current);
    letGo.current?.abort();
    holding.value = false;
  };
  const begin = (byKey: boolean): void => {
    if (!usable || holding.value) return;
    held.current = false;
    holding.value = true;
    timer.current = setTimeout(() => {
      held.current = true;
      end();
      onDecide();
    }, HOLD);
    // Which key came up is not asked: with Shift it has another name, and while Cmd is down macOS tells none.
    letGo.current = new AbortController();
    const options = { capture: true, signal: letGo.current.signal };
    addEventListener("keyup", end, options);
    addEventListener("keydown", (event) => event.repeat || end(), options);
    addEventListener("blur", (event) => (byKey || event.target === window) && end(), options);
    document.addEventListener("visibilitychange", end, options);
  };
  // What begins under one label does not end under another.
  useLayoutEffect(() => end, [hold, usable]);
  if (pressed !== undefined) pressed.current = () => (hold ? begin(true) : usable && onDecide());
  if (!hold) {
    return (
      <button
        key="press"
        type="button"
        class={`button ${name}`}
        aria-disabled={!usable}
        aria-keyshortcuts={shortcut}
        onKeyDown={(event) => event.repeat && event.preventDefault()}
        onClick={() => usable && onDecide()}
      >
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
      key="hold"
      type="button"
      class={`button hold ${name} ${holding.value ? "holding" : ""}`}
      aria-disabled={!usable}
      aria-keyshortcuts={shortcut}
      aria-description="Hold for a second"
      onPointerDown={(event) => event.button === 0 && begin(false)}
      onPointerUp={end}
      onPointerLeave={end}
      onPointerCancel={end}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        if (!event.repeat) begin(true);
      }}
      onClick={onClick}
    >
      <span class="hold-fill" aria-hidden="true" />
      <span class="hold-words">{asked.value ? "Press again to confirm" : children}</span>
    </button>
  );
}
