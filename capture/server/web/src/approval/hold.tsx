// Buttons that decide. They are inactive for the first 400 ms, and for a moment after the page becomes visible or the
// queue moves. A button for a risky decision must be held.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Time for which a decision is inactive after it appears, milliseconds. */
export const INERT = 400;
/** Time for which a risky decision must be held, milliseconds. */
export const HOLD = 900;

/** Whether decisions are active. They are inactive for a moment after any of `keys` changed or `rest` was called. */
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
  // Runs before the next key event.
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

/** Presses a button through a key of its card. */
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

/** A button that decides when pressed, or when held long enough. */
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
    // Any key release ends the hold: with Shift the key has another name, and while Cmd is down macOS reports no
    // releases.
    letGo.current = new AbortController();
    const options = { capture: true, signal: letGo.current.signal };
    addEventListener("keyup", end, options);
    addEventListener("keydown", (event) => event.repeat || end(), options);
    addEventListener("blur", (event) => (byKey || event.target === window) && end(), options);
    document.addEventListener("visibilitychange", end, options);
  };
  // A hold that begins under one label must not end under another.
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
  // A screen reader presses without holding, so ask for confirmation instead.
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
