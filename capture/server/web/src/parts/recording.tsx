// Whether a run has a recording that can be played, and the link to it.

import { type Signal, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../api/client";
import type { Recording } from "../api/routes";
import { Icon } from "./icons";

/** What was asked for, by run; `null` where there is none. */
const known = new Map<string, Signal<Recording | null>>();

/** The recording of a run, once the server said that it can be played. */
export function useRecording(run: string | null): Recording | null {
  let found = known.get(run ?? "");
  if (found === undefined) {
    found = signal(null);
    known.set(run ?? "", found);
  }
  const answer = found;
  useEffect(() => {
    if (run === null || answer.peek() !== null) return;
    const abort = new AbortController();
    const look = async (): Promise<void> => {
      answer.value = await call("GET /api/v1/runs/{id}/recording", { path: { id: run }, signal: abort.signal });
    };
    // Most runs are not recorded: nothing is offered then.
    look().catch(() => undefined);
    return () => abort.abort();
  }, [run]);
  return answer.value;
}

/** Leads to the recording of a run, where there is one. */
export function RecordingLink({ id }: { id: string }) {
  if (useRecording(id) === null) return null;
  return (
    <a class="button small" href={`/recordings/${id}`}>
      <Icon name="play" />
      <span>Recording</span>
    </a>
  );
}
