//! The history of sessions, read from the store.

use api::{
    Operation,
    history::{
        ConversationPage, ConversationTexts, HandoffNote, HistoryQuery, RecentTurnPage, SessionTurn, StatusChange,
        StatusChangePage, TurnPage,
    },
    list::MAX_LIMIT,
    routes::{
        GetDrift, GetText, GetWork, HandOffSession, ListEvents, ListRecentTurns, ListStatusChanges, ListTurns,
        ReadConversation, StatusHistory,
    },
};
use events::{Event, FindingState, Kind, Payload, SessionId, Timestamp};
use live_view::HandoffParts;
use serde::Serialize;
use store::EntityFilter;

use crate::{
    answer::{self, HandlerResult},
    call::Call,
    conversation,
    error::ApiError,
    lookup::{in_path, target},
};

const DEFAULT_LIMIT: usize = 200;
const CONVERSATION_LIMIT: usize = 100;
/// Number of most recent events from which a session's work is summarized.
const WORK_EVENTS: u64 = 20_000;
/// Maximum number of findings in a handoff note.
const HANDOFF_FINDINGS: usize = 50;

/// `GET /api/v1/sessions/{id}/events`
pub(crate) async fn events(call: Call<ListEvents>) -> HandlerResult {
    let query = &call.query;
    let after = query.begins_after();
    let limit = query.limit.map_or(DEFAULT_LIMIT, |limit| limit.get());
    let kinds = query.kind.0.clone();
    let id = target(&call).await?;
    let as_of = call.app.live_view.mark().position;
    let events = call.app.read(move |reader| reader.events(id, after, limit, &kinds)).await?;
    let next_after = events.last().map_or(after, |event| event.sequence);
    let next_cursor = (events.len() == limit).then(|| next_after.to_string());
    answer::json_of(&EventsAnswer { as_of, events: &events, next_cursor, next_after })
}

/// An [`api::history::EventPage`] that borrows the events it was read with, so that the page is serialized once.
#[derive(Serialize)]
struct EventsAnswer<'a> {
    as_of: u64,
    events: &'a [Event],
    next_cursor: Option<String>,
    next_after: u64,
}

/// `GET /api/v1/sessions/{id}/conversation`
pub(crate) async fn conversation(call: Call<ReadConversation>) -> HandlerResult {
    let after = call.query.begins_after();
    let limit = call.query.limit.map_or(CONVERSATION_LIMIT, |limit| limit.get());
    let whole = call.query.texts == Some(ConversationTexts::Whole);
    let id = target(&call).await?;
    let as_of = call.app.live_view.mark().position;
    let children = call.app.live_view.children(id);
    let wanted = conversation::WantedPage { session: id, after, limit, whole, children };
    let (items, has_more) = call.app.read(move |reader| conversation::page(reader, &wanted)).await?;
    let next_cursor = items.last().filter(|_| has_more).map(|item| item.sequence.to_string());
    call.answer(&ConversationPage { as_of, items, next_cursor })
}

/// `GET /api/v1/sessions/{id}/turns`
pub(crate) async fn turns(call: Call<ListTurns>) -> HandlerResult {
    let after = call.query.begins_after().unwrap_or_default();
    let name = if call.query.cursor.is_some() { "cursor" } else { "after" };
    let after = u32::try_from(after).map_err(|_| ApiError::parameter(name, "larger than any turn number"))?;
    let limit = call.query.limit.map_or(DEFAULT_LIMIT, |limit| limit.get());
    let id = target(&call).await?;
    let as_of = call.app.live_view.mark().position;
    let turns = call.app.read(move |reader| reader.turns(id, after, limit)).await?;
    let next_after = turns.last().map_or(after, |turn| turn.number);
    let next_cursor = (turns.len() == limit).then(|| next_after.to_string());
    call.answer(&TurnPage { as_of, turns, next_cursor, next_after })
}

/// `GET /api/v1/turns`
pub(crate) async fn recent_turns(call: Call<ListRecentTurns>) -> HandlerResult {
    let since = call.query.since.unwrap_or(Timestamp::MIN);
    let limit = call.query.limit.map_or(DEFAULT_LIMIT, |limit| limit.get());
    let after = call.query.cursor.as_deref().map(turn_of_cursor).transpose()?;
    let as_of = call.app.live_view.mark().position;
    let turns = call.app.read(move |reader| reader.turns_since(since, after, limit)).await?;
    let last = turns.last().filter(|_| turns.len() == limit);
    let next_cursor = last.map(|(session, turn)| format!("{}.{session}", turn.number));
    let turns = turns.into_iter().map(|(session_id, turn)| SessionTurn { session_id, turn }).collect();
    call.answer(&RecentTurnPage { as_of, turns, next_cursor })
}

/// The turn after which a page begins: `NUMBER.SESSION`.
fn turn_of_cursor(cursor: &str) -> Result<(SessionId, u32), ApiError> {
    let parts = cursor.split_once('.').and_then(|(number, id)| Some((id.parse().ok()?, number.parse().ok()?)));
    parts.ok_or_else(|| ApiError::parameter("cursor", "expected a `next_cursor` of this list"))
}

/// `GET /api/v1/sessions/{id}/work`
pub(crate) async fn work(call: Call<GetWork>) -> HandlerResult {
    let id = target(&call).await?;
    let work = call.app.read(move |reader| reader.work(id, WORK_EVENTS)).await?;
    call.answer(&work)
}

/// `GET /api/v1/sessions/{id}/drift`
pub(crate) async fn drift(call: Call<GetDrift>) -> HandlerResult {
    let id = target(&call).await?;
    let drift = call.app.read(move |reader| reader.drift(id, WORK_EVENTS)).await?;
    call.answer(&drift)
}

/// `GET /api/v1/sessions/{id}/handoff`
pub(crate) async fn handoff(call: Call<HandOffSession>) -> HandlerResult {
    let session = in_path(&call).await?.session(&call.app).await?;
    let id = session.id;
    let unresolved = EntityFilter {
        states: Some(FindingState::Open..=FindingState::Acknowledged),
        session: Some(id),
        limit: HANDOFF_FINDINGS,
        behind: None,
    };
    let parts = call.app.read(move |reader| {
        let (work, findings) = (reader.work(id, WORK_EVENTS)?, reader.entities(&unresolved)?);
        Ok(HandoffParts { session, turns: reader.turns(id, 0, usize::MAX)?, work, findings })
    });
    let parts = parts.await?;
    let markdown = call.app.ask(call.app.control.hand_off(parts)).await?;
    call.answer(&HandoffNote { markdown })
}

/// The change that an event records; `None` for events of other kinds.
fn change_of(event: Event) -> Option<StatusChange> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "exactly one kind was requested")]
    match event.payload {
        Payload::StatusChanged(change) => Some(StatusChange {
            at: event.created_at,
            observed_at: event.observed_at,
            from: change.from,
            to: change.to,
            reason: change.reason,
            confidence: event.confidence,
            source: Some(event.source),
            evidence: change.evidence,
            sequence: event.sequence,
        }),
        _ => None,
    }
}

/// `GET /api/v1/sessions/{id}/status/history`
pub(crate) async fn status(call: Call<StatusHistory>) -> HandlerResult {
    let limit = call.query.limit.map_or(MAX_LIMIT, |limit| limit.get());
    let changes = changes(&call, call.query.begins_after(), limit).await?;
    call.app.redacted(&changes)
}

/// `GET /api/v1/sessions/{id}/status/changes`
pub(crate) async fn status_changes(call: Call<ListStatusChanges>) -> HandlerResult {
    let limit = call.query.limit.map_or(DEFAULT_LIMIT, |limit| limit.get());
    let as_of = call.app.live_view.mark().position;
    let changes = changes(&call, Some(call.query.begins_after().unwrap_or_default()), limit).await?;
    let last = changes.last().filter(|_| changes.len() == limit);
    let next_cursor = last.map(|change| change.sequence.to_string());
    call.app.redacted(&StatusChangePage { as_of, changes, next_cursor })
}

/// The status changes after a sequence, or without one the most recent ones.
async fn changes<O: Operation<Query = HistoryQuery>>(
    call: &Call<O>,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<StatusChange>, ApiError> {
    let id = target(call).await?;
    let kinds = [Kind::StatusChanged];
    let events = call
        .app
        .read(move |reader| match after {
            Some(after) => reader.events(id, after, limit, &kinds),
            None => reader.last_events(id, limit, &kinds),
        })
        .await?;
    Ok(events.into_iter().filter_map(change_of).collect())
}

/// `GET /api/v1/texts/{hash}`
pub(crate) async fn text(call: Call<GetText>) -> HandlerResult {
    let hash = call.segment;
    if hash.is_empty() || hash.len() > 64 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(ApiError::parameter("hash", "must be hexadecimal"));
    }
    let text = call.app.read(move |reader| reader.text(&hash)).await?;
    text.map(answer::text).ok_or_else(|| {
        ApiError::not_found("unknown text").hint(
            "texts above the size limit are not stored; the event's origin names \
            the file",
        )
    })
}
