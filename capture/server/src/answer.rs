//! Responses by media type.

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, header};
use serde::Serialize;

use crate::error::ApiError;

/// The result of a handler.
pub(crate) type HandlerResult = Result<Response, ApiError>;

fn of_type(content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.reserve(6);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A response with JSON that is already serialized.
pub(crate) fn json(text: impl Into<Bytes>) -> Response {
    of_type("application/json", Body::from(text.into()))
}

/// A response with a value as JSON.
pub(crate) fn json_of<T: Serialize + ?Sized>(value: &T) -> HandlerResult {
    serde_json::to_vec(value).map(json).map_err(|cause| ApiError::internal(&cause))
}

/// A response with a protobuf message.
pub(crate) fn protobuf(message: Vec<u8>) -> Response {
    of_type("application/x-protobuf", Body::from(message))
}

/// A response with plain text.
pub(crate) fn text(text: impl Into<Bytes>) -> Response {
    of_type("text/plain; charset=utf-8", Body::from(text.into()))
}

/// A response with metrics in the OpenMetrics text format.
pub(crate) fn metrics(text: String) -> Response {
    of_type("application/openmetrics-text; version=1.0.0; charset=utf-8", Body::from(text))
}

/// A response with server-sent events.
pub(crate) fn events(parts: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    of_type("text/event-stream", Body::from_stream(parts.map(Ok::<_, std::convert::Infallible>)))
}
