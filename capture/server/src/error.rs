//! What a client is told when it does not get what it asked for.

use std::fmt;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use crate::body::{self, Body};

/// An answer that is an error: a status, a stable code, a message for people. Causes go to the
/// log, never in here.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    message: String,
    hint: Option<String>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: None, header: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// A query parameter, or part of the path, that is not what it should be.
    pub(crate) fn parameter(name: &str, why: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_parameter", format!("{name}: {why}"))
    }

    pub(crate) fn body(why: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_body", format!("the body is not as expected: {why}"))
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    pub(crate) fn session(given: &str) -> Self {
        let given: String = given.chars().take(64).collect();
        Self::not_found(format!("no session `{given}`")).hint("GET /api/v1/sessions?active=all lists them")
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed")
            .hint("send `Authorization: Bearer TOKEN`; endpoint.json names the token file")
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", format!("the body is longer than {limit} bytes"))
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// Something broke on our side; `cause` goes to the log.
    pub(crate) fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "capture failed to answer; its log says why")
    }

    /// The error as the value of `{"error": …}`.
    pub(crate) fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Outer<'a> {
            error: Inner<'a>,
        }
        #[derive(Serialize)]
        struct Inner<'a> {
            code: &'a str,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<&'a str>,
        }
        let error = Inner { code: self.code, message: &self.message, hint: self.hint.as_deref() };
        serde_json::to_string(&Outer { error }).unwrap_or_default()
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = body::json(self.to_json());
        *response.status_mut() = self.status;
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
