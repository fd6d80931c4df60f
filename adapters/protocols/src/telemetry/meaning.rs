//! The meaning of a log record in one vocabulary for all agents.

use events::AccountedModel;

use crate::telemetry::record::TelemetryRecord;

/// Maximum number of characters kept of a name or a code.
pub(crate) const NAME_CHARS: usize = 200;

/// The meaning of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TelemetryEvent<'a> {
    /// A prompt was submitted.
    Prompted,
    /// The model answered. A description of the call in one line, and its usage and cost if the transcript may lack the
    /// call.
    Answered { line: String, used: Option<AccountedModel> },
    /// A model call failed.
    Failed {
        /// The HTTP status, if there was a response.
        status: Option<i64>,
        /// A provider-specific code.
        code: Option<&'a str>,
        message: &'a str,
        /// Whether the agent retries automatically.
        retrying: bool,
        /// Whether the main conversation waits for it, not a sub-agent.
        main: bool,
    },
    /// The use of a tool was allowed or denied.
    Decided { tool: &'a str, call_id: Option<&'a str>, allowed: bool, by: &'a str },
    /// A tool returned.
    Returned { call_id: &'a str, worked: bool, duration_ms: Option<u64> },
    /// Other information, as one line.
    Remarked(String),
    /// Nothing, or data better known from elsewhere.
    Nothing,
}

pub(crate) fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Whether agents automatically retry after this status, or after no response.
pub(crate) fn is_tried_again(status: Option<i64>) -> bool {
    status.is_none_or(|status| matches!(status, 408 | 409 | 429) || status >= 500)
}

/// The known facts of a model call, as `name=value`. Token counts here are for the reader; they are counted from the
/// transcript.
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
