// Reads data from the server for a view.

import { type Signal, useSignal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";

/** A value that is loading, loaded, or failed; the last value stays while it is read again. */
export type Loaded<T> = { value: T | null; cause: unknown; loading: boolean };

/** Reads when a key changes, and on demand. */
export function useLoad<T>(read: (abort: AbortSignal) => Promise<T>, keys: unknown[]): { state: Signal<Loaded<T>>; again: () => void } {
  const state = useSignal<Loaded<T>>({ value: null, cause: null, loading: true });
  const count = useSignal(0);
  const turn = count.value;
  useEffect(() => {
    const abort = new AbortController();
    state.value = { ...state.peek(), loading: true };
    read(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) state.value = { value, cause: null, loading: false };
      },
      (cause: unknown) => {
        if (!abort.signal.aborted) state.value = { ...state.peek(), cause, loading: false };
      },
    );
    return () => abort.abort();
  }, [...keys, turn]);
  const again = useCallback(() => {
    count.value = count.peek() + 1;
  }, []);
  return { state, again };
}
