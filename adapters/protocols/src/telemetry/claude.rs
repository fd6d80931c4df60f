//! Claude Code's log records, as of 2.1.328 (`fixtures/telemetry/claude`).

use events::AccountedModel;

use super::record::TelemetryRecord;
use crate::telemetry::meaning::{NAME_CHARS, TelemetryEvent, cut, duration, line};

const CALL: &[(&str, &str)] = &[
    ("model", "model"),
    ("query_source", "for"),
    ("attempt", "attempt"),
    ("duration_ms", "duration_ms"),
    ("ttft_ms", "first_token_ms"),
    ("input_tokens", "input_tokens"),
    ("output_tokens", "output_tokens"),
    ("cache_read_tokens", "cache_read_tokens"),
    ("cache_creation_tokens", "cache_write_tokens"),
];

pub(super) fn decode_event(record: &TelemetryRecord) -> TelemetryEvent<'_> {
    match record.name() {
        "user_prompt" => TelemetryEvent::Prompted,
        "api_request" => TelemetryEvent::Answered { line: line(record, CALL), used: used(record) },
        // Single retries are not reported: this is the last failure, after which the agent gives up.
        "api_error" => TelemetryEvent::Failed {
            status: record.number("status_code"),
            code: None,
            message: record.text("error").unwrap_or_default(),
            retrying: false,
            main: record.text("query_source").is_none_or(|source| source == "repl_main_thread"),
        },
        "api_retries_exhausted" => {
            let known = line(record, &[("total_attempts", "attempts"), ("status_code", "status")]);
            TelemetryEvent::Remarked(format!("gave up trying again {known}").trim_end().to_owned())
        }
        "tool_decision" => decided(record),
        "tool_result" => match (record.text("tool_use_id"), record.flag("success")) {
            (Some(call_id), Some(worked)) => {
                TelemetryEvent::Returned { call_id, worked, duration_ms: duration(record) }
            }
            (_, _) => TelemetryEvent::Nothing,
        },
        // The transcript reports the compaction itself.
        "compaction" => {
            let known = line(record, &[("trigger", "trigger"), ("pre_tokens", "before"), ("post_tokens", "after")]);
            TelemetryEvent::Remarked(format!("context compacted: {known}"))
        }
        "permission_mode_changed" => {
            let known = line(record, &[("from_mode", "from"), ("to_mode", "to"), ("trigger", "by")]);
            TelemetryEvent::Remarked(format!("permission mode: {known}"))
        }
        _ => TelemetryEvent::Nothing,
    }
}

/// The usage of a call, which may be missing from the transcript, such as one that generates a title or a summary.
fn used(record: &TelemetryRecord) -> Option<AccountedModel> {
    let count = |key| record.number(key).and_then(|n| u64::try_from(n).ok());
    let (output_tokens, cache_write_tokens) = (count("output_tokens")?, count("cache_creation_tokens").unwrap_or(0));
    Some(AccountedModel {
        model: cut(record.text("model")?, NAME_CHARS),
        input_tokens: count("input_tokens")?,
        output_tokens,
        cache_read_tokens: count("cache_read_tokens").unwrap_or(0),
        cache_write_tokens,
        cache_write_hour_tokens: count("cache_creation_1h_tokens").unwrap_or(0).min(cache_write_tokens),
        thinking_tokens: 0,
        cost_nano_usd: count("cost_usd_micros").map(|micros| micros.saturating_mul(1_000)),
    })
}

fn decided(record: &TelemetryRecord) -> TelemetryEvent<'_> {
    let allowed = match record.text("decision") {
        Some("accept") => true,
        Some("reject") => false,
        Some(_) | None => return TelemetryEvent::Nothing,
    };
    let by = match record.text("source") {
        Some("config") => "a rule",
        Some("hook") => "a hook",
        Some(source) if source.starts_with("user_") => "the user",
        Some(other) => other,
        None => "somebody",
    };
    let tool = record.text("tool_name").unwrap_or("a tool");
    TelemetryEvent::Decided { tool, call_id: record.text("tool_use_id"), allowed, by }
}
