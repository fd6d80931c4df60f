//! The routes of older clients.

use api::{
    compat,
    routes::{CompatMessages, CompatSessionStream, CompatStatusStream},
};
use events::Kind;
use live_view::Interest;

use crate::{
    answer::HandlerResult,
    call::Call,
    compat::CompatStream,
    lookup::{id_of, target},
    sse,
    stream_format::StreamFormat,
    tail::Tail,
};

/// Number of messages if the request gives no limit.
const MESSAGES: usize = 100;

/// `GET /api/stream/status`
pub(crate) async fn status_stream(call: Call<CompatStatusStream>) -> HandlerResult {
    let slot = call.stream()?;
    let tail = Tail::new(&call.app, Interest::All, None);
    Ok(sse::answer(call.app, tail, StreamFormat::Compat(CompatStream::of_all()), slot))
}

/// `GET /api/sessions/{id}/stream`
pub(crate) async fn session_stream(call: Call<CompatSessionStream>) -> HandlerResult {
    let id = target(&call).await?;
    let slot = call.stream()?;
    let tail = Tail::new(&call.app, Interest::Sessions(vec![id]), None);
    Ok(sse::answer(call.app, tail, StreamFormat::Compat(CompatStream::of_sessions()), slot))
}

/// `GET /api/session/messages?session=`
pub(crate) async fn messages(call: Call<CompatMessages>) -> HandlerResult {
    let limit = call.query.limit.map_or(MESSAGES, |limit| limit.get());
    let session = id_of(&call.app, &call.query.session).await?;
    let kinds = [Kind::UserPrompt, Kind::AssistantMessage];
    let events = call.app.read(move |reader| reader.last_events(session, limit, &kinds)).await?;
    let messages = events
        .into_iter()
        .map(|event| compat::Message {
            id: event.id,
            role: if event.payload.kind() == Kind::UserPrompt { "user" } else { "assistant" }.to_owned(),
            text: event.text,
            at: event.created_at,
            sequence: event.sequence,
        })
        .collect();
    call.answer(&compat::Messages { session, messages })
}
