//! The body of an answer: whole, or a stream that ends when the client or the server goes.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{Stream, stream::BoxStream};
use http::{HeaderValue, Response, header};
use hyper::body::{Frame, SizeHint};
use serde::Serialize;

use crate::{call::Answer, error::ApiError};

/// The body of an answer.
pub(crate) enum Body {
    /// All of it, known before the head is sent.
    Whole(Bytes),
    /// Parts, as they come.
    Stream(BoxStream<'static, Bytes>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(stream) => stream.as_mut().poll_next(cx).map(|part| part.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

fn of_type(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.reserve(6);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// JSON that is already text.
pub(crate) fn json(text: impl Into<Bytes>) -> Response<Body> {
    of_type("application/json", Body::Whole(text.into()))
}

/// A value as JSON.
pub(crate) fn json_of<T: Serialize + ?Sized>(value: &T) -> Answer {
    serde_json::to_vec(value).map(json).map_err(|cause| ApiError::internal(&cause))
}

/// A message of protobuf.
pub(crate) fn protobuf(message: Vec<u8>) -> Response<Body> {
    of_type("application/x-protobuf", Body::Whole(message.into()))
}

/// Plain text.
pub(crate) fn text(text: impl Into<Bytes>) -> Response<Body> {
    of_type("text/plain; charset=utf-8", Body::Whole(text.into()))
}

/// Metrics in Prometheus text form.
pub(crate) fn metrics(text: String) -> Response<Body> {
    of_type("text/plain; version=0.0.4; charset=utf-8", Body::Whole(text.into()))
}

/// A page of our own.
pub(crate) fn html(page: &'static str) -> Response<Body> {
    let mut response = of_type("text/html; charset=utf-8", Body::Whole(Bytes::from_static(page.as_bytes())));
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    );
    response
}

/// Server-sent events.
pub(crate) fn events(parts: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    of_type("text/event-stream", Body::Stream(Box::pin(parts)))
}
