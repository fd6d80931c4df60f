// The palette: pages, sessions, commands, and the texts of all sessions.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, words } from "../api/client";
import type { MarkedSession, SearchHit, SearchPage } from "../api/routes";
import { inOrder, jump, setSingleKeys, singleKeys } from "../keys";
import { all, isTop, needing, row } from "../live/store";
import { go } from "../router";
import { groupBy } from "../text/collect";
import { ago, basename } from "../text/format";
import { AGENTS } from "../text/names";
import { titleOf } from "../text/title";
import { visible } from "../text/visible";
import { choose, theme } from "../theme";
import { close, open } from "./dialogs";
import { Icon, type IconName } from "./icons";
import { Highlighted } from "./search";

/** An entry. `stays`: the palette stays open; `under`: it belongs to the entry above it. */
type Entry = { key: string; icon: IconName; label: string; detail: string; hit?: SearchHit; under?: boolean; stays?: boolean; run: () => void };

/** Number of hits per request. */
const HITS = 50;
/** Number of hits of a session shown at first. */
const FIRST = 3;

/** Hits grouped by session, ordered by the best hit of each. */
export const bySession = (hits: SearchHit[]): [string, SearchHit[]][] => [...groupBy(hits, ({ session_id }) => session_id)];

const PAGES: Entry[] = [
  { key: "home", icon: "sessions", label: "Sessions", detail: "page", run: () => go("/") },
  { key: "approvals", icon: "approvals", label: "Approvals", detail: "page", run: () => go("/approvals") },
  { key: "overview", icon: "overview", label: "Overview", detail: "page", run: () => go("/overview") },
  { key: "devices", icon: "devices", label: "Devices and notifications", detail: "page", run: () => go("/devices") },
  { key: "next", icon: "right", label: "Next session that needs you", detail: "]", run: () => jump(1) },
  { key: "keys", icon: "keyboard", label: "Show the keys", detail: "?", run: () => setTimeout(() => open("keys")) },
  { key: "keys-off", icon: "keyboard", label: "Switch shortcuts of a single letter off", detail: "keys", run: () => setSingleKeys(false) },
  { key: "keys-on", icon: "keyboard", label: "Switch shortcuts of a single letter on", detail: "keys", run: () => setSingleKeys(true) },
  { key: "light", icon: "sun", label: "Use the light theme", detail: "theme", run: () => choose("light") },
  { key: "dark", icon: "sun", label: "Use the dark theme", detail: "theme", run: () => choose("dark") },
  { key: "system", icon: "sun", label: "Use the theme of the system", detail: "theme", run: () => choose("system") },
];

/** How well a text matches all words of a query; 0 if it does not. */
export function score(query: string, text: string): number {
  const lower = text.toLowerCase();
  let sum = 0;
  for (const word of query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")) {
    const at = lower.indexOf(word);
    if (at < 0) return 0;
    sum += at === 0 ? 4 : /[^a-z0-9]/.test(lower.charAt(at - 1)) ? 3 : 1;
  }
  return sum;
}

/** The content of the palette. */
export function Palette() {
  const query = useSignal("");
  const selected = useSignal(0);
  const hits = useSignal<SearchHit[]>([]);
  /** The last page of hits. */
  const page = useSignal<SearchPage | null>(null);
  /** Sessions whose hits are all shown. */
  const whole = useSignal<ReadonlySet<string>>(new Set());
  const searching = useSignal(false);
  const failed = useSignal<unknown>(null);
  const list = useRef<HTMLUListElement>(null);

  useEffect(() => {
    const text = query.value.trim();
    hits.value = [];
    page.value = null;
    whole.value = new Set();
    failed.value = null;
    searching.value = false;
    if (text.length < 2) return;
    const abort = new AbortController();
    searching.value = true;
    const timer = setTimeout(() => {
      call("GET /api/v1/search", { query: { q: text, limit: HITS }, signal: abort.signal })
        .then((found) => {
          page.value = found;
          hits.value = found.hits;
        })
        .catch((cause: unknown) => {
          if (!abort.signal.aborted) failed.value = cause;
        })
        .finally(() => {
          if (!abort.signal.aborted) searching.value = false;
        });
    }, 180);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [query.value]);

  /** The cursor of the page of hits being read. */
  const reading = useRef<string | null>(null);
  const more = (cursor: string): void => {
    if (reading.current === cursor) return;
    reading.current = cursor;
    const text = query.peek().trim();
    call("GET /api/v1/search", { query: { q: text, limit: HITS, cursor } })
      .then((found) => {
        if (query.peek().trim() !== text || page.peek()?.next_cursor !== cursor) return;
        page.value = found;
        hits.value = [...hits.peek(), ...found.hits];
      })
      .catch((cause: unknown) => (failed.value = cause))
      .finally(() => {
        if (reading.current === cursor) reading.current = null;
      });
  };
  const entries = useComputed<Entry[]>(() => {
    const text = query.value.trim();
    const matching = (): MarkedSession[] =>
      all()
        .filter(isTop)
        .map((row) => row.session.value)
        .map((session) => ({
          session,
          score: score(text, `${titleOf(session)} ${session.cwd ?? ""} ${session.provider} ${session.git_branch ?? ""} ${session.id}`),
        }))
        .filter(({ score }) => score > 0)
        .sort((left, right) => right.score - left.score)
        .map(({ session }) => session);
    // Without a query, the sessions that need the user, most urgent first.
    const sessions = (text === "" ? inOrder(needing.value).map((row) => row.session.value) : matching()).slice(0, text === "" ? 6 : 8).map(
      (session): Entry => ({
        key: session.id,
        icon: "sessions",
        label: visible(titleOf(session)),
        detail: [AGENTS[session.provider], basename(visible(session.cwd ?? ""))].filter((part) => part !== "").join(" · "),
        run: () => go(`/s/${session.id}`),
      }),
    );
    const pages = PAGES.filter(
      (entry) =>
        entry.key !== theme.value &&
        entry.key !== (singleKeys.value ? "keys-on" : "keys-off") &&
        (text === "" ? !["theme", "keys"].includes(entry.detail) : score(text, entry.label) > 0),
    );
    const listed = new Set(sessions.map(({ key }) => key));
    // A title that is already listed as a session adds nothing.
    const fresh = hits.value.filter((hit) => hit.kind !== "title" || !listed.has(hit.session_id));
    const found = bySession(fresh).flatMap(([id, of]): Entry[] => {
      const shown = whole.value.has(id) || of.length <= FIRST + 1 ? of : of.slice(0, FIRST);
      const lines = shown.map(
        (hit, index): Entry => ({
          key: hit.id,
          icon: "search",
          label: visible(hit.title ?? titleOf(row(id)?.session.value ?? { provider: hit.agent, title: null, cwd: null })),
          detail: `${hit.kind} · ${ago(Date.now() - Date.parse(hit.at))}`,
          hit,
          under: index > 0,
          run: () => go(`/s/${id}?at=${hit.sequence}`),
        }),
      );
      const left = of.length - shown.length;
      if (left > 0)
        lines.push({
          key: `more ${id}`,
          icon: "down",
          label: `${left} more hits in this session`,
          detail: "",
          under: true,
          stays: true,
          run: () => (whole.value = new Set([...whole.value, id])),
        });
      return lines;
    });
    const next = page.value?.next_cursor ?? null;
    const left = (page.value?.matches ?? 0) - hits.value.length;
    if (next !== null && left > 0)
      found.push({
        key: "next hits",
        icon: "down",
        label: `All hits: ${page.value?.at_least === true ? "at least " : ""}${left} more`,
        detail: "",
        stays: true,
        run: () => more(next),
      });
    return [...sessions, ...pages, ...found];
  });

  const choice = Math.min(selected.value, Math.max(0, entries.value.length - 1));
  const run = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    if (entry.stays !== true) close();
    entry.run();
  };
  const move = (step: number): void => {
    const count = entries.value.length;
    if (count === 0) return;
    selected.value = (choice + step + count) % count;
    requestAnimationFrame(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }));
  };
  return (
    <div class="palette">
      <div class="palette-field">
        <Icon name="search" size={18} />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={entries.value.length > 0 ? `palette-${choice}` : undefined}
          aria-label="Search sessions, pages and texts"
          placeholder="Search sessions, prompts, answers, commands…"
          value={query.value}
          spellcheck={false}
          onInput={(event) => {
            query.value = event.currentTarget.value;
            selected.value = 0;
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") move(1);
            else if (event.key === "ArrowUp") move(-1);
            else if (event.key === "Enter" && !event.isComposing) run(entries.value[choice]);
            else return;
            event.preventDefault();
          }}
        />
      </div>
      {failed.value !== null && (
        <p class="palette-error error-text" role="alert">
          {words(failed.value)}
        </p>
      )}
      <ul id="palette-list" ref={list} role="listbox" aria-label="Results">
        {entries.value.map((entry, index) => (
          <li
            key={entry.key}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === choice}
            onPointerMove={() => {
              selected.value = index;
            }}
            onClick={() => run(entry)}
            class={entry.under === true ? "palette-under" : ""}
          >
            <Icon name={entry.icon} />
            <span class="palette-words">
              {(entry.under !== true || entry.hit === undefined) && <span class="palette-label">{entry.label}</span>}
              {entry.hit !== undefined && (
                <span class="palette-snippet">
                  <Highlighted snippet={entry.hit.snippet} />
                </span>
              )}
            </span>
            <span class={PAGES.includes(entry) ? "palette-detail wide-only" : "palette-detail"}>{entry.detail}</span>
          </li>
        ))}
        {entries.value.length === 0 && (
          <li class="palette-none" role="option" aria-selected="false" aria-disabled="true">
            {searching.value ? "Searching…" : failed.value === null ? "Nothing found" : "The search did not run"}
          </li>
        )}
      </ul>
      <p class="palette-hint wide-only">
        Narrow a search: <code>agent:codex</code> <code>kind:error</code> <code>tool:execute</code>
      </p>
    </div>
  );
}
