// What the agent did, held against what it said and against what the person asked for.

import { useSignal } from "@preact/signals";
import { call } from "../api/client";
import type { CheckedTurn, Distance } from "../api/routes";
import { row } from "../live/store";
import { Failed, Loading } from "../parts/feedback";
import { useLoad } from "../parts/load";
import { Title } from "../parts/sessions";
import { Shown } from "../parts/text";
import { relative } from "../text/format";
import { spaced } from "../text/names";
import { Panel } from "./panels";

/** Number of turns read. */
const TURNS = 50;
const ACCUSES = ["stale", "contradicted", "unsupported"];

/** The last turns with checks or with statements about them, newest first; pressing one shows it in the conversation. */
export function Checks({ id, onTime }: { id: string; onTime: (time: string) => void }) {
  const session = row(id)?.session.value;
  const { state } = useLoad(
    (abort) => call("GET /api/v1/sessions/{id}/check", { path: { id }, query: { last: TURNS }, signal: abort }),
    [id, session?.turns, session?.turn == null],
  );
  const turns = (state.value.value?.turns ?? []).filter((turn) => turn.checks != null || claimsOf(turn).length > 0 || turn.subagents != null);
  if (turns.length === 0) return null;
  return (
    <Panel title="Checks" count={turns.length}>
      <ol class="turns">
        {turns.toReversed().map((turn) => (
          <li key={turn.id}>
            <button type="button" onClick={() => onTime(turn.completed_at ?? turn.started_at)}>
              <span>
                Turn {turn.number} · {turn.checks ?? "no checks ran"}
              </span>
              {claimsOf(turn).map((claim, index) => (
                <span key={index} class={`small ${ACCUSES.includes(claim.verdict) ? "error-text" : "muted"}`}>
                  “<Shown text={claim.said} />” {claim.verdict}: <Shown text={claim.why} />
                </span>
              ))}
            </button>
            {turn.subagents?.map((child) => (
              <p key={child.session_id + child.turn} class="small">
                <a href={`/s/${child.session_id}`}>
                  <Title of={row(child.session_id)?.session.value} id={child.session_id} />
                </a>
                {" · "}
                {child.checks}
              </p>
            ))}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

const claimsOf = (turn: CheckedTurn) => turn.receipt?.claims ?? [];

/** How far the edits are from what the person named; read when it is opened. */
export function Scope({ id, onPlace }: { id: string; onPlace: (sequence: number) => void }) {
  const open = useSignal(false);
  return (
    <Panel title="Scope" open={false} onOpen={() => (open.value = true)}>
      {open.value && <Edits id={id} onPlace={onPlace} />}
    </Panel>
  );
}

const FAR: Distance[] = ["elsewhere", "read_first"];

function Edits({ id, onPlace }: { id: string; onPlace: (sequence: number) => void }) {
  const session = row(id)?.session.value;
  const { state, again } = useLoad((abort) => call("GET /api/v1/sessions/{id}/drift", { path: { id }, signal: abort }), [id, session?.turns]);
  const { value, cause } = state.value;
  if (cause !== null) return <Failed cause={cause} retry={again} />;
  if (value === null) return <Loading lines={2} />;
  const path = (file: string) => <Shown text={relative(file, session?.cwd ?? null)} />;
  const asks = value.asks.filter(({ files = [] }) => files.length > 0).toReversed();
  const { left } = value;
  return (
    <>
      {left == null ? (
        <p class="muted small">{asks.length === 0 ? "No file was changed." : "It did not leave the subject."}</p>
      ) : (
        <button type="button" class="link-button" onClick={() => onPlace(left.sequence)}>
          Left the subject in turn {left.turn} with {path(left.file)}
        </button>
      )}
      {asks.map((ask) => (
        <div key={ask.event}>
          <p class="turn-prompt">
            Turn {ask.turn} · <Shown text={ask.prompt} />
          </p>
          <ul class="files">
            {ask.files?.map(({ file, distance, edits }) => (
              <li key={file}>
                <span class="path">{path(file)}</span>
                <span class={`small nowrap ${distance != null && FAR.includes(distance) ? "" : "muted"}`}>
                  {distance != null && `${spaced(distance)} `}
                  {edits}×
                </span>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </>
  );
}
