//! The meaning of a log record in one vocabulary for all agents.

use events::AccountedModel;

use crate::telemetry::record::TelemetryRecord;

/// Characters kept of a name or a code.
pub(crate) const NAME_CHARS: usize = 200;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TelemetryEvent<'a> {
    /// A prompt was given.
    Prompted,
    /// The model answered; what is known of the call, in one line. What it used and cost, where a transcript may lack the
    /// call.
    Answered { line: String, used: Option<AccountedModel> },
    /// A call of the model failed.
    Failed {
        /// The status of HTTP, when there was an answer.
        status: Option<i64>,
        /// A code of the provider's own.
        code: Option<&'a str>,
        message: &'a str,
        /// Whether the agent retries by itself.
        retrying: bool,
        /// It is the main conversation that waits for it, and no helper.
        main: bool,
    },
    /// It was decided whether a tool may be used.
    Decided { tool: &'a str, call_id: Option<&'a str>, allowed: bool, by: &'a str },
    /// A tool returned.
    Returned { call_id: &'a str, worked: bool, duration_ms: Option<u64> },
    /// Something worth a line.
    Remarked(String),
    /// Nothing that is not better known from elsewhere.
    Nothing,
}

pub(crate) fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Whether agents try again by themselves after such an answer, or none.
pub(crate) fn is_tried_again(status: Option<i64>) -> bool {
    status.is_none_or(|status| matches!(status, 408 | 409 | 429) || status >= 500)
}

/// What is known of a call of the model, as `name=value`. Tokens among it are for the reader; they
/// are counted where the transcript reports them.
pub(crate) fn line(record: &TelemetryRecord, keys: &[(&str, &str)]) -> String {
    let known = keys.iter().filter_map(|(key, name)| {
        let value = record.number(key).map(|n| n.to_string());
        value.or_else(|| record.text(key).map(|text| cut(text, NAME_CHARS))).map(|value| format!("{name}={value}"))
    });
    known.collect::<Vec<_>>().join(" ")
}

/// A duration in milliseconds.
pub(crate) fn duration(record: &TelemetryRecord) -> Option<u64> {
    record.number("duration_ms").and_then(|ms| u64::try_from(ms).ok())
}
