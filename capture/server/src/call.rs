//! A request that was let in, with its parameters read as its operation declares them.

use std::{net::SocketAddr, sync::Arc};

use api::{Operation, query};
use axum::{
    body::Body,
    extract::{FromRequest, RawPathParams, Request},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Serialize, de::DeserializeOwned};
use sync_wrapper::SyncWrapper;
use tokio::time::timeout;

use crate::{
    answer::{self, Answer},
    app::App,
    clients::{Admission, StreamSlot},
    error::ApiError,
    peer::{Client, Peer},
};

/// How a request arrived.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    /// The TCP port: from where, to where, by whom.
    Tcp(SocketAddr, SocketAddr, Client),
    /// The Unix socket: a process of our own user.
    Unix(Peer),
}

impl Door {
    /// Who came in.
    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Tcp(_, _, client) => *client,
            Self::Unix(_) => Client::Own,
        }
    }
}

/// The connection of a request.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// How it arrived.
    pub(crate) door: Door,
    /// Its place among those of its client; `None` without a connection.
    pub(crate) admission: Option<Arc<Admission>>,
}

impl Connection {
    /// Counts the connection among the streams while the slot is held.
    pub(crate) fn stream(&self) -> Result<Option<StreamSlot>, ApiError> {
        self.admission.as_ref().map(Admission::stream).transpose()
    }
}

/// A request of an operation.
pub(crate) struct Call<O: Operation> {
    pub(crate) app: App,
    pub(crate) query: O::Query,
    /// The value of the path's variable segment, decoded; empty without one.
    pub(crate) segment: String,
    pub(crate) connection: Connection,
    pub(crate) parts: Parts,
    /// Only read, never shared, so that a call may be borrowed across a wait.
    pub(crate) body: SyncWrapper<Body>,
}

impl<O: Operation> FromRequest<App> for Call<O> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let segment = if O::ID.route().segment().is_some() { segment(&mut parts, app).await? } else { String::new() };
        let query = query::read(parts.uri.query()).map_err(|bad| ApiError::parameter(&bad.name, bad.reason))?;
        let connection = parts.extensions.get::<Connection>().cloned();
        let connection = connection.ok_or_else(|| ApiError::internal(&"a request without its connection"))?;
        Ok(Self { app: Arc::clone(app), query, segment, connection, parts, body: SyncWrapper::new(body) })
    }
}

async fn segment(parts: &mut Parts, app: &App) -> Result<String, ApiError> {
    use axum::extract::FromRequestParts;
    let params = RawPathParams::from_request_parts(parts, app).await;
    let params = params.map_err(|_| ApiError::parameter("path", "not UTF-8"))?;
    let segment = params.iter().next().map(|(_, value)| value.to_owned()).unwrap_or_default();
    if segment.contains('\0') {
        return Err(ApiError::parameter("path", "holds a zero byte"));
    }
    Ok(segment)
}

impl<O: Operation> Call<O> {
    /// Answers with what the operation declares.
    #[expect(clippy::unused_self, reason = "the call says which type the answer has")]
    pub(crate) fn answer(&self, answer: &O::Answer) -> Answer
    where
        O::Answer: Serialize,
    {
        answer::json_of(answer)
    }

    /// Counts the connection among the streams while the slot is held.
    pub(crate) fn stream(&self) -> Result<Option<StreamSlot>, ApiError> {
        self.connection.stream()
    }

    /// Reads the body, within the limits of size and time.
    pub(crate) async fn body(&mut self) -> Result<O::Body, ApiError>
    where
        O::Body: DeserializeOwned,
    {
        let limits = self.app.limits;
        let bytes = read(std::mem::take(self.body.get_mut()), limits.body_bytes, limits.read).await?;
        serde_json::from_slice(&bytes).map_err(ApiError::body)
    }
}

/// Reads a body whole, within limits of size and time.
pub(crate) async fn read(body: Body, limit: usize, within: std::time::Duration) -> Result<bytes::Bytes, ApiError> {
    match timeout(within, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::too_large(limit)),
        Ok(Err(error)) => Err(ApiError::body(error)),
        Err(_) => Err(ApiError::timeout("the body did not arrive in time")),
    }
}

/// The types of bodies that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// `application/json`
    Json,
    /// `application/x-protobuf`
    Protobuf,
}

/// The type of a body, when it is one that is taken.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    let value = headers.get(header::CONTENT_TYPE)?.as_bytes();
    let essence = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Some(MediaType::Json)
    } else {
        essence.eq_ignore_ascii_case(b"application/x-protobuf").then_some(MediaType::Protobuf)
    }
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Not at all.
    Identity,
    /// With gzip.
    Gzip,
}

/// How a body is compressed: at most once, and with gzip.
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
    Err(ApiError::new(api::ErrorCode::UnknownCoding, "the body may be compressed once, with gzip")
        .header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip")))
}

/// The method whose handler answers: HEAD is GET without the body.
pub(crate) fn effective(method: &Method) -> &Method {
    if method == Method::HEAD { &Method::GET } else { method }
}

/// An answer without content.
pub(crate) fn no_content() -> axum::response::Response {
    let mut response = axum::response::Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
