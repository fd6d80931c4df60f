//! The events of all sessions, read from the store.

use api::{history::TimelineSession, routes::ListTimeline};
use events::{Event, SessionId, Timestamp};
use serde::Serialize;
use store::{NOTABLE_KINDS, ReadError, Reader, TimelineFilter};

use crate::{answer::HandlerResult, call::Call, error::ApiError, lookup::named};

const DEFAULT_LIMIT: usize = 200;

/// `GET /api/v1/events`
pub(crate) async fn list(call: Call<ListTimeline>) -> HandlerResult {
    let session = named(&call.app, call.query.session.as_deref()).await?;
    let query = &call.query;
    if let Some(kind) =
        query.kind.0.iter().find(|kind| !NOTABLE_KINDS.contains(kind)).filter(|_| query.failures != Some(true))
    {
        let reason = format!("events of kind `{kind}` are listed per session: /api/v1/sessions/{{id}}/events");
        return Err(ApiError::parameter("kind", &reason));
    }
    let filter = TimelineFilter {
        before: query.cursor.as_deref().map(event_of_cursor).transpose()?,
        since: query.since,
        until: query.until,
        kinds: query.kind.0.clone(),
        providers: query.agent.0.clone(),
        session,
        cwd: query.cwd.clone(),
        failures: query.failures == Some(true),
        limit: query.limit.map_or(DEFAULT_LIMIT, |limit| limit.get()),
    };
    let limit = filter.limit;
    call.app.commit_shown().await;
    let as_of = call.app.live_view.mark().position;
    let (events, sessions) = call
        .app
        .read(move |reader| {
            let events = reader.timeline(&filter)?;
            let sessions = sessions_of(reader, &events)?;
            Ok((events, sessions))
        })
        .await?;
    let last = events.last().filter(|_| events.len() == limit);
    let next_cursor = last.map(|event| format!("{}.{}", event.created_at.as_millisecond(), event.position));
    call.app.redacted(&TimelineAnswer { as_of, events: &events, sessions, next_cursor })
}

/// An [`api::history::TimelinePage`] that borrows the events it was read with.
#[derive(Serialize)]
struct TimelineAnswer<'a> {
    as_of: u64,
    events: &'a [Event],
    sessions: Vec<TimelineSession>,
    next_cursor: Option<String>,
}

/// The event before which a page begins: `TIME.POSITION`.
fn event_of_cursor(cursor: &str) -> Result<(Timestamp, u64), ApiError> {
    let parts = cursor.split_once('.').and_then(|(at, position)| {
        let at = at.parse().ok().map(Timestamp::from_millisecond)?;
        Some((at, position.parse().ok()?))
    });
    parts.ok_or_else(|| ApiError::parameter("cursor", "expected a `next_cursor` of this list"))
}

/// The sessions of events, each once, in the order of their newest event.
fn sessions_of(reader: &Reader, events: &[Event]) -> Result<Vec<TimelineSession>, ReadError> {
    let mut ids: Vec<SessionId> = Vec::new();
    for event in events {
        if !ids.contains(&event.session_id) {
            ids.push(event.session_id);
        }
    }
    let mut sessions = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(session) = reader.session(id)? else { continue };
        sessions.push(TimelineSession { id, provider: session.provider, title: session.title, cwd: session.cwd });
    }
    Ok(sessions)
}
