//! The error responses to clients.

use std::fmt;

use api::{ErrorBody, ErrorCode, ErrorText, part::shown};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, header};
use live_view::Refusal;

/// An error response: a stable code with its status, and a message for the user. Causes are written to the log and
/// never included.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    message: String,
    hint: Option<String>,
    details: Option<serde_json::Value>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: None, header: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// An invalid query parameter or path segment.
    pub(crate) fn parameter(name: &str, why: impl fmt::Display) -> Self {
        Self::new(ErrorCode::BadParameter, format!("{name}: {why}"))
    }

    pub(crate) fn body(why: impl fmt::Display) -> Self {
        Self::new(ErrorCode::BadBody, format!("the body is not valid: {why}"))
    }

    /// A value in the body that is not allowed. The message names the value.
    pub(crate) fn value(why: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadBody, why)
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, what)
    }

    pub(crate) fn session(given: &str) -> Self {
        Self::not_found(format!("no session `{}`", shown(given))).hint("GET /api/v1/sessions?active=all lists them")
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(ErrorCode::Unauthorized, "a token is required")
            .hint("send `Authorization: Bearer TOKEN`; `token_file` in endpoint.json, in the data directory, names the file with it")
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub(crate) fn not_signed_in() -> Self {
        Self::new(ErrorCode::Unauthorized, "this device is not signed in, or is no longer signed in")
            .hint("`capture web` opens the page signed in; `capture web pair` creates a code for another device")
    }

    pub(crate) fn wrong_token() -> Self {
        Self::new(ErrorCode::Unauthorized, "the token is not valid")
            .hint("`token_file` in endpoint.json, in the data directory, names the file with it")
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(ErrorCode::BodyTooLarge, format!("the body is longer than {limit} bytes"))
    }

    /// The message for the user.
    pub(crate) fn into_message(self) -> String {
        self.message
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Timeout, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// An internal error; `cause` is logged.
    pub(crate) fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        Self::new(ErrorCode::Internal, "the server failed to answer; its log says why")
    }

    /// The error as a response body.
    pub(crate) fn body_of(self) -> ErrorBody {
        let Self { code, message, hint, details, .. } = self;
        ErrorBody { error: ErrorText { code: code.as_str().to_owned(), message, hint, details } }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound(why) => Self::not_found(why),
            Refusal::Conflict(why) => Self::new(ErrorCode::Conflict, why),
            Refusal::Decided { why, before } => {
                let details = serde_json::to_value(before).ok();
                Self { details, ..Self::new(ErrorCode::Conflict, why) }
            }
            Refusal::Ambiguous(why) => Self::new(ErrorCode::Ambiguous, why),
            Refusal::Invalid { name, reason } => Self::parameter(name, reason),
            Refusal::TimedOut(why) => Self::timeout(why),
            Refusal::Unavailable => Self::unavailable("temporarily unavailable; retry"),
            Refusal::Busy(why) => Self::unavailable(why),
            Refusal::Failed(cause) => Self::internal(&cause),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(mut self) -> Response {
        let (status, header) = (self.code.status(), self.header.take());
        let text = serde_json::to_vec(&self.body_of()).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *response.status_mut() = status;
        if let Some((name, value)) = header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
