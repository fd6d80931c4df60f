// One lane per session: when it worked, waited, or was blocked.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { OverviewLane, State } from "../api/routes";
import { row } from "../live/store";
import { Axis, Lane, type Segment } from "../parts/lane";
import { Title } from "../parts/sessions";
import { Shown } from "../parts/text";
import { duration } from "../text/format";
import { STATES } from "../text/names";

/** Minimum period shown, ms. */
const LEAST = 600_000;
/** Number of lanes shown at first. */
const FIRST = 14;
const SHOWN: State[] = ["running", "waiting_approval", "waiting", "idle", "unknown"];

/** The lanes of a period. */
export function Lanes({ lanes, more, from, until }: { lanes: OverviewLane[]; more: number; from: number; until: number }) {
  const whole = useSignal(false);
  const tabular = useSignal(false);
  const prepared = useMemo(
    () =>
      lanes.map((lane) => {
        const segments = lane.segments.map(
          (segment): Segment => ({ state: segment.state, confidence: segment.confidence, from: Date.parse(segment.from), until: Date.parse(segment.until) }),
        );
        const marks = lane.marks.map((mark) => ({ at: Date.parse(mark.at), kind: mark.kind }));
        return { lane, segments, marks };
      }),
    [lanes],
  );
  const shown = useMemo(() => (whole.value ? prepared : prepared.slice(0, FIRST)), [prepared, whole.value]);
  // Time before the first session would be empty in every lane.
  const first = useMemo(() => shown.reduce((least, { segments }) => Math.min(least, segments[0]?.from ?? least), until), [shown]);
  const start = Math.max(from, Math.min(first, until - LEAST) - (until - first) * 0.02);
  return (
    <section class="panel lanes" aria-label="Sessions over time">
      <div class="lanes-head">
        <h2>Sessions over time</h2>
        <ul class="legend">
          {SHOWN.map((state) => (
            <li key={state}>
              <span class={`swatch swatch-${state}`} aria-hidden="true" />
              {STATES[state]}
            </li>
          ))}
        </ul>
        {lanes.length > 0 && (
          <button type="button" class="button small" aria-pressed={tabular.value} onClick={() => (tabular.value = !tabular.value)}>
            {tabular.value ? "Picture" : "Table"}
          </button>
        )}
      </div>
      {lanes.length === 0 ? (
        <p class="muted figure-empty">No session in this period.</p>
      ) : tabular.value ? (
        <LaneTable lanes={prepared} />
      ) : (
        <>
          <div class="lane-rows">
            {shown.map(({ lane, segments, marks }, index) => (
              <div key={index} class="lane-row">
                <a href={`/s/${lane.session_id}`} class="lane-name ellipsis">
                  <Name lane={lane} />
                </a>
                <Lane segments={segments} from={start} until={until} height={18} marks={marks} />
              </div>
            ))}
            <div class="lane-row">
              <span />
              <Axis from={start} until={until} />
            </div>
          </div>
          {prepared.length > FIRST && (
            <button type="button" class="button small" onClick={() => (whole.value = !whole.value)}>
              {whole.value ? "Show fewer" : `Show all ${prepared.length}`}
            </button>
          )}
          {more > 0 && whole.value && <p class="muted small">and {more} more</p>}
        </>
      )}
    </section>
  );
}

function Name({ lane }: { lane: OverviewLane }) {
  const session = row(lane.session_id)?.session.value;
  return lane.title == null ? <Title of={session} id={lane.session_id} /> : <Shown text={lane.title} />;
}

function LaneTable({ lanes }: { lanes: { lane: OverviewLane; segments: Segment[]; marks: { at: number; kind: string }[] }[] }) {
  return (
    <div class="table-scroll figure-table" tabIndex={0} role="region" aria-label="Sessions over time, table">
      <table>
        <thead>
          <tr>
            <th scope="col">Session</th>
            {SHOWN.map((state) => (
              <th key={state} scope="col" class="number">
                {STATES[state]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lanes.map(({ lane, segments }, index) => (
            <tr key={index}>
              <th scope="row">
                <a href={`/s/${lane.session_id}`}>
                  <Name lane={lane} />
                </a>
              </th>
              {SHOWN.map((state) => {
                const sum = segments.filter((segment) => segment.state === state).reduce((total, { from, until }) => total + (until - from), 0);
                return (
                  <td key={state} class="number nowrap">
                    {sum === 0 ? "—" : duration(sum)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
