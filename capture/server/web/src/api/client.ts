// Requests to the server, typed by its routes. Every failure is an `ApiFailure`; nothing here retries.

import { signal } from "@preact/signals";
import { capital } from "../text/format";
import type { Routes } from "./routes";

type Method<Route> = Route extends `${infer Verb} ${string}` ? Verb : never;
type Options<Route extends keyof Routes> = {
  path?: Routes[Route]["path"];
  query?: Routes[Route]["query"];
  body?: Routes[Route]["body"];
  signal?: AbortSignal;
};

/** Why a request failed: the server's error, or that there was no answer. */
export class ApiFailure extends Error {
  constructor(
    /** HTTP status; 0 if there was no answer. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null,
    readonly details: Record<string, unknown>,
  ) {
    super(message);
  }
}

/** Whether this browser is paired; `null` until the server has answered. */
export const paired = signal<boolean | null>(null);

/** The URL of a route, with encoded path segments and parameters. */
export function url(route: string, path: Record<string, unknown> = {}, query: Record<string, unknown> = {}): string {
  const [, pattern = "/"] = route.split(" ");
  const filled = pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
  const parameters = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(Array.isArray(value) ? value.join(",") : String(value))}`);
  return parameters.length === 0 ? filled : `${filled}?${parameters.join("&")}`;
}

/** Sends a request and reads its answer. Throws an `ApiFailure` if the server refuses or cannot be reached. */
export async function call<Route extends keyof Routes>(route: Route, options: Options<Route> = {}): Promise<Routes[Route]["answer"]> {
  const method = route.split(" ")[0] as Method<Route>;
  const changes = method !== "GET";
  const headers: Record<string, string> = { Accept: "application/json" };
  if (changes) Object.assign(headers, { "X-Capture": "1", "Content-Type": "application/json" });
  const response = await send(url(route, options.path, options.query), {
    method,
    headers,
    credentials: "same-origin",
    cache: "no-store",
    redirect: "follow",
    body: changes ? JSON.stringify(options.body ?? {}) : null,
    signal: options.signal ?? null,
  });
  if (!response.ok) throw await failure(response);
  if (response.status === 204) return undefined as Routes[Route]["answer"];
  const json = response.headers.get("content-type")?.includes("json") === true;
  return (json ? await response.json() : await response.text()) as Routes[Route]["answer"];
}

async function send(target: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(target, init);
  } catch (cause) {
    if (init.signal?.aborted === true) throw cause;
    throw new ApiFailure(0, "unreachable", "The server cannot be reached.", "Check that `capture serve` runs.", {});
  }
}

/** The error in a refused response. */
export async function failure(response: Response): Promise<ApiFailure> {
  if (response.status === 401) paired.value = false;
  try {
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    const { code, message, hint, details } = error;
    return new ApiFailure(response.status, String(code), String(message), typeof hint === "string" ? hint : null, {
      ...error,
      ...((details as Record<string, unknown> | undefined) ?? {}),
    });
  } catch {
    return new ApiFailure(response.status, "unknown", `The server answered with status ${response.status}.`, null, {});
  }
}

/** A failure as text, for a message next to what failed. */
export function words(cause: unknown): string {
  if (cause instanceof ApiFailure) return cause.hint === null ? sentence(cause.message) : `${sentence(cause.message)} ${sentence(cause.hint)}`;
  return cause instanceof Error ? cause.message : String(cause);
}

const sentence = (text: string): string => {
  const first = capital(text);
  return /[.!?]$/.test(first) ? first : `${first}.`;
};
