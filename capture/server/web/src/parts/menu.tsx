// A button that opens a short list of commands.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export type Item = { label: string; run: () => void; danger?: boolean; disabled?: boolean };

/** The button and its list. */
export function Menu({ label, items, children, class: name }: { label: string; items: Item[]; children: ComponentChildren; class?: string }) {
  const shown = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!shown.value) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: Event): void => {
      if (root.current?.contains(event.target as Node) !== true) shown.value = false;
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [shown.value]);
  const hide = (): void => {
    shown.value = false;
    button.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!shown.value) return;
    const entries = [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") hide();
    else if (event.key === "Tab") shown.value = false;
    else if (event.key === "ArrowDown") entries[(at + 1) % entries.length]?.focus();
    else if (event.key === "ArrowUp") entries[(at - 1 + entries.length) % entries.length]?.focus();
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class={`menu ${name ?? ""}`} ref={root} onKeyDown={onKeyDown}>
      <button
        ref={button}
        type="button"
        class="icon-button"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={shown.value}
        onClick={() => {
          shown.value = !shown.value;
        }}
      >
        {children}
      </button>
      {shown.value && (
        <div class="menu-list" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              disabled={item.disabled === true}
              class={item.danger === true ? "danger" : ""}
              onClick={() => {
                hide();
                item.run();
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
