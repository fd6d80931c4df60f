//! Claude Code's log records, as of 2.1.328 (`fixtures/telemetry/claude`).

use super::{
    record::Record,
    told::{Told, duration, line},
};

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

pub(super) fn told(record: &Record) -> Told<'_> {
    match record.name() {
        "user_prompt" => Told::Prompted,
        "api_request" => Told::Answered(line(record, CALL)),
        // Single retries are not told: this is the last failure, after which the agent gives up.
        "api_error" => Told::Failed {
            status: record.number("status_code"),
            code: None,
            message: record.text("error").unwrap_or_default(),
            retrying: false,
            main: record.text("query_source").is_none_or(|source| source == "repl_main_thread"),
        },
        "api_retries_exhausted" => {
            let known = line(record, &[("total_attempts", "attempts"), ("status_code", "status")]);
            Told::Remarked(format!("gave up trying again {known}").trim_end().to_owned())
        }
        "tool_decision" => decided(record),
        "tool_result" => match (record.text("tool_use_id"), record.flag("success")) {
            (Some(call_id), Some(worked)) => Told::Returned { call_id, worked, duration_ms: duration(record) },
            (_, _) => Told::Nothing,
        },
        // The transcript reports the compaction itself.
        "compaction" => {
            let known = line(record, &[("trigger", "trigger"), ("pre_tokens", "before"), ("post_tokens", "after")]);
            Told::Remarked(format!("context compacted: {known}"))
        }
        "permission_mode_changed" => {
            let known = line(record, &[("from_mode", "from"), ("to_mode", "to"), ("trigger", "by")]);
            Told::Remarked(format!("permission mode: {known}"))
        }
        _ => Told::Nothing,
    }
}

fn decided(record: &Record) -> Told<'_> {
    let allowed = match record.text("decision") {
        Some("accept") => true,
        Some("reject") => false,
        Some(_) | None => return Told::Nothing,
    };
    let by = match record.text("source") {
        Some("config") => "a rule",
        Some("hook") => "a hook",
        Some(source) if source.starts_with("user_") => "the user",
        Some(other) => other,
        None => "somebody",
    };
    let tool = record.text("tool_name").unwrap_or("a tool");
    Told::Decided { tool, call_id: record.text("tool_use_id"), allowed, by }
}
