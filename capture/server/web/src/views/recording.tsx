// A recording of a run's terminal, shown with the rows of the terminal view.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { call } from "../api/client";
import { isTyping } from "../keys";
import { row } from "../live/store";
import { Failed, Loading } from "../parts/feedback";
import { Icon } from "../parts/icons";
import { useLoad } from "../parts/load";
import { Shown } from "../parts/text";
import { parameter, setParameters } from "../router";
import { Player, SPEEDS } from "../terminal/recording";
import { Screen } from "../terminal/screen";
import { moment, position } from "../text/format";
import { AGENTS } from "../text/names";

/** Time by which an arrow key moves, ms. */
const STEP = 5_000;
/** Interval between checks whether a recording in progress has grown, ms. */
const FOLLOW = 2_000;
/** Number of frames per request. */
const FRAMES = 300;

/** The page of a recording. */
export function RecordingPage({ id }: { id: string }) {
  const { state } = useLoad((abort) => call("GET /api/v1/runs/{id}", { path: { id }, signal: abort }), [id]);
  const run = state.value.value;
  const player = useMemo(
    () =>
      new Player(
        () => call("GET /api/v1/runs/{id}/recording", { path: { id } }),
        (from_ms) => call("GET /api/v1/runs/{id}/recording/frames", { path: { id }, query: { from_ms: Math.floor(from_ms), limit: FRAMES } }),
      ),
    [id],
  );
  const large = useSignal(false);
  useEffect(() => {
    const at = Number.parseFloat(parameter("t"));
    void player.open(Number.isNaN(at) ? 0 : at * 1000);
    return () => player.pause();
  }, [player]);
  // The address contains the time, so that it can be shared and survives a reload.
  const resting = player.playing.value || player.recording.value === null ? null : player.position.value;
  useEffect(() => {
    if (resting === null) return;
    const timer = setTimeout(() => setParameters({ t: resting === 0 ? "" : (resting / 1000).toFixed(1) }), 300);
    return () => clearTimeout(timer);
  }, [resting]);
  const growing = player.recording.value?.ended === false;
  useEffect(() => {
    if (!growing) return;
    const timer = setInterval(() => void player.follow(), FOLLOW);
    return () => clearInterval(timer);
  }, [growing, player]);
  const playing = player.playing.value;
  useEffect(() => {
    if (!playing) return;
    let before = performance.now();
    let picture = requestAnimationFrame(function draw(now) {
      player.tick(now - before);
      before = now;
      picture = requestAnimationFrame(draw);
    });
    return () => cancelAnimationFrame(picture);
  }, [playing, player]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement | null;
      if (isTyping(target) && !(target instanceof HTMLInputElement && target.type === "range")) return;
      if (event.key === " " && target?.closest("button, a, select") == null) toggle(player);
      else if (event.key === "ArrowLeft") void player.seek(player.position.peek() - STEP);
      else if (event.key === "ArrowRight") void player.seek(player.position.peek() + STEP);
      else if (event.key === "Home") void player.seek(0);
      else if (event.key === "End") void player.seek(player.duration);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [player]);

  const cause = state.value.cause ?? (player.recording.value === null ? player.failed.value : null);
  if (cause !== null) {
    return (
      <div class="column">
        <h1 tabIndex={-1}>Recording</h1>
        <Failed cause={cause} />
        <p>
          <a href="/">Show all sessions</a>
        </p>
      </div>
    );
  }
  const grid = player.grid.value;
  const recording = player.recording.value;
  const session = run?.session_id == null ? undefined : row(run.session_id);
  return (
    <div class="terminal-page">
      <header class="terminal-head">
        <a
          href={run?.session_id == null ? "/" : `/s/${run.session_id}`}
          class="icon-button"
          aria-label={session === undefined ? "All sessions" : "The session"}
        >
          <Icon name="back" size={18} />
        </a>
        <div class="terminal-words">
          <h1 tabIndex={-1}>{run === null ? "Recording" : <Shown text={run.name ?? run.command.join(" ")} />}</h1>
          <p class="muted small">
            Recording
            {run !== null && ` · ${AGENTS[run.provider]}`}
            {recording !== null && ` · ${moment(Date.parse(recording.started_at) + player.position.value)}`}
            {grid !== null && ` · ${grid.columns}×${grid.rows}`}
          </p>
        </div>
        {recording !== null && !recording.ended && <span class="chip">still recording</span>}
        <div class="terminal-actions">
          {run?.state === "running" && (
            <a class="button small" href={`/terminal/${id}`}>
              <Icon name="terminal" />
              Terminal
            </a>
          )}
          <button type="button" class="button small" aria-pressed={large.value} onClick={() => (large.value = !large.value)}>
            {large.value ? "Fit" : "Larger text"}
          </button>
        </div>
      </header>
      {recording !== null && recording.dropped_ms > 0 && <p class="banner">The first {position(recording.dropped_ms)} were dropped to make room.</p>}
      <div class="terminal-pane" tabIndex={0} role="region" aria-label="Screen">
        {grid === null ? player.failed.value === null && <Loading lines={8} /> : <Screen grid={grid} large={large.value} />}
        {player.failed.value !== null && <Failed cause={player.failed.value} retry={() => void player.seek(player.position.peek())} />}
      </div>
      {recording !== null && <Controls player={player} />}
    </div>
  );
}

const toggle = (player: Player): void => {
  if (player.playing.peek()) player.pause();
  else void player.play();
};

function Controls({ player }: { player: Player }) {
  const { duration } = player;
  const at = player.position.value;
  const playing = player.playing.value;
  return (
    <div class="player" role="group" aria-label="Playing">
      <button type="button" class="button primary player-play" aria-keyshortcuts="Space" onClick={() => toggle(player)}>
        <Icon name={playing ? "pause" : "play"} />
        <span>{playing ? "Pause" : "Play"}</span>
      </button>
      <input
        type="range"
        class="player-seek"
        aria-label="Time of the recording"
        aria-valuetext={`${position(at)} of ${position(duration)}`}
        min={0}
        max={Math.max(1, duration)}
        step={100}
        value={at}
        onInput={(event) => void player.seek(Number(event.currentTarget.value))}
      />
      <span class="player-time">
        {position(at)} / {position(duration)}
      </span>
      <label class="select">
        <span>Speed</span>
        <select aria-label="Speed" value={String(player.speed.value)} onChange={(event) => (player.speed.value = Number(event.currentTarget.value))}>
          {SPEEDS.map((speed) => (
            <option key={speed} value={String(speed)}>
              {speed}×
            </option>
          ))}
        </select>
      </label>
      <label class="player-skip">
        <input type="checkbox" checked={player.skips.value} onChange={(event) => (player.skips.value = event.currentTarget.checked)} />
        <span>Skip pauses</span>
      </label>
    </div>
  );
}
