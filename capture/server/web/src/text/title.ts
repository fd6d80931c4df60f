// The title of a session in lists, links and searches.

import type { MarkedSession } from "../api/routes";
import { AGENTS } from "./names";

/** The fields from which a title is made. */
export type Named = Pick<MarkedSession, "provider" | "title" | "cwd"> & { summary?: { last_prompt: string | null } };

/** The title given by the user or taken from a prompt; `null` if there is none. */
export function givenTitle({ title, summary }: Named): string | null {
  return [title, summary?.last_prompt].find((text) => text != null && text.trim() !== "") ?? null;
}

/** The title, or the last prompt, or the agent and the end of its directory: `Codex in projects/api`. */
export function titleOf(session: Named): string {
  const given = givenTitle(session);
  if (given !== null) return given;
  const place = (session.cwd ?? "").split(/[/\\]/).filter((part) => part !== "");
  return place.length === 0 ? AGENTS[session.provider] : `${AGENTS[session.provider]} in ${place.slice(-2).join("/")}`;
}
