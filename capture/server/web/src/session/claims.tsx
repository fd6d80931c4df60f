// A status and its basis: every claim in effect, its source and its outcome.

import type { ComponentChildren } from "preact";
import { REASONS, type Rule, type Standing, type StatusAt } from "../api/routes";
import { type Sign, SignShape, TONES, WORDS } from "../parts/icons";
import { Confidence } from "../parts/sessions";
import { Shown } from "../parts/text";
import { capital, exactly, moment } from "../text/format";
import { CONFIDENCE, SOURCES, STATES } from "../text/names";

const RULES: Record<Rule, string> = {
  process_gone: "The process is gone, and with it every claim.",
  silence: "There was no activity for a long time.",
  alone: "There is only one claim.",
  unanimous: "All claims agree.",
  strongest: "The strongest claim decides.",
  closest: "Of equally strong claims, the source closest to the agent decides.",
  latest: "Of equally strong claims of one source, the last one decides.",
  first: "The newest claim is believed for a moment, until closer sources can confirm it.",
};

const STANDINGS: Record<Standing, string> = {
  decides: "decides",
  agrees: "agrees",
  weaker: "weaker",
  overruled: "overruled",
  not_yet: "not yet",
  over: "over",
};

/** The sign of a session that needs something: since when, and the cause if it is not the status. */
export type Needing = { sign: Sign; since: string; cause: ComponentChildren };

/** The status and its claims. */
export function Claims({ found, needing = null }: { found: StatusAt; needing?: Needing | null }) {
  const { status, account } = found;
  const sign = needing?.sign ?? status.state;
  const cause = needing?.cause ?? null;
  const reason = status.reason === null || status.reason === sign ? null : REASONS[status.reason].title;
  return (
    <div class="claims">
      <p class={`claims-status ${TONES[sign]}`}>
        <SignShape sign={sign} />
        <strong>{WORDS[sign]}</strong>
        {cause === null && reason !== null && <span class="reason">{reason}</span>}
        <span class="muted">since {moment(needing?.since ?? status.since)}</span>
      </p>
      {cause !== null && <p>{cause}</p>}
      <p class="muted small">
        {cause !== null && `Its own status: ${[STATES[status.state].toLowerCase(), reason].filter((part) => part !== null).join(", ")}. `}
        {RULES[account.rule]} {capital(CONFIDENCE[status.confidence])}.
      </p>
      {account.claims.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Source</th>
              <th scope="col">Claim</th>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {account.claims.map((claim, index) => (
              <tr key={index} class={`standing-${claim.standing}`}>
                <td class="nowrap">
                  {SOURCES[claim.source]}
                  <Confidence level={claim.strength} />
                </td>
                <td>
                  <Shown text={claim.claim} />
                  <div class="muted small" title={exactly(claim.at)}>
                    {STATES[claim.state].toLowerCase()}
                    {claim.reason !== null && claim.reason !== undefined && `, ${REASONS[claim.reason].title}`} · {moment(claim.at)}
                    {claim.agent != null && " · sub-agent"}
                  </div>
                </td>
                <td class="nowrap">{STANDINGS[claim.standing]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
