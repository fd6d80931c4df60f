// The current page: its address, and links that change the address without reloading the page.

import { signal } from "@preact/signals";

export type Page =
  | { name: "home" }
  | { name: "pair" }
  | { name: "approvals"; id: string | null }
  | { name: "session"; id: string }
  | { name: "terminal"; id: string }
  | { name: "recording"; id: string }
  | { name: "overview" }
  | { name: "devices" }
  | { name: "missing" };

/** Parses a path. */
export function page(path: string): Page {
  const [first = "", second = "", ...more] = path
    .split("/")
    .filter((part) => part !== "")
    .map(decoded);
  if (more.length > 0) return { name: "missing" };
  switch (first) {
    case "":
      return { name: "home" };
    case "approvals":
      return { name: "approvals", id: second || null };
    case "s":
      return second === "" ? { name: "missing" } : { name: "session", id: second };
    case "terminal":
      return second === "" ? { name: "missing" } : { name: "terminal", id: second };
    case "recordings":
      return second === "" ? { name: "missing" } : { name: "recording", id: second };
    case "overview":
    case "devices":
    case "pair":
      return second === "" ? { name: first } : { name: "missing" };
    default:
      return { name: "missing" };
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Path and query of the address. */
export const address = signal(typeof location === "undefined" ? "/" : location.pathname + location.search);
/** The text after the `#` of the address. */
export const fragment = signal(typeof location === "undefined" ? "" : location.hash.slice(1));
/** The current page. */
export const route = signal<Page>(page(address.value.split("?")[0] ?? "/"));

/** Goes to a path of this page. */
export function go(path: string, replace = false): void {
  if (replace) history.replaceState(null, "", path);
  else if (path !== location.pathname + location.search) history.pushState(null, "", path);
  read();
  if (!replace) {
    scrollTo(0, 0);
    // Screen readers continue with the new page, not with the removed link.
    requestAnimationFrame(() => document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true }));
  }
}

function read(): void {
  address.value = location.pathname + location.search;
  fragment.value = location.hash.slice(1);
  route.value = page(location.pathname);
}

/** Follows the browser's back and forward buttons. */
export function listen(): void {
  addEventListener("popstate", read);
  addEventListener("hashchange", read);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (link == null || link.target !== "" || link.origin !== location.origin || link.hasAttribute("download")) return;
    if (link.hash !== "" && link.pathname === location.pathname) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

/** A parameter of the address. */
export const parameter = (name: string): string => new URLSearchParams(address.value.split("?")[1] ?? "").get(name) ?? "";

/** Changes parameters of the address; empty ones are removed. */
export function setParameters(values: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text === "" ? "" : `?${text}`), true);
}
