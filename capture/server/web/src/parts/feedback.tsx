// The page's own messages: short notices, loading and empty states, and failures next to what failed.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ApiFailure, words } from "../api/client";
import { outdated } from "../live/store";
import { connection } from "../live/stream";
import { Icon, type IconName } from "./icons";
import { Ticked } from "./text";

/** Undoes the action a notice reports. */
export type Undo = () => void;
type Notice = { id: number; text: string; kind: "done" | "failed"; undo: Undo | null };
const notices = signal<Notice[]>([]);
let next = 1;

/** Shows a notice for a few seconds. */
export function notify(text: string, kind: Notice["kind"] = "done", undo: Undo | null = null): void {
  const id = next++;
  notices.value = [...notices.value.slice(-2), { id, text, kind, undo }];
  setTimeout(() => dismiss(id), kind === "failed" || undo !== null ? 10_000 : 4_000);
}

/** Performs an action, and shows a notice if it fails. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (cause) {
    notify(words(cause), "failed");
    return undefined;
  }
}

const dismiss = (id: number): void => {
  notices.value = notices.value.filter((notice) => notice.id !== id);
};

/** The place where notices appear. */
export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((notice) => (
        <div key={notice.id} class={`notice notice-${notice.kind}`}>
          <Icon name={notice.kind === "failed" ? "warning" : "check"} />
          <span>
            <Ticked text={notice.text} />
          </span>
          {notice.undo !== null && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                dismiss(notice.id);
                notice.undo?.();
              }}
            >
              Undo
            </button>
          )}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
            <Icon name="cross" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}

/** Placeholder lines for a text that is loading. */
export function Loading({ lines = 4, label = "Loading" }: { lines?: number; label?: string }) {
  return (
    <div class="loading" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} class={`bone bone-${index % 4}`} />
      ))}
    </div>
  );
}

/** The placeholder for an empty list. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} size={32} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A failure, and how to deal with it. While the page says that it is not connected, its parts do not repeat that; they
 * are read when the connection is back. */
export function Failed({ cause, retry }: { cause: unknown; retry?: () => void }) {
  const isLive = connection.value === "live";
  const wasLive = useRef(isLive);
  const isOffline = cause instanceof ApiFailure && cause.status === 0;
  useEffect(() => {
    if (isLive && !wasLive.current && isOffline) retry?.();
    wasLive.current = isLive;
  }, [isLive]);
  if (isOffline && outdated.value !== null) return <p class="not-read muted">Not read yet</p>;
  return (
    <div class="failed" role="alert">
      <Icon name="warning" />
      <span>
        <Ticked text={words(cause)} />
      </span>
      {retry !== undefined && (
        <button type="button" class="button small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
