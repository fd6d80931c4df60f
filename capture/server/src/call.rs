//! A request that was let in, with its parameters decoded as its operation declares.

use std::{future::pending, sync::Arc};

use api::{ErrorCode, Operation, Route, query, routes::RequestBody};
use axum::{
    body::{Body, HttpBody as _},
    extract::{FromRequest, Request},
};
use devices::{Devices, SignedIn};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Serialize, de::DeserializeOwned};
use sync_wrapper::SyncWrapper;
use tokio::{sync::watch, time::timeout};

use crate::{
    Limits,
    answer::{self, HandlerResult},
    app::App,
    clients::StreamSlot,
    connection::Connection,
    error::ApiError,
};

/// Held by a stream while it is open: its slot among the streams, and the device that opened it.
pub(crate) struct StreamHold {
    _slot: Option<StreamSlot>,
    device: Option<SignedIn>,
    /// Changes when a device is revoked.
    revocations: watch::Receiver<()>,
}

impl StreamHold {
    /// Whether the device that opened the stream has been revoked since, so that the stream must end.
    pub(crate) fn is_revoked(&self) -> bool {
        self.device.as_ref().is_some_and(SignedIn::is_revoked)
    }

    /// Completes when the device that opened the stream is revoked.
    pub(crate) fn revoked(&self) -> impl Future<Output = ()> + Send + use<> {
        let (device, mut revocations) = (self.device.clone(), self.revocations.clone());
        async move {
            let Some(device) = device else { return pending().await };
            while !device.is_revoked() {
                if revocations.changed().await.is_err() {
                    return pending().await;
                }
            }
        }
    }
}

/// A request for an operation.
pub(crate) struct Call<O: Operation> {
    pub(crate) app: App,
    pub(crate) query: O::Query,
    /// The decoded value of the path's variable segment; empty if the path has none.
    pub(crate) segment: String,
    pub(crate) connection: Arc<Connection>,
    /// The signed-in device; `None` if the request has a token.
    pub(crate) device: Option<SignedIn>,
    pub(crate) parts: Parts,
    /// Only read and never shared, so that a call can be borrowed across an await.
    pub(crate) body: SyncWrapper<Body>,
}

impl<O: Operation> FromRequest<App> for Call<O> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let route = O::ID.route();
        let (connection, device) = authorize(app, &request, Some(route))?;
        let (parts, body) = request.into_parts();
        check_body(&route.body, &parts.headers, body.size_hint().exact(), &app.limits).inspect_err(|_| {
            app.tally.refused.inc();
        })?;
        let segment = if route.segment().is_some() { segment(route, parts.uri.path())? } else { String::new() };
        let query = query::read(parts.uri.query()).map_err(|bad| ApiError::parameter(&bad.name, bad.reason))?;
        Ok(Self { app: Arc::clone(app), query, segment, connection, device, parts, body: SyncWrapper::new(body) })
    }
}

/// Whether the client names this media type as accepted.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let names = |value: &HeaderValue| value.to_str().is_ok_and(|types| types.contains(media_type));
    headers.get_all(header::ACCEPT).iter().any(names)
}

/// Decides from the head of a request whether to let it in to a route or, without a route, whether the client may learn
/// that there is none. Returns the request's connection and the signed-in device.
pub(crate) fn authorize(
    app: &App,
    request: &Request,
    route: Option<&Route>,
) -> Result<(Arc<Connection>, Option<SignedIn>), ApiError> {
    let connection = request.extensions().get::<Arc<Connection>>();
    let connection = connection.ok_or_else(|| ApiError::internal(&"a request without its connection"))?;
    let (headers, transport) = (request.headers(), &connection.transport);
    let method = request.method();
    let checked = app.gate.check_origin(method, request.uri(), headers, transport).and_then(|()| match route {
        Some(route) => app.gate.check_route(route, method, headers, transport),
        None => app.gate.check_known(headers, transport).map(|()| None),
    });
    let device = checked.inspect_err(|_| {
        app.tally.refused.inc();
    })?;
    if device.is_some() {
        save_devices(app);
    }
    Ok((Arc::clone(connection), device))
}

/// Saves, from time to time, when the devices were last used.
fn save_devices(app: &App) {
    let Some(devices) = app.devices.clone().filter(Devices::is_save_due) else { return };
    app.tasks.spawn_blocking(move || {
        if let Err(cause) = devices.save() {
            tracing::warn!(%cause, "cannot write the file of the devices");
        }
    });
}

/// Compares the head's description of the body with the body the route accepts.
fn check_body(
    takes: &RequestBody,
    headers: &HeaderMap,
    body_bytes: Option<u64>,
    limits: &Limits,
) -> Result<(), ApiError> {
    let chunked = headers.contains_key(header::TRANSFER_ENCODING);
    match takes {
        RequestBody::None | RequestBody::Json(_) if chunked => {
            // If a request has both a length and a transfer coding, hyper keeps only the latter, so smuggled requests
            // also end here.
            Err(ApiError::new(ErrorCode::LengthRequired, "send the body with a Content-Length"))
        }
        RequestBody::None => Ok(()),
        RequestBody::Json(_) => {
            // Refuse forms and plain text, which a browser would send for any page without a preflight request.
            if media_type(headers) != Some(MediaType::Json) {
                return Err(ApiError::new(ErrorCode::NotJson, "send the body as application/json"));
            }
            let limit = limits.body_bytes;
            if body_bytes.is_none_or(|n| n > limit as u64) { Err(ApiError::too_large(limit)) } else { Ok(()) }
        }
        // Exporters send chunks, and no proxy between them and us could read a different length.
        RequestBody::Telemetry => {
            if media_type(headers).is_none() {
                let why = "send the body as application/json or application/x-protobuf";
                return Err(ApiError::new(ErrorCode::NotOtlp, why));
            }
            coding(headers)?;
            let limit = limits.telemetry_bytes;
            if body_bytes.is_some_and(|n| n > limit as u64) { Err(ApiError::too_large(limit)) } else { Ok(()) }
        }
    }
}

/// The decoded value of the variable segment in the path. The router has already matched the path, so a missing segment
/// was not UTF-8.
fn segment(route: &Route, path: &str) -> Result<String, ApiError> {
    let segment = route.segment_of(path).ok_or_else(|| ApiError::parameter("path", "not UTF-8"))?.into_owned();
    if segment.contains('\0') {
        return Err(ApiError::parameter("path", "contains a zero byte"));
    }
    Ok(segment)
}

impl<O: Operation> Call<O> {
    /// Answers with the type that the operation declares.
    #[expect(clippy::unused_self, reason = "the request decides the type of the answer")]
    pub(crate) fn answer(&self, answer: &O::Answer) -> HandlerResult
    where
        O::Answer: Serialize,
    {
        answer::json_of(answer)
    }

    /// Counts the connection among the streams while the result is held.
    pub(crate) fn stream(&self) -> Result<StreamHold, ApiError> {
        let (slot, revocations) = (self.connection.stream()?, self.app.revocations.subscribe());
        Ok(StreamHold { _slot: slot, device: self.device.clone(), revocations })
    }

    /// Reads the body, within the limits on size and time.
    pub(crate) async fn body(&mut self) -> Result<O::Body, ApiError>
    where
        O::Body: DeserializeOwned,
    {
        let limits = self.app.limits;
        let bytes = read(std::mem::take(self.body.get_mut()), limits.body_bytes, limits.read).await?;
        serde_json::from_slice(&bytes).map_err(|error| ApiError::body(api::body::fault(&error)))
    }
}

/// Reads a complete body, within limits on size and time.
pub(crate) async fn read(body: Body, limit: usize, within: std::time::Duration) -> Result<bytes::Bytes, ApiError> {
    match timeout(within, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::too_large(limit)),
        Ok(Err(error)) => Err(ApiError::body(error)),
        Err(_) => Err(ApiError::timeout("the body did not arrive in time")),
    }
}

/// The accepted body types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// `application/json`
    Json,
    /// `application/x-protobuf`
    Protobuf,
}

/// The type of a body, if it is accepted.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    let value = headers.get(header::CONTENT_TYPE)?.as_bytes();
    let essence = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Some(MediaType::Json)
    } else {
        essence.eq_ignore_ascii_case(b"application/x-protobuf").then_some(MediaType::Protobuf)
    }
}

/// The compression of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Uncompressed.
    Identity,
    /// Compressed with gzip.
    Gzip,
}

/// The compression of a body: at most one coding, which must be gzip.
pub(crate) fn coding(headers: &HeaderMap) -> Result<Coding, ApiError> {
    let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
    let value = values.next().map_or(&b""[..], |value| value.as_bytes().trim_ascii());
    if values.next().is_none() {
        if value.is_empty() || value.eq_ignore_ascii_case(b"identity") {
            return Ok(Coding::Identity);
        }
        if value.eq_ignore_ascii_case(b"gzip") {
            return Ok(Coding::Gzip);
        }
    }
    Err(ApiError::new(
        api::ErrorCode::UnknownCoding,
        "expected a body that is not compressed, or compressed once with gzip",
    )
    .header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip")))
}

/// A response without content.
pub(crate) fn no_content() -> axum::response::Response {
    let mut response = axum::response::Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
