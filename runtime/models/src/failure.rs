//! Classifies failures of requests.
//!
//! Sources: <https://platform.claude.com/docs/en/api/errors> (types and statuses of Anthropic),
//! <https://platform.openai.com/docs/guides/error-codes> and `openai-python` (`src/openai/_exceptions.py`),
//! <https://ai.google.dev/gemini-api/docs/troubleshooting> (statuses of Gemini). The messages for too long requests are
//! those collected by pi-ai 0.87.1 (`dist/utils/overflow.js`).

use std::time::Duration;

use httpdate::parse_http_date;
pub use session_tree::FailureKind;
use session_tree::{Json, Object};

/// Maximum number of bytes stored of a vendor's error.
const RAW_BYTES: usize = 16 * 1024;

/// A failure of a request. Its text is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", sentence(*kind, message))]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The vendor's message, or ours; empty if the kind says everything.
    pub message: String,
    /// How long the vendor asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether the vendor recommends a retry (`x-should-retry` of Anthropic and OpenAI).
    pub should_retry: Option<bool>,
    /// The first 16 KiB of the vendor's error, without the key.
    pub raw: String,
}

/// The headers and body of an error response.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpAnswer<'a> {
    /// The status.
    pub status: u16,
    /// `retry-after`: seconds or a date.
    pub retry_after: Option<&'a str>,
    /// `retry-after-ms`: milliseconds (OpenAI).
    pub retry_after_ms: Option<&'a str>,
    /// `x-should-retry`.
    pub should_retry: Option<&'a str>,
    /// `date`, relative to which a date in `retry-after` is interpreted.
    pub date: Option<&'a str>,
    /// The body.
    pub body: &'a str,
}

impl Failure {
    /// A failure detected by this program.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into(), retry_after: None, should_retry: None, raw: String::new() }
    }

    /// Classifies a response with a status other than 200.
    #[must_use]
    pub fn of_http(answer: &HttpAnswer<'_>) -> Self {
        let body = Json::parse(answer.body).ok();
        let mut failure = match body.as_ref().and_then(error_object) {
            Some(error) => Self::of_error(error, Some(answer.status), answer.body),
            None => {
                let kind = kind_of_status(answer.status, &answer.body.to_ascii_lowercase());
                let message = format!("HTTP status {}", answer.status);
                Self { status: Some(answer.status), raw: head(answer.body).to_owned(), ..Self::new(kind, message) }
            }
        };
        failure.retry_after = told_wait(answer).or(failure.retry_after);
        failure.should_retry = answer.should_retry.and_then(|text| text.trim().parse().ok());
        failure
    }

    /// Classifies an error inside a stream, given the object that contains the error.
    #[must_use]
    pub fn of_stream(event: &Object, raw: &str) -> Self {
        let whole = Json::Object(event.clone());
        match error_object(&whole) {
            Some(error) => Self::of_error(error, None, raw),
            None => Self { raw: head(raw).to_owned(), ..Self::new(FailureKind::Unknown, "an error without a message") },
        }
    }

    fn of_error(error: &Object, status: Option<u16>, raw: &str) -> Self {
        let message = error.text("message").unwrap_or("no message");
        let words: Vec<&str> = ["type", "code", "status"].iter().filter_map(|key| error.text(key)).collect();
        // Gemini and some proxies put the status into `code`.
        let status = status.or_else(|| {
            let code = error.get("code").and_then(Json::as_f64).filter(|code| (400.0..600.0).contains(code))?;
            format!("{code}").parse().ok()
        });
        let lower = format!("{} {}", message.to_ascii_lowercase(), raw.to_ascii_lowercase());
        // A proxy may report any error as one of the server: a status for an invalid request takes precedence, since a
        // retry would be futile.
        let is_at_fault = status.is_some_and(|status| matches!(status, 400..500) && !matches!(status, 408 | 409 | 429));
        let said = kind_of_words(&words, &lower).filter(|kind| *kind != FailureKind::Overloaded || !is_at_fault);
        let kind = said.unwrap_or_else(|| match status {
            Some(status) => kind_of_status(status, &lower),
            None if is_too_long(&lower) => FailureKind::TooLong,
            None => FailureKind::Unknown,
        });
        Self { status, retry_after: retry_info(error), raw: head(raw).to_owned(), ..Self::new(kind, message) }
    }

    /// The failure with the key masked.
    #[must_use]
    pub fn without(mut self, key: &crate::Secret) -> Self {
        self.message = key.hide_in(&self.message);
        self.raw = key.hide_in(&self.raw);
        self
    }
}

/// Finds the error: in `{"error": {…}}`, in `{"response": {"error": {…}}}`, in an array with one of these (Gemini), or
/// the object itself.
fn error_object(body: &Json) -> Option<&Object> {
    if let Some(first) = body.as_array().and_then(<[Json]>::first) {
        return error_object(first);
    }
    let object = body.as_object()?;
    let inner = object.get("response").and_then(Json::as_object).and_then(|r| r.get("error"));
    let found = object.get("error").or(inner).and_then(Json::as_object);
    found.or_else(|| object.text("message").map(|_| object))
}

/// The description of a kind with the message. A message about a failed connection is shown without it.
fn sentence(kind: FailureKind, message: &str) -> String {
    if kind == FailureKind::Network && message.starts_with("cannot connect") {
        return message.to_owned();
    }
    if message.is_empty() { kind.in_words().to_owned() } else { format!("{}: {message}", kind.in_words()) }
}

fn kind_of_words(words: &[&str], lower: &str) -> Option<FailureKind> {
    let kind = |word: &&str| match *word {
        "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" | "billing_not_active" => {
            Some(FailureKind::Quota)
        }
        "model_not_found" => Some(FailureKind::NoModel),
        "context_length_exceeded" | "request_too_large" => Some(FailureKind::TooLong),
        "authentication_error" | "permission_error" | "invalid_api_key" | "UNAUTHENTICATED" | "PERMISSION_DENIED" => {
            Some(FailureKind::Auth)
        }
        "overloaded_error"
        | "api_error"
        | "server_error"
        | "timeout_error"
        | "UNAVAILABLE"
        | "INTERNAL"
        | "DEADLINE_EXCEEDED"
        | "server_is_overloaded"
        | "slow_down"
        | "engine_overloaded_error" => Some(FailureKind::Overloaded),
        "content_filter" | "content_policy_violation" | "cyber_policy_violation" => Some(FailureKind::Refused),
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => {
            // Gemini names the exhausted quota: a daily one is not worth waiting for.
            let for_a_day = lower.contains("perday") || lower.contains("per day");
            Some(if for_a_day { FailureKind::Quota } else { FailureKind::Rate })
        }
        _ => None,
    };
    // The most specific code decides: for a quota error of OpenAI it is the type, for a rate limit the type is
    // `tokens`.
    let found: Vec<FailureKind> = words.iter().filter_map(kind).collect();
    if lower.contains("api_key_invalid") {
        return Some(FailureKind::Auth);
    }
    let first = |kind: FailureKind| found.contains(&kind).then_some(kind);
    first(FailureKind::Quota).or(first(FailureKind::TooLong)).or(found.first().copied())
}

fn kind_of_status(status: u16, lower: &str) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Auth,
        402 => FailureKind::Quota,
        413 => FailureKind::TooLong,
        429 => FailureKind::Rate,
        408 | 409 | 500..=599 => FailureKind::Overloaded,
        400..=499 if is_too_long(lower) => FailureKind::TooLong,
        400..=499 if lower.contains("credit balance") => FailureKind::Quota,
        404 if lower.contains("model") => FailureKind::NoModel,
        400..=499 => FailureKind::BadRequest,
        _ => FailureKind::Unknown,
    }
}

/// Whether a message says that the request exceeds the model's context.
fn is_too_long(lower: &str) -> bool {
    const SAID: &[&str] = &[
        "prompt is too long",
        "prompt too long",
        "request_too_large",
        "input is too long",
        "exceeds the context window",
        "maximum context length",
        "model's context length",
        "exceeds the available context size",
        "greater than the context length",
        "context window exceeds",
        "exceeded model token limit",
        "maximum prompt length",
        "reduce the length of the messages",
        "range of input length should be",
        "context_length_exceeded",
        "model_context_window_exceeded",
    ];
    SAID.iter().any(|said| lower.contains(said))
        || (lower.contains("input token count") && lower.contains("exceeds the maximum"))
}

fn told_wait(answer: &HttpAnswer<'_>) -> Option<Duration> {
    let millis = answer.retry_after_ms.and_then(|text| text.trim().parse::<f64>().ok()).map(|ms| ms / 1000.0);
    let seconds = millis.or_else(|| {
        let text = answer.retry_after?.trim();
        text.parse::<f64>().ok().or_else(|| {
            let (until, now) = (parse_http_date(text).ok()?, parse_http_date(answer.date?).ok()?);
            Some(until.duration_since(now).unwrap_or_default().as_secs_f64())
        })
    })?;
    // A delay out of range is ignored.
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

/// `retryDelay` of `google.rpc.RetryInfo`, such as `34s`.
fn retry_info(error: &Object) -> Option<Duration> {
    let details = error.get("details").and_then(Json::as_array)?;
    let delay = details.iter().filter_map(Json::as_object).find_map(|detail| detail.text("retryDelay"))?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse::<f64>().ok()?.max(0.0)).ok()
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(RAW_BYTES)]
}

#[cfg(test)]
mod tests;
