// Dialogs over the page: the palette, the list of keys, the step-up for rules. One is open at a time.

import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { call, words } from "../api/client";
import { KEYS, setSingleKeys, singleKeys } from "../keys";
import { me } from "../me";
import { Command } from "./copy";
import { Icon } from "./icons";
import { Palette } from "./palette";

export type DialogName = "palette" | "keys" | "step-up";

/** The dialog that is open. */
export const opened = signal<DialogName | null>(null);
let afterStepUp: (() => void) | null = null;

/** Opens a dialog. */
export function open(name: DialogName): void {
  opened.value = name;
}

/** Closes the dialog. */
export function close(): void {
  opened.value = null;
  afterStepUp = null;
}

/** Asks for a step-up; runs `then` once the server has granted it. */
export function stepUp(then: () => void): void {
  afterStepUp = then;
  opened.value = "step-up";
}

/** The open dialog, if any. */
export function Dialogs() {
  switch (opened.value) {
    case "palette":
      return (
        <Modal label="Search and commands" class="palette-modal">
          <Palette />
        </Modal>
      );
    case "keys":
      return (
        <Modal label="Keys" title="Keys">
          <SingleKeys />
          <dl class="keys">
            {KEYS.map(([keys, what]) => (
              <div key={what}>
                <dt>
                  {keys.map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </Modal>
      );
    case "step-up":
      return (
        <Modal label="Confirm at your terminal" title="Confirm at your terminal">
          <StepUp />
        </Modal>
      );
    case null:
      return null;
  }
}

/** Turns shortcuts of a single letter on or off. */
export function SingleKeys() {
  return (
    <label class="option keys-setting">
      <input type="checkbox" checked={singleKeys.value} onChange={(event) => setSingleKeys(event.currentTarget.checked)} />
      <span>
        Shortcuts of a single letter or sign
        <span class="option-about">
          Switch them off if you dictate, or press keys by accident. This browser remembers it. <kbd>Ctrl K</kbd> always works.
        </span>
      </span>
    </label>
  );
}

/** A dialog that keeps the focus; Escape closes it. */
export function Modal({
  label,
  title,
  children,
  class: name,
  onClose = close,
}: {
  label: string;
  title?: string;
  children: ComponentChildren;
  class?: string;
  onClose?: () => void;
}) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog === null) return;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={`modal ${name ?? ""}`}
      aria-label={label}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      {title !== undefined && (
        <div class="modal-head">
          <h2>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="cross" />
          </button>
        </div>
      )}
      {children}
    </dialog>
  );
}

function StepUp() {
  const code = useSignal("");
  const failed = useSignal<unknown>(null);
  const busy = useSignal(false);
  const device = me.value?.device.id ?? "";
  const send = async (): Promise<void> => {
    busy.value = true;
    failed.value = null;
    try {
      const { elevated_until } = await call("POST /api/v1/step-up", { body: { code: code.value.trim() } });
      if (me.value !== null) me.value = { ...me.value, elevated_until };
      const then = afterStepUp;
      close();
      then?.();
    } catch (cause) {
      failed.value = cause;
      busy.value = false;
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <p>
        A rule decides later requests without asking you. Run this command in a terminal on the machine of the server, then type the code that it prints here.
        It holds for 10 minutes.
      </p>
      <Command text={`capture web pair --device ${device} --scope admin`} />
      <label class="field">
        <span>Code</span>
        <input
          value={code.value}
          onInput={(event) => (code.value = event.currentTarget.value)}
          autocomplete="one-time-code"
          autocapitalize="characters"
          spellcheck={false}
          autoFocus
        />
      </label>
      {failed.value !== null && (
        <p class="error-text" role="alert">
          {words(failed.value)}
        </p>
      )}
      <div class="row end">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="button primary" disabled={busy.value || code.value.trim() === ""}>
          Confirm
        </button>
      </div>
    </form>
  );
}
