// What a session is called where it is listed, linked or searched.

import type { MarkedSession } from "../api/routes";
import { AGENTS } from "./names";

/** What a name is made of. */
export type Named = Pick<MarkedSession, "provider" | "title" | "cwd"> & { summary?: { last_prompt: string | null } };

/** What somebody named it or asked for; `null` when nothing is known. */
export function givenTitle({ title, summary }: Named): string | null {
  return [title, summary?.last_prompt].find((text) => text != null && text.trim() !== "") ?? null;
}

/** The title, else the last prompt, else the agent and the end of its directory: `Codex in projects/api`. */
export function titleOf(session: Named): string {
  const given = givenTitle(session);
  if (given !== null) return given;
  const place = (session.cwd ?? "").split(/[/\\]/).filter((part) => part !== "");
  return place.length === 0 ? AGENTS[session.provider] : `${AGENTS[session.provider]} in ${place.slice(-2).join("/")}`;
}
