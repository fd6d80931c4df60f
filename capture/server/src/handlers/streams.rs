//! Streams of events, over server-sent events and over WebSockets.

use std::{sync::Arc, time::Duration};

use api::{
    Operation,
    routes::{Stream, StreamOverWebSocket, StreamQuery},
};
use axum::extract::{
    FromRequestParts,
    ws::{WebSocketUpgrade, rejection::WebSocketUpgradeRejection},
};
use http::{HeaderValue, header};
use live_view::Interest;

use crate::{
    answer::HandlerResult,
    app::App,
    call::Call,
    error::ApiError,
    line_stream::LineStream,
    lookup::ids_of,
    sse,
    stream_format::StreamFormat,
    tail::{Resume, Tail},
    ws,
};

/// Maximum time for which frames are collected, ms.
const BATCH_MS: u64 = 1_000;

/// `GET /api/v1/stream`
pub(crate) async fn sse(call: Call<Stream>) -> HandlerResult {
    let interest = interest(&call.app, &call.query).await?;
    if call.query.compress.is_some() {
        return Err(ApiError::parameter("compress", "server-sent events are not compressed; use the WebSocket"));
    }
    let slot = call.stream()?;
    let tail = Tail::in_batches(&call.app, interest, resume(&call), batch(call.query.batch_ms)?);
    Ok(sse::answer(call.app, tail, StreamFormat::frames(), slot))
}

/// `GET /api/v1/ws`
pub(crate) async fn websocket(mut call: Call<StreamOverWebSocket>) -> HandlerResult {
    let interest = interest(&call.app, &call.query).await?;
    let tail = Tail::in_batches(&call.app, interest, resume(&call), batch(call.query.batch_ms)?);
    let lines = match call.query.compress.as_deref() {
        None => None,
        Some("gzip") => Some(LineStream::new(Arc::clone(&call.app.compressed).try_acquire_owned().ok())),
        Some(_) => return Err(ApiError::parameter("compress", "expected `gzip`")),
    };
    let upgrade =
        WebSocketUpgrade::from_request_parts(&mut call.parts, &()).await.map_err(|why| not_a_websocket(&why))?;
    let slot = call.stream()?;
    // Permissions of the WebSocket are decided here, from the head of this request.
    let (headers, transport) = (&call.parts.headers, &call.connection.transport);
    let control = call.app.gate.check_control(call.device.as_ref(), headers, transport);
    Ok(ws::answer(&call.app, upgrade, tail, lines, control, slot))
}

/// The error for a request that is not a valid WebSocket upgrade.
pub(super) fn not_a_websocket(why: &WebSocketUpgradeRejection) -> ApiError {
    if matches!(why, WebSocketUpgradeRejection::InvalidWebSocketVersionHeader(_)) {
        return ApiError::new(api::ErrorCode::WebSocketVersion, "only WebSocket version 13 is supported")
            .header(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    ApiError::new(api::ErrorCode::UpgradeRequired, "this route needs a WebSocket connection")
        .header(header::UPGRADE, HeaderValue::from_static("websocket"))
}

/// The sessions and events of a stream, from `?session=` or `?events=`.
async fn interest(app: &App, query: &StreamQuery) -> Result<Interest, ApiError> {
    match (&query.session, query.events.as_deref()) {
        (None, None) => Ok(Interest::All),
        (Some(names), None) => Ok(Interest::Sessions(ids_of(app, names.split(',')).await?)),
        (None, Some("none")) => Ok(Interest::StatesAndEventsOf(Vec::new())),
        (None, Some(names)) => Ok(Interest::StatesAndEventsOf(ids_of(app, names.split(',')).await?)),
        (Some(_), Some(_)) => {
            Err(ApiError::parameter("events", "`session` already selects the sessions whose events are sent"))
        }
    }
}

/// The time for which frames are collected, from `batch_ms`.
pub(crate) fn batch(batch_ms: Option<u64>) -> Result<Duration, ApiError> {
    let batch = batch_ms.unwrap_or_default();
    if batch > BATCH_MS {
        return Err(ApiError::parameter("batch_ms", format!("{batch} is above the maximum of {BATCH_MS}")));
    }
    Ok(Duration::from_millis(batch))
}

/// The position to resume from: `Last-Event-ID`, or `?after=`.
fn resume<O: Operation<Query = StreamQuery>>(call: &Call<O>) -> Option<Resume> {
    let header = call.parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = match header {
        // Browsers send back whatever id they received; ignore one that is not a position of ours.
        Some(text) => text.trim().parse().ok(),
        None => call.query.after,
    };
    after.map(|after| Resume { after, epoch: call.query.epoch.clone() })
}
