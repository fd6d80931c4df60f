//! OTLP/HTTP: receives agents' telemetry. The body is received and decompressed here, within limits. The daemon decodes
//! and stores it, and only then is the sender answered.
//!
//! An exporter keeps and resends data answered with 429 or 503, and drops data answered with 400 or 413.

use std::sync::Arc;

use api::{
    ErrorCode, Operation,
    routes::{TelemetryLogs, TelemetryMetrics, TelemetryTraces},
};
use async_compression::tokio::bufread::GzipDecoder;
use axum::body::Body;
use futures_util::TryStreamExt;
use http::{HeaderMap, HeaderValue, header};
use live_view::{Telemetry, TelemetryKind, TelemetryRefusal};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::timeout,
};
use tokio_util::io::StreamReader;

use crate::{
    answer::{self, HandlerResult},
    app::App,
    call::{self, Call, Coding, MediaType},
    error::ApiError,
};

/// Time after which a refused sender should retry, seconds.
const RETRY_AFTER_S: u32 = 2;

/// `POST /v1/logs`
pub(crate) async fn logs(call: Call<TelemetryLogs>) -> HandlerResult {
    take(call, TelemetryKind::Logs).await
}

/// `POST /v1/traces`
pub(crate) async fn traces(call: Call<TelemetryTraces>) -> HandlerResult {
    take(call, TelemetryKind::Traces).await
}

/// `POST /v1/metrics`
pub(crate) async fn metrics(call: Call<TelemetryMetrics>) -> HandlerResult {
    take(call, TelemetryKind::Metrics).await
}

async fn take<O: Operation>(call: Call<O>, kind: TelemetryKind) -> HandlerResult {
    let app = call.app;
    // Held until the answer, to bound the memory of all bodies together.
    let _permit = Arc::clone(&app.telemetry).try_acquire_owned().map_err(|_| busy())?;
    let protobuf = call::media_type(&call.parts.headers) == Some(MediaType::Protobuf);
    let body = receive(&app, &call.parts.headers, call.body.into_inner()).await?;
    hand_over(&app, Telemetry { kind, protobuf, body }).await
}

/// Reads and decompresses the body in one pass; stops at the limit.
async fn receive(app: &App, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, ApiError> {
    let limit = app.limits.telemetry_bytes;
    let sent = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let read = async {
        match call::coding(headers)? {
            Coding::Identity => capped(sent, limit).await,
            Coding::Gzip => {
                let mut decoder = GzipDecoder::new(sent);
                // Consecutive gzip streams form one body (RFC 1952, 2.2).
                decoder.multiple_members(true);
                capped(decoder, limit).await
            }
        }
    };
    match timeout(app.limits.read, read).await {
        Ok(read) => read,
        Err(_) => Err(ApiError::timeout("the body did not arrive in time")),
    }
}

async fn capped(body: impl AsyncRead + Unpin, limit: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    body.take(limit as u64 + 1).read_to_end(&mut bytes).await.map_err(ApiError::body)?;
    if bytes.len() > limit { Err(ApiError::too_large(limit)) } else { Ok(bytes) }
}

/// Sends a message to the daemon and waits until its events are stored.
async fn hand_over(app: &App, message: Telemetry) -> HandlerResult {
    let protobuf = message.protobuf;
    let stuck = || {
        ApiError::unavailable("cannot write to the database at the moment; retry").header(header::RETRY_AFTER, later())
    };
    match timeout(app.limits.telemetry_wait, app.control.telemetry(message)).await {
        Ok(Ok(answer)) if protobuf => Ok(answer::protobuf(answer)),
        Ok(Ok(answer)) => Ok(answer::json(answer)),
        Ok(Err(TelemetryRefusal::Malformed(why))) => Err(ApiError::body(why)),
        Ok(Err(TelemetryRefusal::Busy)) => Err(busy()),
        Ok(Err(TelemetryRefusal::Stuck)) => Err(stuck()),
        Err(_) if (app.health.trouble)().is_none() => Err(busy()),
        Err(_) => Err(stuck()),
    }
}

fn busy() -> ApiError {
    ApiError::new(ErrorCode::Busy, "too much telemetry is waiting to be stored; retry")
        .header(header::RETRY_AFTER, later())
}

fn later() -> HeaderValue {
    HeaderValue::from(RETRY_AFTER_S)
}
