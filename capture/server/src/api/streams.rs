//! Following along: over server-sent events and over a WebSocket.

use std::sync::Arc;

use events::SessionId;

use crate::{
    app::App,
    board::Interest,
    call::{Call, Reply},
    dialect::Dialect,
    error::ApiError,
    sse,
    tail::{Resume, Tail},
    ws,
};

use super::sessions::id_of;

/// `GET /api/v1/stream`
pub(crate) fn sse(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let interest = interest(&app, &call).await?;
        let slot = call.stream()?;
        let tail = Tail::new(&app, interest, resume(&call)?);
        Ok(sse::answer(app, tail, Dialect::frames(), slot))
    })
}

/// `GET /api/v1/ws`
pub(crate) fn websocket(app: &App, mut call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let interest = interest(&app, &call).await?;
        let resume = resume(&call)?;
        ws::answer(&app, &mut call, interest, resume)
    })
}

/// The sessions a stream is about, from `?session=`.
pub(crate) async fn interest(app: &App, call: &Call) -> Result<Interest, ApiError> {
    let query = call.query();
    match query.text("session") {
        None => Ok(Interest::All),
        Some(names) => Ok(Interest::Sessions(ids_of(app, names.split(',')).await?)),
    }
}

/// The sessions these names mean; an error names the first that means none.
pub(crate) async fn ids_of(app: &App, names: impl Iterator<Item = &str> + Send) -> Result<Vec<SessionId>, ApiError> {
    let mut ids = Vec::new();
    for name in names {
        let id = id_of(app, name.trim()).await?.ok_or_else(|| ApiError::session(name))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Where a client left off: `Last-Event-ID`, or `?after=`.
fn resume(call: &Call) -> Result<Option<Resume>, ApiError> {
    let query = call.query();
    let header = call.parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = match header {
        // A browser sends back whatever it was given; what is no position of ours resumes nothing.
        Some(text) => text.trim().parse().ok(),
        None => query.value("after")?,
    };
    Ok(after.map(|after| Resume { after, epoch: query.text("epoch").map(str::to_owned) }))
}
