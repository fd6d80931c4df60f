//! The routes of older clients.

use api::{
    compat,
    routes::{CompatMessages, CompatSessionStream, CompatStatusStream},
};
use events::Kind;
use live_view::Interest;

use crate::{
    answer::{self, HandlerResult},
    app::App,
    call::{self, Call},
    compat::{CompatStream, INIT_EVENTS, stream_status},
    error::ApiError,
    lookup::{id_of, target},
    sse,
    stream_format::StreamFormat,
    tail::{Item, Tail},
};

/// Number of messages if the request gives no limit.
const MESSAGES: usize = 100;
/// Maximum size of long texts in one answer, bytes; further ones are shortened.
const WHOLE_BYTES: u64 = 16 << 20;

/// `GET /api/stream/status`
pub(crate) async fn status_stream(call: Call<CompatStatusStream>) -> HandlerResult {
    if !call::accepts(&call.parts.headers, "text/event-stream") {
        let sessions = statuses(&call.app, Interest::All).await?;
        return answer::json_of(&compat::StreamStatuses { sessions });
    }
    let slot = call.stream()?;
    let tail = Tail::new(&call.app, Interest::All, None);
    Ok(sse::answer(call.app, tail, StreamFormat::Compat(CompatStream::of_all()), slot))
}

/// `GET /api/sessions/{id}/stream`
pub(crate) async fn session_stream(call: Call<CompatSessionStream>) -> HandlerResult {
    let id = target(&call).await?;
    if !call::accepts(&call.parts.headers, "text/event-stream") {
        let status = statuses(&call.app, Interest::Sessions(vec![id])).await?.into_iter().next();
        let status = status.ok_or_else(|| ApiError::not_found("the session is not active"))?;
        let events = call.app.read(move |reader| reader.last_events(id, INIT_EVENTS, &[])).await?;
        return answer::json_of(&compat::SessionStream { status, events });
    }
    let slot = call.stream()?;
    let tail = Tail::new(&call.app, Interest::Sessions(vec![id]), None);
    Ok(sse::answer(call.app, tail, StreamFormat::Compat(CompatStream::of_sessions()), slot))
}

/// The status of sessions, as at the beginning of a stream.
async fn statuses(app: &App, interest: Interest) -> Result<Vec<compat::StreamStatus>, ApiError> {
    let mut tail = Tail::new(app, interest, None);
    loop {
        if let Item::Snapshot(snapshot) = tail.next().await? {
            return snapshot.sessions.iter().map(stream_status).collect();
        }
    }
}

/// `GET /api/session/messages?session=`
pub(crate) async fn messages(call: Call<CompatMessages>) -> HandlerResult {
    let limit = call.query.limit.map_or(MESSAGES, |limit| limit.get());
    let before = call.query.before.unwrap_or(u64::MAX);
    let session = id_of(&call.app, &call.query.session).await?;
    let kinds = [Kind::UserPrompt, Kind::AssistantMessage];
    let messages = call
        .app
        .read(move |reader| {
            let (mut messages, mut left) = (Vec::new(), WHOLE_BYTES);
            for event in reader.last_before(session, before, limit, &kinds)?.into_iter().rev() {
                let whole = match &event.text_ref {
                    Some(text) if text.length <= left => reader.text(&text.hash)?,
                    Some(_) | None => None,
                };
                left = left.saturating_sub(whole.as_ref().map_or(0, |text| text.len() as u64));
                // Skip answers that only call tools.
                let Some(text) = whole.or(event.text).filter(|text| !text.is_empty()) else { continue };
                let role = if event.payload.kind() == Kind::UserPrompt { "user" } else { "assistant" }.to_owned();
                let (id, at, sequence) = (event.id, event.created_at, event.sequence);
                messages.push(compat::Message { id, role, text, at, sequence });
            }
            Ok(messages)
        })
        .await?;
    call.answer(&compat::Messages { session, messages })
}
