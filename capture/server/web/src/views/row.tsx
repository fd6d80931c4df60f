// One session in the list: a link over the whole row, and its menu.

import { REASONS } from "../api/routes";
import type { Row } from "../live/store";
import { markItems } from "../marks";
import { mayControl } from "../me";
import { Icon, SignShape, TONES, WORDS } from "../parts/icons";
import { Menu } from "../parts/menu";
import { Activity, Confidence, Since, SubagentBadge, signOf, Title } from "../parts/sessions";
import { basename } from "../text/format";
import { AGENTS } from "../text/names";
import { titleOf } from "../text/title";
import { visible } from "../text/visible";

/** A session in the list. */
export function SessionRow({ row }: { row: Row }) {
  const session = row.session.value;
  const sign = signOf(row);
  const need = row.need.value;
  const { reason, confidence } = session.status;
  return (
    <div class={`session-row ${TONES[sign]} ${need !== null ? "needs" : ""} ${need?.risky === true ? "risky" : ""}`}>
      <a class="session-link" href={`/s/${row.id}`} data-session={row.id}>
        <span class="cell-sign">
          <SignShape sign={sign} size={20} />
        </span>
        <span class="cell-title">
          <span class="title-line">
            {session.marks?.pinned === true && (
              <span class="pin" title="Pinned">
                <Icon name="pin" size={13} />
                <span class="visually-hidden">pinned</span>
              </span>
            )}
            <span class="title-text">
              <Title of={session} />
            </span>
            <SubagentBadge row={row} />
            {need?.risky === true && <span class="chip chip-risky">risky</span>}
          </span>
          <span class="activity-line">
            <Activity row={row} />
          </span>
        </span>
        <span class="cell-state">
          <span class="word">{WORDS[sign]}</span>
          <span class="sub">
            {reason === null || reason === need?.need ? "" : REASONS[reason].title}
            {confidence !== "high" && <Confidence level={confidence} />}
          </span>
        </span>
        <span class="cell-place">
          <span class="ellipsis" title={visible(session.cwd ?? "")}>
            {session.cwd === null ? "—" : visible(basename(session.cwd))}
          </span>
          <span class="sub ellipsis">{session.git_branch === null ? "" : visible(session.git_branch)}</span>
        </span>
        <span class="cell-agent">
          <span class="ellipsis">{AGENTS[session.provider]}</span>
          <span class="sub ellipsis">{visible(shortModel(session.model))}</span>
        </span>
        <span class="cell-since">
          <Since time={need?.since ?? session.status.since} />
        </span>
      </a>
      {mayControl.value && (
        <Menu label={`Pin, snooze or archive: ${visible(titleOf(session))}`} items={markItems(row.id)} class="row-menu">
          <Icon name="more" size={18} />
        </Menu>
      )}
    </div>
  );
}

/** `claude-sonnet-4-5-20250929` without the date. */
export const shortModel = (model: string | null): string => (model ?? "").replace(/-\d{8}$/, "");
