//! Codex's log records, as of 0.169.0 (`fixtures/telemetry/codex`).
//!
//! Calls that generate a title run in a separate conversation without a transcript; their records belong to no known
//! session.

use super::record::TelemetryRecord;
use crate::telemetry::meaning::{TelemetryEvent, duration, is_tried_again, line};

const CALL: &[(&str, &str)] = &[
    ("model", "model"),
    ("http.response.status_code", "status"),
    ("attempt", "attempt"),
    ("duration_ms", "duration_ms"),
    ("endpoint", "endpoint"),
];

pub(super) fn decode_event(record: &TelemetryRecord) -> TelemetryEvent<'_> {
    match record.name() {
        "codex.user_prompt" => TelemetryEvent::Prompted,
        "codex.api_request" => {
            let status = record.number("http.response.status_code");
            if status.is_some_and(|status| (200..400).contains(&status)) {
                return TelemetryEvent::Answered { line: line(record, CALL), used: None };
            }
            TelemetryEvent::Failed {
                status,
                code: None,
                message: record.text("error.message").unwrap_or_default(),
                retrying: is_tried_again(status),
                main: true,
            }
        }
        "codex.tool_decision" => decided(record),
        "codex.tool_result" => match (record.text("call_id"), record.flag("success")) {
            (Some(call_id), Some(worked)) => {
                TelemetryEvent::Returned { call_id, worked, duration_ms: duration(record) }
            }
            (_, _) => TelemetryEvent::Nothing,
        },
        _ => TelemetryEvent::Nothing,
    }
}

fn decided(record: &TelemetryRecord) -> TelemetryEvent<'_> {
    let allowed = match record.text("decision") {
        Some(decision) if decision.starts_with("approved") => true,
        Some("denied" | "abort") => false,
        Some(_) | None => return TelemetryEvent::Nothing,
    };
    let by = match record.text("source") {
        Some("User") => "the user",
        Some("Config") => "a rule",
        Some(other) => other,
        None => "somebody",
    };
    let tool = record.text("tool_name").unwrap_or("a tool");
    TelemetryEvent::Decided { tool, call_id: record.text("call_id"), allowed, by }
}
