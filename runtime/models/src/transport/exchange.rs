//! One request and its answer.

use std::{collections::VecDeque, fmt, pin::Pin, time::Duration};

use reqwest::{Response, header::HeaderMap};
use tokio::time::{Instant, timeout_at};

use super::{ModelEndpoint, Patience};
use crate::{Api, Decoder, Failure, FailureKind, HttpAnswer, Secret, StreamEvent};

/// Maximum number of bytes read of an error response.
const ERROR_BYTES: usize = 64 * 1024;
/// Timeout for the body of an error response.
const ERROR_WAIT: Duration = Duration::from_secs(10);

/// A streaming answer. Dropping it closes the connection.
#[derive(Debug)]
pub struct Exchange {
    phase: Phase,
    decoder: Decoder,
    waiting: VecDeque<StreamEvent>,
    key: Option<Secret>,
    patience: Patience,
    /// When the last event arrived or the request was sent.
    heard: Option<Instant>,
    /// When the answer must be complete.
    deadline: Option<Instant>,
    /// Whether the model has sent output.
    spoke: bool,
}

/// A stream of events, or a failure.
type Head = Result<Response, Failure>;

enum Phase {
    /// Stored until it completes, so that dropping a caller's future does not send the request twice.
    Sending(Pin<Box<dyn Future<Output = Head> + Send>>),
    Reading(Response),
    Over,
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sending(_) => "Sending",
            Self::Reading(_) => "Reading",
            Self::Over => "Over",
        })
    }
}

impl Exchange {
    pub(super) fn new(sending: reqwest::RequestBuilder, api: Api, tag: &str, endpoint: &ModelEndpoint) -> Self {
        Self {
            phase: Phase::Sending(Box::pin(send(sending))),
            decoder: Decoder::new(api, tag),
            waiting: VecDeque::new(),
            key: endpoint.key().cloned(),
            patience: endpoint.patience,
            heard: None,
            deadline: None,
            spoke: false,
        }
    }

    /// The next event; `None` after the last ([`StreamEvent::is_last`]). The first call sends the request.
    ///
    /// Dropping the future before it completes loses nothing: the next call continues.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let events = match &mut self.phase {
                Phase::Over => return None,
                Phase::Sending(_) => self.begin().await,
                Phase::Reading(_) => self.read().await,
            };
            if events.last().is_some_and(StreamEvent::is_last) {
                self.phase = Phase::Over;
            }
            let key = self.key.as_ref();
            self.waiting.extend(events.into_iter().map(|event| without_key(event, key)));
        }
    }

    async fn begin(&mut self) -> Vec<StreamEvent> {
        let now = Instant::now();
        let sent = *self.heard.get_or_insert(now);
        self.deadline.get_or_insert(sent + self.patience.total);
        let Phase::Sending(sending) = &mut self.phase else { return Vec::new() };
        match timeout_at(sent + self.patience.first, sending).await {
            Err(_) => vec![self.stalled()],
            Ok(Err(failure)) => vec![StreamEvent::Failed(failure)],
            Ok(Ok(response)) => {
                self.phase = Phase::Reading(response);
                Vec::new()
            }
        }
    }

    async fn read(&mut self) -> Vec<StreamEvent> {
        let silence = if self.spoke { self.patience.idle } else { self.patience.first };
        let heard = *self.heard.get_or_insert_with(Instant::now);
        let total = self.deadline.unwrap_or(heard + self.patience.total);
        let deadline = (heard + silence).min(total);
        let Phase::Reading(response) = &mut self.phase else { return Vec::new() };
        let events = match timeout_at(deadline, response.chunk()).await {
            Err(_) if deadline == total => {
                return vec![failed(
                    FailureKind::Stalled,
                    format!("no complete answer within {:?}", self.patience.total),
                )];
            }
            Err(_) => return vec![self.stalled()],
            Ok(Err(error)) => return vec![failed(FailureKind::Network, describe(&error))],
            Ok(Ok(None)) => self.decoder.finish(),
            Ok(Ok(Some(bytes))) => self.decoder.feed(&bytes),
        };
        if !events.is_empty() {
            self.heard = Some(Instant::now());
            self.spoke |= events.iter().any(StreamEvent::is_output);
        }
        events
    }

    fn stalled(&self) -> StreamEvent {
        let (silence, what) =
            if self.spoke { (self.patience.idle, "nothing more arrived") } else { (self.patience.first, "no answer") };
        failed(FailureKind::Stalled, format!("{what} for {silence:?}"))
    }
}

fn without_key(event: StreamEvent, key: Option<&Secret>) -> StreamEvent {
    match (event, key) {
        (StreamEvent::Failed(failure), Some(key)) => StreamEvent::Failed(failure.without(key)),
        (event, _) => event,
    }
}

/// Sends a request and checks the head of the response.
async fn send(sending: reqwest::RequestBuilder) -> Head {
    let response = sending.send().await.map_err(|error| Failure::new(FailureKind::Network, describe(&error)))?;
    let status = response.status().as_u16();
    if response.status().is_redirection() {
        let message = format!("the server answered with a redirect ({status}), which is not followed");
        return Err(Failure { status: Some(status), ..Failure::new(FailureKind::BadRequest, message) });
    }
    let kind = header(response.headers(), "content-type").unwrap_or_default().to_ascii_lowercase();
    if response.status().is_success() && kind.starts_with("text/event-stream") {
        return Ok(response);
    }
    let (is_success, headers) = (response.status().is_success(), response.headers().clone());
    let body = error_text(response).await;
    if is_success && !kind.starts_with("application/json") {
        // Sent by a portal or a proxy instead of the vendor.
        let message = format!("the server answered {status} with `{kind}` instead of a stream of events");
        return Err(Failure { status: Some(status), raw: body, ..Failure::new(FailureKind::Network, message) });
    }
    Err(Failure::of_http(&HttpAnswer {
        status,
        retry_after: header(&headers, "retry-after"),
        retry_after_ms: header(&headers, "retry-after-ms"),
        should_retry: header(&headers, "x-should-retry"),
        date: header(&headers, "date"),
        body: &body,
    }))
}

fn failed(kind: FailureKind, message: impl Into<String>) -> StreamEvent {
    StreamEvent::Failed(Failure::new(kind, message))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The start of an error's body, as far as it arrives in time.
async fn error_text(mut response: Response) -> String {
    let deadline = Instant::now() + ERROR_WAIT;
    let mut bytes = Vec::new();
    while bytes.len() < ERROR_BYTES
        && let Ok(Ok(Some(more))) = timeout_at(deadline, response.chunk()).await
    {
        bytes.extend_from_slice(&more);
    }
    bytes.truncate(ERROR_BYTES);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text of a system error without its number. A first word in title case becomes lowercase.
fn without_number(text: &str) -> String {
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if letters.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        Some(_) | None => text.to_owned(),
    }
}

/// Describes a connection error with the host and the root cause. Omits the rest of the address, which may contain a
/// secret.
fn describe(error: &reqwest::Error) -> String {
    let mut cause = std::error::Error::source(error);
    if error.is_connect() {
        let host = error.url().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        let to = host.map(|(host, port)| format!(" to {host}:{port}")).unwrap_or_default();
        while let Some(deeper) = cause.and_then(std::error::Error::source) {
            cause = Some(deeper);
        }
        let why = cause.map(|cause| format!(": {}", without_number(&cause.to_string()))).unwrap_or_default();
        return format!("cannot connect{to}{why}");
    }
    let mut text = if error.is_timeout() { "timed out".to_owned() } else { String::new() };
    while let Some(error) = cause {
        text = if text.is_empty() { error.to_string() } else { format!("{text}: {error}") };
        cause = error.source();
    }
    text
}
