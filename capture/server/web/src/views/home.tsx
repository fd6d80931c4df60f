// All sessions, grouped by what they need from the user. Nothing moves under a finger: while the list is in use, rows
// change in place, and reordering waits until the user presses a button.

import { useComputed, useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { call, words } from "../api/client";
import type { Provider } from "../api/routes";
import { isShortcut } from "../keys";
import { all, row as find, loaded, put, type Row, restarts } from "../live/store";
import { snoozeHour, toggleArchive, togglePin } from "../marks";
import { mayControl } from "../me";
import { Command } from "../parts/copy";
import { Empty, Loading } from "../parts/feedback";
import { Icon } from "../parts/icons";
import { VirtualList } from "../parts/virtual";
import { go, parameter, setParameters } from "../router";
import { basename } from "../text/format";
import { AGENTS } from "../text/names";
import { visible } from "../text/visible";
import { type Group, type Grouping, groups, matches, type View } from "./groups";
import { SessionRow } from "./row";

type Entry = { key: string; head: Group } | { key: string; row: Row };

/** Time without pointer movement after which the list may be reordered, milliseconds. */
const STILL = 2_500;

/** The list of sessions. */
export function Home() {
  const filter = useSignal(parameter("q"));
  const view = (parameter("view") || "active") as View;
  const grouping = (parameter("group") || "need") as Grouping;
  const agent = parameter("agent");
  const settings = useSignal({ view, grouping, agent });
  settings.value = sameSettings(settings.peek(), { view, grouping, agent });
  const folded = useSignal<ReadonlyMap<string, boolean>>(new Map());
  const more = useAllSessions(view);

  const wanted = useComputed(() => {
    const { view, grouping, agent } = settings.value;
    return groups(
      all().filter((row) => matches(row, filter.value, agent)),
      view,
      grouping,
    );
  });
  const [order, held, release] = useHeld(wanted.value, `${filter.value}\n${view}\n${grouping}\n${agent}`);

  const entries: Entry[] = order.flatMap((group): Entry[] => {
    const closed = folded.value.get(group.key) ?? group.folded;
    return [{ key: `head ${group.key}`, head: group }, ...(closed ? [] : group.rows.map((row) => ({ key: row.id, row })))];
  });

  // A match may be on a later page, so read on until the window is full.
  const short = entries.length < 40;
  useEffect(() => {
    if (short) more.load?.();
  }, [short, more.load === null, more.loading]);

  const render = (index: number) => {
    const entry = entries[index];
    if (entry === undefined) return null;
    if ("row" in entry) return <SessionRow row={entry.row} />;
    const { key } = entry.head;
    const closed = folded.value.get(key) ?? entry.head.folded;
    return <GroupHead group={entry.head} closed={closed} toggle={() => (folded.value = new Map(folded.value).set(key, !closed))} />;
  };

  return (
    <div class="home">
      <h1 class="visually-hidden" tabIndex={-1}>
        Sessions
      </h1>
      <Toolbar filter={filter} view={view} grouping={grouping} agent={agent} />
      {held && (
        <button type="button" class="order-pill" onClick={release}>
          The order has changed. Update
        </button>
      )}
      {!loaded.value ? (
        <Loading lines={8} label="Loading the sessions" />
      ) : entries.length === 0 ? (
        <Nothing
          isFiltered={filter.value !== "" || agent !== ""}
          clear={() => {
            filter.value = "";
            setParameters({ q: "", agent: "" });
            // On a phone this would open its keyboard.
            if (matchMedia("(pointer: fine)").matches) document.querySelector<HTMLElement>("[data-filter]")?.focus();
          }}
          view={view}
          loading={more.loading || more.load !== null}
        />
      ) : (
        <div class="list" data-list onKeyDown={(event) => onListKey(event)}>
          <VirtualList
            count={entries.length}
            estimate={58}
            keyOf={(index) => entries[index]?.key ?? String(index)}
            render={render}
            label="Sessions"
            {...(more.load === null ? {} : { onRange: (_, last) => last > entries.length - 40 && more.load?.() })}
          />
        </div>
      )}
      {more.failed !== null && <p class="error-text">{words(more.failed)}</p>}
    </div>
  );
}

const sameSettings = <T extends object>(before: T, after: T): T => (JSON.stringify(before) === JSON.stringify(after) ? before : after);

function Nothing({ isFiltered, clear, view, loading }: { isFiltered: boolean; clear: () => void; view: View; loading: boolean }) {
  if (loading) return <Loading lines={8} label="Loading the sessions" />;
  if (isFiltered) {
    return (
      <Empty icon="search" title="No session matches">
        <p>
          The filter looks at titles, directories, branches, agents and labels.{" "}
          <span class="with-keys">
            <kbd>Ctrl K</kbd> searches the texts.
          </span>
        </p>
        <button type="button" class="button" onClick={clear}>
          Clear the filter
        </button>
      </Empty>
    );
  }
  if (view === "archived") return <Empty icon="archive" title="Nothing is archived" />;
  return (
    <Empty icon="terminal" title={view === "all" ? "No sessions yet" : "No active sessions"}>
      <p>Agents on this machine appear here by themselves.</p>
      <div class="stack tight first-run">
        <Command text="capture run claude" about="Start one whose terminal you can use from here" />
        <Command text="capture hooks install --approver" about="Answer its permission requests from here" />
      </div>
      {view !== "all" && (
        <p>
          <a href="/?view=all">Show all sessions</a>
        </p>
      )}
    </Empty>
  );
}

function Toolbar({ filter, view, grouping, agent }: { filter: { value: string }; view: View; grouping: Grouping; agent: string }) {
  const agents = useComputed(() => [...new Set(all().map((row) => row.session.value.provider))].sort());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  /** Whether the lists are open; on a small screen they are behind a button. */
  const open = useSignal(false);
  return (
    <div class={open.value ? "toolbar toolbar-open" : "toolbar"} role="search">
      <label class="filter">
        <Icon name="search" />
        <span class="visually-hidden">Filter the sessions</span>
        <input
          data-filter
          type="search"
          placeholder="Filter"
          value={filter.value}
          spellcheck={false}
          onInput={(event) => {
            filter.value = event.currentTarget.value;
            clearTimeout(timer.current);
            timer.current = setTimeout(() => setParameters({ q: filter.value }), 300);
          }}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "ArrowDown" || event.key === "Enter") {
              document.querySelector<HTMLElement>("[data-list] a.session-link")?.focus();
              event.preventDefault();
            }
          }}
        />
        <kbd>/</kbd>
      </label>
      <button
        type="button"
        class={`icon-button toolbar-more ${grouping !== "need" || agent !== "" ? "toolbar-set" : ""}`}
        aria-label="Group and agent"
        aria-expanded={open.value}
        onClick={() => {
          open.value = !open.value;
        }}
      >
        <Icon name="options" size={18} />
      </button>
      <div class="segmented" role="group" aria-label="Which sessions">
        {(["active", "all", "archived"] as View[]).map((name) => (
          <button key={name} type="button" aria-pressed={view === name} onClick={() => setParameters({ view: name === "active" ? "" : name })}>
            {name === "active" ? "Active" : name === "all" ? "All" : "Archived"}
          </button>
        ))}
      </div>
      <label class="select">
        <span>Group</span>
        <select value={grouping} onChange={(event) => setParameters({ group: event.currentTarget.value === "need" ? "" : event.currentTarget.value })}>
          <option value="need">by need</option>
          <option value="project">by directory</option>
        </select>
      </label>
      {(agents.value.length > 1 || agent !== "") && (
        <label class="select">
          <span>Agent</span>
          <select value={agent} onChange={(event) => setParameters({ agent: event.currentTarget.value })}>
            <option value="">all agents</option>
            {agents.value.map((provider) => (
              <option key={provider} value={provider}>
                {AGENTS[provider as Provider]}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

function GroupHead({ group, closed, toggle }: { group: Group; closed: boolean; toggle: () => void }) {
  const project = group.key.startsWith("project ");
  return (
    <h2 class={`group-head group-${project ? "project" : group.key}`}>
      <button type="button" aria-expanded={!closed} onClick={toggle}>
        <span class={closed ? "fold closed" : "fold"}>
          <Icon name="down" size={12} />
        </span>
        <span>{project && group.key !== "project " ? visible(basename(group.title)) : group.title}</span>
        <span class="count">{group.rows.length}</span>
        {project && group.key !== "project " && <span class="group-path">{visible(group.title)}</span>}
      </button>
    </h2>
  );
}

function onListKey(event: KeyboardEvent): void {
  const link = (event.target as HTMLElement).closest<HTMLElement>("a.session-link");
  if (link === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const links = [...document.querySelectorAll<HTMLElement>("[data-list] a.session-link")];
  const at = links.indexOf(link);
  const row = find(link.dataset["session"] ?? "");
  if (/^[a-z.]$/.test(event.key) && !isShortcut(event)) return;
  const move = (to: HTMLElement | undefined): void => {
    to?.focus({ preventScroll: true });
    to?.scrollIntoView({ block: "nearest" });
  };
  switch (event.key) {
    case "ArrowDown":
    case "j":
      move(links[at + 1]);
      break;
    case "ArrowUp":
    case "k":
      move(links[at - 1]);
      break;
    case "p":
      if (row !== undefined && mayControl.value) void togglePin(row);
      break;
    case "z":
      if (row !== undefined && mayControl.value) void snoozeHour(row.id);
      break;
    case ".":
      if (row !== undefined && mayControl.value) void toggleArchive(row);
      break;
    case " ":
      go(`/s/${row?.id ?? ""}`);
      break;
    default:
      return;
  }
  event.preventDefault();
  event.stopPropagation();
}

/** Reads ended sessions too, one page at a time. */
function useAllSessions(view: View): { load: (() => void) | null; loading: boolean; failed: unknown } {
  const cursor = useSignal<string | null>(null);
  const loading = useSignal(false);
  const failed = useSignal<unknown>(null);
  const wanted = view !== "active";
  const read = useCallback(async (from: string | null): Promise<void> => {
    if (loading.peek()) return;
    loading.value = true;
    failed.value = null;
    try {
      const page = await call("GET /api/v1/sessions", { query: { active: "all", limit: 200, ...(from === null ? {} : { cursor: from }) } });
      for (const session of page.sessions) put(session);
      cursor.value = page.next_cursor ?? null;
    } catch (cause) {
      failed.value = cause;
    } finally {
      loading.value = false;
    }
  }, []);
  const restarted = restarts.value;
  useEffect(() => {
    if (wanted) void read(null);
  }, [wanted, restarted]);
  const next = cursor.value;
  return { load: wanted && next !== null ? () => void read(next) : null, loading: loading.value, failed: failed.value };
}

/** Keeps the order while the list is in use; returns whether a new order is waiting, and a function that applies it. */
function useHeld(wanted: Group[], settings: string): [Group[], boolean, () => void] {
  const shown = useRef<{ order: Group[]; settings: string }>({ order: wanted, settings });
  const moved = useRef(0);
  const touching = useRef(false);
  useEffect(() => {
    const inList = (event: Event): boolean => (event.target as Element | null)?.closest?.("[data-list]") != null;
    const onMove = (event: Event): void => {
      if (inList(event)) moved.current = performance.now();
    };
    const onDown = (event: Event): void => {
      touching.current = inList(event);
      onMove(event);
    };
    const onUp = (): void => {
      touching.current = false;
    };
    const keyed: [string, (event: Event) => void][] = [
      ["pointermove", onMove],
      ["keydown", onMove],
      ["pointerdown", onDown],
      ["pointerup", onUp],
      ["pointercancel", onUp],
    ];
    for (const [kind, listener] of keyed) document.addEventListener(kind, listener, { passive: true });
    return () => {
      for (const [kind, listener] of keyed) document.removeEventListener(kind, listener);
    };
  }, []);
  const tick = useSignal(0);
  const busy = touching.current || (moved.current > 0 && performance.now() - moved.current < STILL);
  const before = shown.current;
  const differs = shape(before.order) !== shape(wanted);
  let current = before.order;
  let held = false;
  if (before.settings !== settings || !differs || !busy || before.order.length === 0) current = wanted;
  else held = true;
  shown.current = { order: current, settings };
  useEffect(() => {
    if (!held) return;
    const timer = setTimeout(() => (tick.value += 1), STILL);
    return () => clearTimeout(timer);
  });
  tick.value;
  return [
    current,
    held,
    () => {
      moved.current = 0;
      touching.current = false;
      tick.value += 1;
    },
  ];
}

const shape = (groups: Group[]): string => groups.map((group) => `${group.key}:${group.rows.map((row) => row.id).join()}`).join(";");
