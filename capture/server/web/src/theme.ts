// Light, dark, or the system's setting. Stored only in this browser.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "capture.theme";

/** The selected theme. */
export const theme = signal<Theme>(stored());

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

/** Applies the selected theme. */
export function applyTheme(): void {
  if (theme.value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}

/** Selects a theme. */
export function choose(chosen: Theme): void {
  theme.value = chosen;
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // Without storage, the browser forgets the choice.
  }
  applyTheme();
}
