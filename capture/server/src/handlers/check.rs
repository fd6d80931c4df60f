//! What the checks of a session's turns showed, also those of its sub-agents.

use api::{
    check::{CheckedSubagent, CheckedTurn, SessionCheck},
    routes::CheckSession,
};
use events::SessionId;
use live_view::LiveView;
use projections::Turn;
use store::{ReadError, Reader};

use crate::{answer::HandlerResult, call::Call, lookup::in_path};

/// Number of turns read in addition, because some of the last turns may not have finished.
const UNFINISHED: u32 = 10;
/// Maximum number of sub-agents whose turns are read.
const SUBAGENTS: usize = 200;
/// The start of a turn and of its sub-agent may be dated by different clocks; a sub-agent begins at most this long
/// before its turn, ms.
const SLACK_MS: i64 = 2_000;

/// `GET /api/v1/sessions/{id}/check`
pub(crate) async fn check(call: Call<CheckSession>) -> HandlerResult {
    let last = call.query.last.map_or(1, |last| last.get());
    let session = in_path(&call).await?.session(&call.app).await?;
    let as_of = call.app.live_view.mark().position;
    let descendants = descendants(&call.app.live_view, session.id);
    let after = session.turns.saturating_sub(u32::try_from(last).unwrap_or(u32::MAX).saturating_add(UNFINISHED));
    let turns = call.app.read(move |reader| {
        let mut turns = reader.turns(session.id, after, usize::MAX)?;
        turns.retain(|turn| turn.completed_at.is_some());
        turns.drain(..turns.len().saturating_sub(last));
        checked(reader, turns, &descendants)
    });
    let turns = turns.await?;
    call.answer(&SessionCheck { as_of, turns })
}

/// The sub-agents of a session, and theirs.
fn descendants(live_view: &LiveView, id: SessionId) -> Vec<SessionId> {
    let (mut found, mut at) = (vec![id], 0);
    while let Some(parent) = found.get(at).copied().filter(|_| found.len() <= SUBAGENTS) {
        let children = live_view.children(parent).into_iter().map(|child| child.id);
        let children: Vec<SessionId> = children.filter(|child| !found.contains(child)).collect();
        found.extend(children);
        at += 1;
    }
    found.into_iter().skip(1).take(SUBAGENTS).collect()
}

/// The turns with those of sub-agents that began during each.
fn checked(reader: &Reader, turns: Vec<Turn>, descendants: &[SessionId]) -> Result<Vec<CheckedTurn>, ReadError> {
    let checked = |turn: Turn| CheckedTurn { checks: turn.receipt.line(), turn, subagents: Vec::new() };
    let mut turns: Vec<CheckedTurn> = turns.into_iter().map(checked).collect();
    for id in descendants {
        let mut title = None;
        for of_child in reader.turns(*id, 0, usize::MAX)? {
            let Some(checks) = of_child.receipt.line() else { continue };
            let Some(during) = turns.iter_mut().rev().find(|turn| began_during(&of_child, &turn.turn)) else {
                continue;
            };
            let title = match &title {
                Some(title) => title,
                None => title.insert(reader.session(*id)?.and_then(|session| session.title)),
            };
            during.subagents.push(CheckedSubagent {
                session_id: *id,
                title: title.clone(),
                turn: of_child.number,
                checks,
                receipt: of_child.receipt,
            });
        }
    }
    Ok(turns)
}

fn began_during(of_child: &Turn, turn: &Turn) -> bool {
    let began = of_child.started_at;
    began.plus_ms(SLACK_MS) >= turn.started_at && turn.completed_at.is_some_and(|ended| began <= ended)
}
