//! Generated transcript lines in the agents' formats.

use std::{fs::OpenOptions, io::Write, path::Path};

use serde_json::json;

/// Claude's id of the `n`-th session.
#[must_use]
pub fn session(n: u64) -> String {
    format!("5e551000-0000-4000-8000-{n:012x}")
}

/// The id of a record.
#[must_use]
pub fn uuid(writer: u64, n: u64) -> String {
    format!("{writer:08x}-0000-4000-8000-{n:012x}")
}

/// A line of Claude's with a prompt.
#[must_use]
pub fn prompt(session: &str, uuid: &str, cwd: &str, text: &str) -> String {
    let message = json!({"role": "user", "content": text});
    format!(
        "{{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"user\",\"message\":{message},\"uuid\":\"{uuid}\",\"timestamp\":\"2026-11-20T04:37:12.189Z\",\"cwd\":{},\"sessionId\":\"{session}\",\"version\":\"2.1.328\",\"gitBranch\":\"main\"}}\n",
        json!(cwd)
    )
}

/// A line of Claude's with the model's answer, which ends the turn.
#[must_use]
pub fn answer(session: &str, uuid: &str, cwd: &str, text: &str) -> String {
    let message = json!({"id": format!("msg_{uuid}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 42}});
    format!(
        "{{\"parentUuid\":null,\"isSidechain\":false,\"message\":{message},\"requestId\":\"r\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"2026-11-20T04:37:13.189Z\",\"cwd\":{},\"sessionId\":\"{session}\",\"version\":\"2.1.328\",\"gitBranch\":\"main\",\"session_id\":\"{session}\"}}\n",
        json!(cwd)
    )
}

/// A line of an older Codex with a message of the model, without an id.
#[must_use]
pub fn codex_words(text: &str) -> String {
    format!(
        "{{\"timestamp\":\"2026-10-28T20:47:16.692Z\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"agent_message\",\"message\":{}}}}}\n",
        json!(text)
    )
}

/// The first line of an older Codex's rollout.
#[must_use]
pub fn codex_head(session: &str, cwd: &str) -> String {
    format!(
        "{{\"timestamp\":\"2026-10-28T20:47:12.689Z\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{session}\",\"timestamp\":\"2026-10-28T20:47:12.689Z\",\"cwd\":{},\"originator\":\"codex_cli_rs\",\"cli_version\":\"0.76.0\",\"source\":\"cli\",\"model_provider\":\"openai\"}}}}\n",
        json!(cwd)
    )
}

/// Appends to a file, which is created if necessary.
pub fn append(path: &Path, data: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(data.as_bytes()).unwrap();
}
