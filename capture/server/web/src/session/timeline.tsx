// The states of a session over time. Pressing shows the status at that time and the claims in effect then.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call } from "../api/client";
import { REASONS, type StatusAt, type StatusChange } from "../api/routes";
import { now, row } from "../live/store";
import { Failed, Loading } from "../parts/feedback";
import { Icon } from "../parts/icons";
import { Axis, Lane, type Segment } from "../parts/lane";
import { useRecording } from "../parts/recording";
import { duration, exactly, moment, withSeconds } from "../text/format";
import { STATES } from "../text/names";
import { Claims } from "./claims";

const RANGES: [string, number][] = [
  ["All", Number.POSITIVE_INFINITY],
  ["24 h", 86_400_000],
  ["1 h", 3_600_000],
  ["10 m", 600_000],
];

/** Time after a recording's end for which its last screen is shown, because the end is detected with a delay, ms. */
const END = 5_000;

/** Maximum number of pages of changes read; a longer history is shown from later on. */
const PAGES = 6;

/** The strip. `onPlace` shows a position in the conversation; a recording of `run` provides the screen at a time. */
export function Timeline({ id, run, onPlace }: { id: string; run: string | null; onPlace: (sequence: number) => void }) {
  const recording = useRecording(run);
  const changes = useSignal<StatusChange[] | null>(null);
  const failed = useSignal<unknown>(null);
  const range = useSignal(Number.POSITIVE_INFINITY);
  const chosen = useSignal<number | null>(null);
  const tabular = useSignal(false);
  const status = row(id)?.session.value.status;

  const read = async (abort: AbortSignal): Promise<void> => {
    const known = changes.peek() ?? [];
    const fresh: StatusChange[] = [];
    let cursor: string | undefined;
    const after = known.at(-1)?.sequence;
    for (let page = 0; page < PAGES; page += 1) {
      const found = await call("GET /api/v1/sessions/{id}/status/changes", {
        path: { id },
        query: { limit: 1000, ...(after === undefined ? {} : { after }), ...(cursor === undefined ? {} : { cursor: Number(cursor) }) },
        signal: abort,
      });
      fresh.push(...found.changes);
      if (found.next_cursor == null) break;
      cursor = found.next_cursor;
    }
    changes.value = [...known, ...fresh];
  };
  const since = `${status?.since} ${status?.state} ${status?.reason}`;
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(
      () => read(abort.signal).catch((cause: unknown) => !abort.signal.aborted && (failed.value = cause)),
      changes.peek() === null ? 0 : 400,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [since]);

  const list = changes.value;
  const ended = status?.state === "exited" || status?.state === "idle";
  const lastAt = list === null ? 0 : Date.parse(list.at(-1)?.at ?? "");
  const until = ended ? lastAt + 60_000 : now.value;
  const first = list === null ? 0 : Date.parse(list[0]?.at ?? "");
  const from = Math.max(first, until - range.value);
  const segments = useComputed<Segment[]>(() => {
    const all = changes.value ?? [];
    return all.map((change, index) => ({
      state: change.to,
      from: Date.parse(change.at),
      until: index + 1 < all.length ? Date.parse(all[index + 1]?.at ?? "") : Number.POSITIVE_INFINITY,
      confidence: change.confidence,
    }));
  });

  if (failed.value !== null || list === null || list.length === 0) {
    return <section class="timeline">{failed.value !== null ? <Failed cause={failed.value} /> : list === null ? <Loading lines={2} /> : null}</section>;
  }
  const at = (time: number): StatusChange | undefined => list.findLast((change) => Date.parse(change.at) <= time);
  const move = (step: number): void => {
    const here = chosen.value === null ? list.length : list.findLastIndex((change) => Date.parse(change.at) <= (chosen.value ?? 0));
    const next = list[Math.min(list.length - 1, Math.max(0, here + step))];
    if (next !== undefined) chosen.value = Date.parse(next.at);
  };
  const current = chosen.value === null ? undefined : at(chosen.value);
  const screen = (time: number): string | null => {
    const place = recording === null ? -1 : time - Date.parse(recording.started_at);
    // A recording in progress has grown since it was read.
    return recording === null || place < 0 || (recording.ended && place > recording.duration_ms + END)
      ? null
      : `/recordings/${run}?t=${(place / 1000).toFixed(1)}`;
  };
  return (
    <section class={chosen.value !== null ? "timeline timeline-opened" : "timeline"} aria-label="Timeline">
      <div class="timeline-head">
        <h2>Timeline</h2>
        <span class="muted small">
          {moment(from)} – {ended ? moment(until) : "now"} · {duration(until - from)}
        </span>
        <div class="segmented" role="group" aria-label="Range">
          {RANGES.map(([word, value]) => (
            <button key={word} type="button" aria-pressed={range.value === value} onClick={() => (range.value = value)}>
              {word}
            </button>
          ))}
        </div>
        <button type="button" class="button small" aria-pressed={tabular.value} onClick={() => (tabular.value = !tabular.value)}>
          {tabular.value ? "Picture" : "Table"}
        </button>
      </div>
      {tabular.value ? (
        <Table list={list} choose={(time) => (chosen.value = time)} />
      ) : (
        <div
          class="timeline-lane"
          role="slider"
          tabIndex={0}
          aria-label="Moment of the timeline"
          aria-valuemin={0}
          aria-valuemax={list.length - 1}
          aria-valuenow={current === undefined ? list.length - 1 : list.indexOf(current)}
          aria-valuetext={current === undefined ? "now" : `${exactly(chosen.value ?? 0)}, ${STATES[current.to]}`}
          onKeyDown={(event) => {
            if (event.key === "ArrowLeft") move(-1);
            else if (event.key === "ArrowRight") move(1);
            else if (event.key === "Escape") chosen.value = null;
            else return;
            event.preventDefault();
            event.stopPropagation();
          }}
        >
          <Lane segments={segments.value} from={from} until={until} height={26} chosen={chosen.value} onChoose={(time) => (chosen.value = time)} />
          <Axis from={from} until={until} />
        </div>
      )}
      {chosen.value !== null && (
        <Moment
          key={chosen.value}
          id={id}
          at={chosen.value}
          change={current}
          screen={screen(chosen.value)}
          close={() => (chosen.value = null)}
          onPlace={onPlace}
        />
      )}
    </section>
  );
}

function Moment({
  id,
  at,
  change,
  screen,
  close,
  onPlace,
}: {
  id: string;
  at: number;
  change: StatusChange | undefined;
  screen: string | null;
  close: () => void;
  onPlace: (sequence: number) => void;
}) {
  const found = useSignal<StatusAt | null>(null);
  const failed = useSignal<unknown>(null);
  const head = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const abort = new AbortController();
    call("GET /api/v1/sessions/{id}/status", { path: { id }, query: { at: new Date(at).toISOString() }, signal: abort.signal })
      .then((value) => (found.value = value))
      .catch((cause: unknown) => !abort.signal.aborted && (failed.value = cause));
    return () => abort.abort();
  }, [id, at]);
  return (
    <div class="moment panel" ref={head} role="status">
      <div class="moment-head">
        <h3>At {exactly(at)}</h3>
        {change !== undefined && (
          <button type="button" class="button small" onClick={() => onPlace(change.sequence)}>
            Show in the conversation
          </button>
        )}
        {screen !== null && (
          <a class="button small" href={screen}>
            <Icon name="play" />
            Show the screen
          </a>
        )}
        <button type="button" class="icon-button" aria-label="Close" onClick={close}>
          <Icon name="cross" size={14} />
        </button>
      </div>
      {failed.value !== null ? <Failed cause={failed.value} /> : found.value === null ? <Loading lines={2} /> : <Claims found={found.value} />}
    </div>
  );
}

function Table({ list, choose }: { list: StatusChange[]; choose: (time: number) => void }) {
  const shown = list.slice(-500).toReversed();
  return (
    <div class="table-scroll timeline-table" tabIndex={0} role="region" aria-label="Changes of the status">
      <table>
        <thead>
          <tr>
            <th scope="col">At</th>
            <th scope="col">State</th>
            <th scope="col">Reason</th>
            <th scope="col">Evidence</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((change) => (
            <tr key={change.sequence}>
              <td class="nowrap">
                <button type="button" class="link-button" onClick={() => choose(Date.parse(change.at))}>
                  <time dateTime={change.at} title={exactly(change.at)}>
                    {withSeconds(change.at)}
                  </time>
                </button>
              </td>
              <td class="nowrap">{STATES[change.to]}</td>
              <td>{change.reason == null ? "" : REASONS[change.reason].title}</td>
              <td>{change.evidence.join("; ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
