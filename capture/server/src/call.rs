//! A request that was let in, and how a handler reads it.

use std::{borrow::Cow, fmt::Display, future::Future, net::SocketAddr, ops::Range, str::FromStr, sync::Arc};

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited, combinators::BoxBody};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::{
    app::App,
    body::Body,
    clients::{Admission, Client, StreamSlot},
    config::Peer,
    error::ApiError,
};

/// What a handler answers.
pub(crate) type Answer = Result<Response<Body>, ApiError>;

/// An answer that is there, or one that takes a while.
pub(crate) enum Reply {
    /// From memory.
    Now(Answer),
    /// From the store, from capture, or when something happens.
    Later(BoxFuture<'static, Answer>),
}

impl Reply {
    pub(crate) fn later(answer: impl Future<Output = Answer> + Send + 'static) -> Self {
        Self::Later(Box::pin(answer))
    }
}

/// The way a request came in.
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

/// A body on its way in.
pub(crate) type Upload = BoxBody<Bytes, BrokenUpload>;

/// Why a body did not arrive whole.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BrokenUpload(pub(crate) String);

/// A request.
pub(crate) struct Call {
    pub(crate) parts: Parts,
    /// Where the path's variable segment is.
    pub(crate) segment: Range<usize>,
    pub(crate) upload: Option<Upload>,
    /// The way it came in.
    pub(crate) door: Door,
    /// The connection it came over; `None` without one.
    pub(crate) admission: Option<Arc<Admission>>,
}

impl Call {
    /// The variable segment of the path, decoded.
    pub(crate) fn segment(&self) -> Result<Cow<'_, str>, ApiError> {
        let raw = self.parts.uri.path().get(self.segment.clone()).unwrap_or_default();
        let text = percent_encoding::percent_decode_str(raw)
            .decode_utf8()
            .map_err(|_| ApiError::parameter("path", "not UTF-8"))?;
        if text.contains('\0') {
            return Err(ApiError::parameter("path", "holds a zero byte"));
        }
        Ok(text)
    }

    /// Counts the connection among the streams while the slot is held.
    pub(crate) fn stream(&self) -> Result<Option<StreamSlot>, ApiError> {
        self.admission.as_ref().map(Admission::stream).transpose()
    }

    /// The query parameters.
    pub(crate) fn query(&self) -> Params<'_> {
        Params::read(self.parts.uri.query())
    }

    /// Reads the body as JSON, within the limits of size and time.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self, app: &App) -> Result<T, ApiError> {
        let limit = app.limits.body_bytes;
        let upload = self.upload.take().ok_or_else(|| ApiError::body("it is empty"))?;
        let read = Limited::new(upload, limit).collect();
        let body = match timeout(app.limits.read, read).await {
            Ok(Ok(body)) => body.aggregate(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(ApiError::too_large(limit));
            }
            Ok(Err(error)) => return Err(ApiError::body(error)),
            Err(_) => return Err(ApiError::timeout("the body did not arrive in time")),
        };
        serde_json::from_reader(body.reader()).map_err(ApiError::body)
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

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is.
    Identity,
    /// By gzip.
    Gzip,
}

/// How the body is packed: once, and by gzip or not at all.
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
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_coding", "the body may be packed once, by gzip")
        .header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip")))
}

/// Query parameters; of several with one name the first counts.
pub(crate) struct Params<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Params<'a> {
    pub(crate) fn read(query: Option<&'a str>) -> Self {
        Self(query.map_or_else(Vec::new, |q| form_urlencoded::parse(q.as_bytes()).collect()))
    }

    /// The value, if it is there and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(n, _)| n == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// One value of a type with a text form.
    pub(crate) fn value<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, ApiError> {
        self.text(name).map(|text| text.parse().map_err(|why| ApiError::parameter(name, why))).transpose()
    }

    /// Several values, separated by commas.
    pub(crate) fn list<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Vec<T>, ApiError> {
        self.text(name)
            .into_iter()
            .flat_map(|text| text.split(','))
            .map(|text| text.trim().parse().map_err(|why| ApiError::parameter(name, why)))
            .collect()
    }

    /// How many: from 1 up to a cap that larger numbers are held to.
    pub(crate) fn limit(&self, default: usize, cap: usize) -> Result<usize, ApiError> {
        match self.value::<usize>("limit")? {
            None => Ok(default),
            Some(0) => Err(ApiError::parameter("limit", "must be at least 1")),
            Some(n) => Ok(n.min(cap)),
        }
    }
}
