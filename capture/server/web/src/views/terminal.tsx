// A run's terminal as rows of text, so that selection, zoom and screen readers work as on any text. Viewing changes
// nothing: the program keeps its size until the user visibly takes it. Typing needs the scope `control` and a press.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { ApiFailure, call, words } from "../api/client";
import { now, row } from "../live/store";
import { connection } from "../live/stream";
import { mayControl } from "../me";
import { attempt, Empty, Failed, Loading, notify } from "../parts/feedback";
import { Icon } from "../parts/icons";
import { useLoad } from "../parts/load";
import { RecordingLink } from "../parts/recording";
import { StateWord } from "../parts/sessions";
import { Shown } from "../parts/text";
import { Follower } from "../terminal/follow";
import { type Grid, keyOf } from "../terminal/grid";
import { Link, type Mode, Refused, type Typed } from "../terminal/link";
import { Rows } from "../terminal/rows";
import { CELL, Screen } from "../terminal/screen";
import { ago } from "../text/format";
import { AGENTS } from "../text/names";
import { visible } from "../text/visible";

/** Keys of the touch bar, which phone keyboards lack. */
const BAR: [string, string, string][] = [
  ["Esc", "esc", "Esc"],
  ["⇧Tab", "shift-tab", "Shift Tab"],
  ["Tab", "tab", "Tab"],
  ["←", "left", "Left"],
  ["↑", "up", "Up"],
  ["↓", "down", "Down"],
  ["→", "right", "Right"],
  ["⏎", "enter", "Enter"],
  ["^C", "ctrl-c", "Control C"],
];

const MODES: Record<Mode, string> = { connecting: "connecting", live: "live", away: "not connected", polling: "updates every second" };

/** The page of a run's terminal. */
export function TerminalPage({ id }: { id: string }) {
  const { state, again } = useLoad((abort) => call("GET /api/v1/runs/{id}", { path: { id }, signal: abort }), [id]);
  const run = state.value.value;
  const link = useMemo(() => new Link(id), [id]);
  // A process that runs its own session has no screen.
  const draws = run?.terminal !== false;
  useEffect(() => {
    if (!draws) return;
    link.open();
    return () => link.close();
  }, [link, draws]);
  const typing = useSignal(false);
  /** Whether to type even into an open dialog: requested by the user after a refusal. */
  const force = useSignal(false);
  const refused = useSignal<string | null>(null);
  const large = useSignal(false);
  /** Whether to combine the next letter with Control, for keyboards without that key. */
  const control = useSignal(false);
  const pane = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);

  const follower = useRef<Follower | null>(null);
  const following = useSignal(true);
  const lease = link.lease.value;
  useEffect(() => {
    const target = pane.current;
    if (!lease.held || target === null) return;
    let timer: ReturnType<typeof setTimeout>;
    const observer = new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(() => void link.resize(sizeOf(target)).catch(() => undefined), 200);
    });
    observer.observe(target);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [lease.held]);
  const grid = link.grid.value;
  useLayoutEffect(() => {
    const target = pane.current;
    if (target === null) return;
    follower.current = new Follower(target, (is) => (following.value = is));
    const observer = new ResizeObserver(() => follower.current?.changed());
    observer.observe(target);
    // The container of the rows is as large as the window allows.
    const rows = target.querySelector(".terminal-screen");
    if (rows !== null) observer.observe(rows);
    return () => observer.disconnect();
  }, [state.value.cause === null, grid === null]);
  useLayoutEffect(() => follower.current?.changed(), [grid, link.scrollback.value, large.value]);
  // The page's stream detects a dead connection first and is often back before the next try.
  const live = connection.value === "live";
  useEffect(() => {
    if (!live) return;
    link.now();
    return () => link.drop();
  }, [live, link]);

  if (state.value.cause !== null) {
    return (
      <div class="column">
        <h1 tabIndex={-1}>Terminal</h1>
        <Failed cause={state.value.cause} retry={again} />
      </div>
    );
  }
  if (run !== null && !run.terminal) {
    return (
      <div class="column">
        <h1 class="visually-hidden" tabIndex={-1}>
          Terminal
        </h1>
        <Empty icon="terminal" title="This session has no terminal">
          {run.session_id !== null && (
            <p>
              <a class="button" href={`/s/${run.session_id}`}>
                Open the session
              </a>
            </p>
          )}
        </Empty>
      </div>
    );
  }
  const session = run?.session_id == null ? undefined : row(run.session_id);
  const away = link.mode.value === "away" && link.closed.value === null;
  const may = mayControl.value && link.closed.value === null;
  // Focus within the press event; only then does a phone open its keyboard.
  const begin = (): void => {
    typing.value = true;
    field.current?.focus({ preventScroll: true });
  };
  const send = (message: Typed): void => {
    follower.current?.rest();
    const forced = message.type !== "keys" && force.peek() ? { ...message, force: true } : message;
    link.send(forced).then(
      () => (refused.value = null),
      (cause: unknown) => {
        const code = cause instanceof Refused || cause instanceof ApiFailure ? cause.code : "";
        if (code === "conflict" && message.type !== "keys") refused.value = words(cause);
        else notify(words(cause), "failed");
      },
    );
  };
  const end = (): void => {
    typing.value = false;
    force.value = false;
    refused.value = null;
    field.current?.blur();
  };
  /** Returns the focus to the typing target after a button was pressed. */
  const back = (): void => {
    if (typing.peek()) field.current?.focus({ preventScroll: true });
  };
  const take = async (): Promise<void> => {
    back();
    await attempt(() => link.take(sizeOf(pane.current)));
    const { held, by } = link.lease.peek();
    if (!held && by !== null) notify(`${visible(by)} has the size`, "failed");
  };
  const paste = async (): Promise<void> => {
    try {
      send({ type: "paste", text: await navigator.clipboard.readText() });
    } catch {
      notify("The browser does not let this page read the clipboard. Paste with the keyboard.", "failed");
    }
  };
  const typed = (text: string): void => {
    const letter = control.peek() && /^[a-z]$/i.test(text) ? text.toLowerCase() : null;
    control.value = false;
    send(letter === null ? { type: "input", text } : { type: "keys", keys: [`ctrl-${letter}`] });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing || !typing.peek()) return;
    // Leaves the terminal with a key that the program does not use, as in `capture attach`.
    if (event.ctrlKey && event.key === "]") {
      event.preventDefault();
      end();
      return;
    }
    const key = keyOf(event);
    if (key === null) return;
    event.preventDefault();
    event.stopPropagation();
    send({ type: "keys", keys: [key] });
  };
  return (
    <div class="terminal-page" data-keys={typing.value ? "own" : undefined}>
      <header class="terminal-head">
        <a
          href={run?.session_id == null ? "/" : `/s/${run.session_id}`}
          class="icon-button"
          aria-label={run?.session_id == null ? "All sessions" : "The session"}
        >
          <Icon name="back" size={18} />
        </a>
        <div class="terminal-words">
          <h1 tabIndex={-1}>{run === null ? "Terminal" : <Shown text={run.name ?? run.command.join(" ")} />}</h1>
          <p class="muted small">
            {run !== null && AGENTS[run.provider]}
            {run !== null && run.state !== "running" && ` · ${run.state}${run.exit_code == null ? "" : ` with ${run.exit_code}`}`}
            {grid !== null && ` · ${grid.columns}×${grid.rows}`}
            {grid?.title != null && grid.title !== "" && (
              <>
                {" · "}
                <Shown text={grid.title} />
              </>
            )}
          </p>
        </div>
        <span class={`chip ${link.mode.value === "polling" || away ? "chip-need" : ""}`} role="status">
          {link.closed.value !== null ? "closed" : MODES[link.mode.value]}
        </span>
        <div class="terminal-actions">
          {session !== undefined && <StateWord row={session} />}
          {may && (
            <button
              type="button"
              class={`button small ${typing.value ? "primary" : ""}`}
              aria-pressed={typing.value}
              onClick={() => (typing.value ? end() : begin())}
            >
              <Icon name="keyboard" />
              {typing.value ? "Typing" : "Type"}
            </button>
          )}
          <button
            type="button"
            class="button small"
            aria-pressed={large.value}
            onClick={() => {
              large.value = !large.value;
              back();
            }}
          >
            {large.value ? "Fit" : "Larger text"}
          </button>
          {may &&
            link.mode.value === "live" &&
            (lease.held ? (
              <button
                type="button"
                class="button small"
                onClick={() => {
                  back();
                  void attempt(() => link.release());
                }}
                title="The terminal has the size of this window"
              >
                Give the size back
              </button>
            ) : (
              <button
                type="button"
                class="button small"
                onClick={() => void take()}
                title="The program is resized for everybody who is attached, until you leave"
              >
                Take the size
              </button>
            ))}
          <RecordingLink id={id} />
        </div>
      </header>
      {link.closed.value !== null && (
        <p class="banner" role="status">
          The terminal is closed: {visible(link.closed.value)}
        </p>
      )}
      {typing.value && refused.value !== null && (
        <div class="banner" role="alert">
          <Icon name="warning" />
          <span>
            <Shown text={refused.value} />
          </span>
          <button
            type="button"
            class="button small"
            onClick={() => {
              force.value = true;
              refused.value = null;
              field.current?.focus({ preventScroll: true });
            }}
          >
            Type into the dialog
          </button>
        </div>
      )}
      {grid !== null && grid.skipped > 0 && <p class="banner">Some output could not be read: the screen may be wrong until the program draws it again.</p>}
      {away && (
        <p class="banner" role="status">
          Not connected. This is the screen of {ago(Math.max(0, now.value - link.away.value))} ago; it comes back by itself.
        </p>
      )}
      <div class={away ? "terminal-frame terminal-away" : "terminal-frame"}>
        <div
          class={`terminal-pane ${large.value ? "large" : ""}`}
          ref={pane}
          onScroll={() => follower.current?.scrolled()}
          tabIndex={0}
          role="region"
          aria-label="Screen"
          onClick={() => typing.value && getSelection()?.isCollapsed !== false && field.current?.focus({ preventScroll: true })}
        >
          {link.failed.value !== null ? (
            <Failed cause={link.failed.value} />
          ) : grid === null ? (
            <Loading lines={8} />
          ) : (
            <Screen grid={grid} large={large.value}>
              <Above link={link} grid={grid} follower={follower} pane={pane} />
            </Screen>
          )}
          {may && (
            <textarea
              ref={field}
              tabIndex={-1}
              class="terminal-field"
              aria-label="Type into the terminal; Control and ] stops typing"
              autocapitalize="off"
              autocomplete="off"
              spellcheck={false}
              onKeyDown={onKeyDown}
              onInput={(event) => {
                if ((event as InputEvent).isComposing) return;
                const { value } = event.currentTarget;
                event.currentTarget.value = "";
                if (value !== "" && typing.peek()) typed(value);
              }}
              onCompositionEnd={(event) => {
                const { value } = event.currentTarget;
                event.currentTarget.value = "";
                if (value !== "" && typing.peek()) typed(value);
              }}
              onPaste={(event) => {
                event.preventDefault();
                const text = event.clipboardData?.getData("text/plain") ?? "";
                if (text !== "" && typing.peek()) send({ type: "paste", text });
              }}
            />
          )}
        </div>
        {!following.value && (
          <button
            type="button"
            class="to-end button small"
            onClick={() => {
              follower.current?.rest();
              back();
            }}
          >
            <Icon name="down" size={14} /> Latest
          </button>
        )}
      </div>
      {may && (
        <div class="key-bar" role="toolbar" aria-label="Keys">
          {BAR.map(([word, key, name]) => (
            <button
              key={key}
              type="button"
              aria-label={name}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => send({ type: "keys", keys: [key] })}
            >
              {word}
            </button>
          ))}
          <button
            type="button"
            aria-label="Ctrl, with the next letter"
            aria-pressed={control.value}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => {
              control.value = !control.value;
              if (!typing.peek()) begin();
            }}
          >
            Ctrl
          </button>
          <button type="button" aria-label="Paste" title="Paste" onPointerDown={(event) => event.preventDefault()} onClick={() => void paste()}>
            <Icon name="paste" size={18} />
          </button>
        </div>
      )}
    </div>
  );
}

/** Lines that scrolled off, above the screen. */
function Above({ link, grid, follower, pane }: { link: Link; grid: Grid; follower: { current: Follower | null }; pane: { current: HTMLElement | null } }) {
  const above = link.scrollback.value;
  if (grid.alternate) return null;
  const more = async (): Promise<void> => {
    const target = pane.current;
    if (target === null) return;
    const { scrollHeight, scrollTop } = target;
    // Stop following the cursor, so that the lines stay where they are.
    follower.current?.stay();
    await attempt(() => link.more());
    requestAnimationFrame(() => follower.current?.above(scrollHeight, scrollTop));
  };
  return (
    <>
      {link.mode.value === "live" && (above?.from ?? grid.scrolled) > (above?.oldest ?? 0) && (
        <button type="button" class="button small terminal-earlier" onClick={() => void more()}>
          Show earlier lines
        </button>
      )}
      {above !== null && <Rows lines={above.lines} />}
    </>
  );
}

/** The columns and rows that fit a pane. */
function sizeOf(pane: HTMLElement | null): { cols: number; rows: number } {
  const width = (pane?.clientWidth ?? 800) - 24;
  const height = (pane?.clientHeight ?? 480) - 24;
  return { cols: Math.max(20, Math.floor(width / (13 * CELL))), rows: Math.max(6, Math.floor(height / (13 * 1.25))) };
}
