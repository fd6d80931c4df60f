// Light, dark, or as the system says. Kept in this browser alone.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "capture.theme";

/** The theme that was chosen. */
export const theme = signal<Theme>(stored());

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

/** Shows the chosen theme. */
export function applyTheme(): void {
  if (theme.value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}

/** Chooses a theme. */
export function choose(chosen: Theme): void {
  theme.value = chosen;
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // A browser without storage forgets the choice.
  }
  applyTheme();
}
