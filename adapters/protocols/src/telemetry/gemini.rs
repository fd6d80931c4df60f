//! Gemini CLI's log records, as of 0.61.0 (`fixtures/telemetry/gemini`).

use super::record::TelemetryRecord;
use crate::telemetry::meaning::{TelemetryEvent, is_tried_again, line};

const CALL: &[(&str, &str)] = &[
    ("model", "model"),
    ("role", "for"),
    ("status_code", "status"),
    ("duration_ms", "duration_ms"),
    ("input_token_count", "input_tokens"),
    ("output_token_count", "output_tokens"),
    ("cached_content_token_count", "cache_read_tokens"),
    ("thoughts_token_count", "thinking_tokens"),
];

pub(super) fn decode_event(record: &TelemetryRecord) -> TelemetryEvent<'_> {
    match record.name() {
        "gemini_cli.user_prompt" => TelemetryEvent::Prompted,
        "gemini_cli.api_response" => TelemetryEvent::Answered { line: line(record, CALL), used: None },
        // One record per failed attempt.
        "gemini_cli.api_error" => {
            let status = record.number("status_code");
            TelemetryEvent::Failed {
                status,
                code: None,
                message: record.text("error").or_else(|| record.text("error.message")).unwrap_or_default(),
                retrying: is_tried_again(status),
                main: record.text("role").is_none_or(|role| role == "main"),
            }
        }
        "gemini_cli.tool_call" => decided(record),
        "gemini_cli.chat_compression" => {
            let known = line(record, &[("tokens_before", "before"), ("tokens_after", "after")]);
            TelemetryEvent::Remarked(format!("context compacted: {known}"))
        }
        "gemini_cli.plan.approval_mode_switch" => {
            let known = line(record, &[("from_mode", "from"), ("to_mode", "to")]);
            TelemetryEvent::Remarked(format!("permission mode: {known}"))
        }
        _ => TelemetryEvent::Nothing,
    }
}

/// Gemini CLI reports `accept` both for calls the user allowed and for calls that need no approval, so it is ignored.
fn decided(record: &TelemetryRecord) -> TelemetryEvent<'_> {
    let (allowed, by) = match record.text("decision") {
        Some("reject") => (false, "the user"),
        Some("auto_accept") => (true, "an earlier answer"),
        Some(_) | None => return TelemetryEvent::Nothing,
    };
    TelemetryEvent::Decided { tool: record.text("function_name").unwrap_or("a tool"), call_id: None, allowed, by }
}
