// Copies a text and reports whether that worked.

import { useSignal } from "@preact/signals";
import { Icon } from "./icons";

/** A button that copies exactly this text. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const state = useSignal<"ready" | "copied" | "failed">("ready");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      state.value = "copied";
    } catch {
      state.value = "failed";
    }
    setTimeout(() => (state.value = "ready"), 1_500);
  };
  const said = state.value === "copied" ? "Copied" : state.value === "failed" ? "Select and copy by hand" : label;
  return (
    <button type="button" class="icon-button copy" aria-label={said} title={said} onClick={() => void copy()}>
      <Icon name={state.value === "copied" ? "check" : "copy"} />
      <span class="visually-hidden" role="status">
        {state.value === "ready" ? "" : said}
      </span>
    </button>
  );
}

/** A command to run in a terminal, with its button. */
export function Command({ text, about }: { text: string; about?: string }) {
  return (
    <div class="command-line">
      {about !== undefined && <span class="muted small">{about}</span>}
      <div class="command-box">
        <code>{text}</code>
        <CopyButton text={text} label="Copy command" />
      </div>
    </div>
  );
}
