//! Classifies errors.

use events::{Confidence, ErrorClass, ErrorReported, Severity, TurnOutcome};

use super::{
    memory::CodexMemory,
    records::{Failure, Field, HttpFailure, RawField},
    writer::EventWriter,
};

/// `task_complete.error`: the error that ended a turn. Earlier retries are not recorded.
pub(super) fn ended_turn(failure: &Failure<'_>, turn: Option<&str>, w: &mut EventWriter<'_, '_>) {
    put(failure, "error", turn, true, false, w);
}

/// `error` (read): recorded before the end of the turn, which may then omit it. An interrupt by the user is not an
/// error, although older versions recorded it here too.
pub(super) fn reported(failure: &Failure<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    if failure.message.text().is_some_and(|message| message.starts_with("Conversation interrupted")) {
        w.turn_ended(None, TurnOutcome::Interrupted, Confidence::Medium, "error: Conversation interrupted".into());
        return;
    }
    if let Some(turn) = &mut memory.turn {
        turn.failed = true;
    }
    put(failure, "error", None, true, false, w);
}

/// `stream_error` (read): Codex retries.
pub(super) fn retrying(failure: &Failure<'_>, w: &mut EventWriter<'_, '_>) {
    put(failure, "error", None, false, true, w);
}

fn put(
    failure: &Failure<'_>,
    kind: &str,
    id: Option<&str>,
    ends_turn: bool,
    retrying: bool,
    w: &mut EventWriter<'_, '_>,
) {
    let message = failure.message.text().unwrap_or_default();
    let (class, code) = classify(failure.codex_error_info, &message);
    let mut event = w.event(kind, id, ErrorReported { class, code, ends_turn, retrying });
    event.severity = Some(if retrying { Severity::Warning } else { Severity::Error });
    event.text = Some(message);
    w.push(event);
}

/// `codex_error_info` is a name, or a name with HTTP details: `{"http_connection_failed":{"http_status_code":401}}`
/// (0.169.0, S08-auth-401). The status is the preferred code; without one, the code in the message (`unexpected status
/// 503 …`) is used.
fn classify(info: Option<RawField<'_>>, message: &str) -> (ErrorClass, Option<String>) {
    let (name, status) = match info {
        Some(info) => match info.name() {
            Some(name) => (Some(name.into_owned()), None),
            None => tagged(info),
        },
        None => (None, None),
    };
    let status = status.or_else(|| status_in(message));
    let class = match (name.as_deref(), status) {
        (Some("usage_limit_exceeded" | "session_budget_exceeded"), _) | (_, Some(402)) => ErrorClass::Quota,
        (Some("context_window_exceeded"), _) => ErrorClass::Context,
        (Some("unauthorized"), _) | (_, Some(401 | 403)) => ErrorClass::Auth,
        (_, Some(429)) if message.contains("usage limit") || message.contains("quota") => ErrorClass::Quota,
        (_, Some(429)) => ErrorClass::RateLimit,
        (_, Some(400..=599)) | (Some("server_overloaded" | "internal_server_error" | "bad_request"), _) => {
            ErrorClass::Provider
        }
        (
            Some(
                "http_connection_failed"
                | "response_stream_connection_failed"
                | "response_stream_disconnected"
                | "response_too_many_failed_attempts",
            ),
            _,
        ) => ErrorClass::Network,
        (Some(_) | None, _) if message.contains("hit your usage limit") => ErrorClass::Quota,
        (Some(_) | None, _) => ErrorClass::Other,
    };
    (class, status.map(|status| status.to_string()).or(name))
}

/// Reads `{"name":{"http_status_code":…}}`.
fn tagged(info: RawField<'_>) -> (Option<String>, Option<u16>) {
    let object: Option<std::collections::BTreeMap<String, RawField<'_>>> = info.parse();
    match object.and_then(|object| object.into_iter().next()) {
        Some((name, inner)) => {
            let status = inner.parse::<HttpFailure<'_>>().and_then(|http| http.http_status_code.parse());
            (Some(name), status)
        }
        None => (None, None),
    }
}

fn status_in(message: &str) -> Option<u16> {
    let after = message.split_once("status ")?.1;
    after.get(..3)?.parse().ok().filter(|status| (400..=599).contains(status))
}
