// The user's input to a session that accepts commands: capture's own agent, or an agent driven over its protocol.

import { useSignal } from "@preact/signals";
import { call, words } from "../api/client";
import type { MarkedSession, Run, SessionAction } from "../api/routes";
import { mayControl } from "../me";
import { notify } from "../parts/feedback";

const DONE: Partial<Record<SessionAction, string>> = {
  steer: "The agent takes it up at the next step",
  follow_up: "The agent takes it up after this turn",
  abort: "Interrupted",
  pause: "Pauses at the next step",
  resume: "Goes on",
};

/** Whether a turn is paused. */
export const isPaused = ({ status, turn }: MarkedSession): boolean => turn !== null && status.state === "waiting" && status.reason === "interrupted";

/** The input field for a session, and the buttons that stop it. */
export function Say({ session, run }: { session: MarkedSession; run: Run }) {
  const text = useSignal("");
  const busy = useSignal(false);
  const failed = useSignal<unknown>(null);
  const takes = (action: SessionAction): boolean => run.takes?.includes(action) === true;
  const { state } = session.status;
  const isWorking = session.turn !== null && (state === "running" || state === "waiting_approval");
  const paused = isPaused(session);
  const send = async (action: SessionAction, message?: string): Promise<void> => {
    if (busy.peek()) return;
    busy.value = true;
    failed.value = null;
    try {
      await call("POST /api/v1/sessions/{id}/input", {
        path: { id: session.id },
        body: message === undefined ? { do: action } : { do: action, text: message },
      });
      if (message !== undefined) text.value = "";
      const done = DONE[action];
      if (done !== undefined && (message === undefined || isWorking)) notify(done);
    } catch (cause) {
      failed.value = cause;
    }
    busy.value = false;
  };
  // Between two turns the message is a prompt; a running turn receives it directly.
  const first: SessionAction | null =
    isWorking || paused ? (takes("steer") ? "steer" : takes("follow_up") ? "follow_up" : null) : takes("prompt") ? "prompt" : null;
  const message = text.value.trim();
  const submit = (action: SessionAction | null): void => {
    if (action !== null && message !== "") void send(action, message);
  };
  if (!mayControl.value) return null;
  const label = first === "prompt" ? "Prompt" : first === "steer" ? "Message to the running turn" : "Message after this turn";
  return (
    <form
      class="say"
      onSubmit={(event) => {
        event.preventDefault();
        submit(first);
      }}
    >
      {failed.value !== null && (
        <p class="error-text" role="alert">
          {words(failed.value)}
        </p>
      )}
      {first !== null && (
        <textarea
          rows={2}
          aria-label={label}
          aria-keyshortcuts="Control+Enter"
          placeholder={first === "prompt" ? "What should the agent do?" : "What should the agent know or do differently?"}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
            event.preventDefault();
            submit(first);
          }}
        />
      )}
      <div class="say-actions">
        {paused && takes("resume") && (
          <button type="button" class="button small" disabled={busy.value} onClick={() => void send("resume")}>
            Resume
          </button>
        )}
        {isWorking && takes("pause") && (
          <button type="button" class="button small" disabled={busy.value} title="Stops the turn at the next step" onClick={() => void send("pause")}>
            Pause
          </button>
        )}
        {(isWorking || paused) && takes("abort") && (
          <button type="button" class="button small danger" disabled={busy.value} title="Ends the turn now" onClick={() => void send("abort")}>
            Interrupt
          </button>
        )}
        <span class="say-space" />
        {first === "steer" && takes("follow_up") && (
          <button
            type="button"
            class="button small"
            title="The agent takes it up after this turn"
            disabled={busy.value || message === ""}
            onClick={() => submit("follow_up")}
          >
            Queue
          </button>
        )}
        {first !== null && (
          <button type="submit" class="button small primary" disabled={busy.value || message === ""}>
            {first === "prompt" ? "Send" : first === "steer" ? "Steer" : "Queue"}
          </button>
        )}
      </div>
    </form>
  );
}
