// Whether a run has a playable recording, and the link to it.

import { type Signal, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../api/client";
import type { Recording } from "../api/routes";
import { Icon } from "./icons";

/** Recordings requested so far, by run; `null` if there is none. */
const known = new Map<string, Signal<Recording | null>>();

/** The recording of a run, once the server has confirmed that it can be played. */
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
    // Most runs have no recording; then no link is shown.
    look().catch(() => undefined);
    return () => abort.abort();
  }, [run]);
  return answer.value;
}

/** A link to a run's recording, if there is one. */
export function RecordingLink({ id }: { id: string }) {
  if (useRecording(id) === null) return null;
  return (
    <a class="button small" href={`/recordings/${id}`}>
      <Icon name="play" />
      <span>Recording</span>
    </a>
  );
}
