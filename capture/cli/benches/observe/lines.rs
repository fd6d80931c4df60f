//! Generates lines in the format of Claude Code and Codex. Each ends with a newline.

use serde_json::json;

/// A Claude session being written.
pub(crate) struct Claude {
    pub(crate) session: String,
    pub(crate) cwd: String,
    /// Records written so far.
    records: u64,
    /// Distinguishes the records of one session from those of others.
    salt: u64,
}

impl Claude {
    pub(crate) fn new(salt: u64) -> Self {
        let session = format!("be7c4000-{:04x}-4000-8000-{:012x}", salt >> 48, salt & 0xffff_ffff_ffff);
        Self { session, cwd: "/home/dev/bench".into(), records: 0, salt }
    }

    fn line(&mut self, kind: &str, message: &serde_json::Value, more: &str) -> String {
        self.records += 1;
        let (session, cwd, salt, n) = (&self.session, &self.cwd, self.salt, self.records);
        let uuid = format!("{:08x}-{:04x}-4000-9000-{n:012x}", salt & 0xffff_ffff, (salt >> 32) & 0xffff);
        format!(
            "{{\"parentUuid\":null,\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"{cwd}\",\"sessionId\":\"{session}\",\
             \"version\":\"2.1.328\",\"gitBranch\":\"main\",\"type\":\"{kind}\",\"message\":{message},{more}\"uuid\":\"{uuid}\",\"timestamp\":\"{:.3}\"}}\n",
            jiff::Timestamp::now()
        )
    }

    pub(crate) fn prompt(&mut self, text: &str) -> String {
        self.line("user", &json!({"role": "user", "content": text}), "")
    }

    /// A text of the model; the last one ends the turn.
    pub(crate) fn words(&mut self, text: &str, last: bool) -> String {
        let stop = last.then_some("end_turn");
        self.answer(&json!({"type": "text", "text": text}), stop)
    }

    pub(crate) fn call(&mut self, id: &str, command: &str) -> String {
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command, "description": "run it"}});
        self.answer(&block, Some("tool_use"))
    }

    fn answer(&mut self, block: &serde_json::Value, stop: Option<&str>) -> String {
        let message = json!({"model": "claude-opus-5-5", "id": format!("msg_{:x}_{}", self.salt, self.records), "type": "message", "role": "assistant",
            "content": [block], "stop_reason": stop, "usage": {"input_tokens": 4, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 20_000, "output_tokens": 90}});
        self.line("assistant", &message, "\"requestId\":\"req_011\",")
    }

    pub(crate) fn result(&mut self, id: &str, output: &str) -> String {
        let message = json!({"role": "user", "content": [{"tool_use_id": id, "type": "tool_result", "content": output, "is_error": false}]});
        let kept = json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false});
        self.line("user", &message, &format!("\"toolUseResult\":{kept},"))
    }

    /// A copy of a request without new information.
    pub(crate) fn request_copy(&self, output: &str) -> String {
        let message = json!({"role": "user", "content": [{"type": "text", "text": output}]});
        format!(
            "{{\"type\":\"api-request-blob\",\"sessionId\":\"{}\",\"hash\":\"{:040x}\",\"message\":{message}}}\n",
            self.session, self.salt
        )
    }
}

/// A Codex session being written.
pub(crate) struct Codex {
    pub(crate) session: String,
    turn: u64,
    calls: u64,
}

impl Codex {
    pub(crate) fn new(salt: u64) -> Self {
        Self {
            session: format!("019be7c4-{:04x}-7000-9000-{:012x}", salt >> 48, salt & 0xffff_ffff_ffff),
            turn: 0,
            calls: 0,
        }
    }

    fn line(kind: &str, payload: &serde_json::Value) -> String {
        format!("{{\"timestamp\":\"{:.3}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n", jiff::Timestamp::now())
    }

    pub(crate) fn head(&self, instructions: &str) -> String {
        let payload = json!({"id": self.session, "timestamp": format!("{:.3}", jiff::Timestamp::now()), "cwd": "/home/dev/bench", "originator": "codex_cli_rs",
            "cli_version": "0.76.0", "source": "cli", "model_provider": "openai", "base_instructions": {"text": instructions}});
        Self::line("session_meta", &payload)
    }

    pub(crate) fn prompt(&mut self, text: &str) -> String {
        self.turn += 1;
        let turn = format!("{}-{}", self.session, self.turn);
        [
            Self::line("event_msg", &json!({"type": "task_started", "turn_id": turn, "model_context_window": 258_400})),
            Self::line("turn_context", &json!({"turn_id": turn, "cwd": "/home/dev/bench", "approval_policy": "on-request", "model": "gpt-5.1-codex"})),
            Self::line("response_item", &json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})),
            Self::line("event_msg", &json!({"type": "user_message", "message": text, "images": []})),
        ]
        .concat()
    }

    /// A tool call and its output.
    pub(crate) fn call(&mut self, command: &str, output: &str) -> String {
        self.calls += 1;
        let id = format!("call_{}_{}", &self.session[9..], self.calls);
        let arguments = json!({"cmd": command, "workdir": "/home/dev/bench", "yield_time_ms": 1000}).to_string();
        let output = format!("Chunk ID: 1f\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}");
        let used = json!({"input_tokens": 9000, "cached_input_tokens": 5000, "output_tokens": 300, "reasoning_output_tokens": 10, "total_tokens": 9300});
        let mut all = json!({"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0, "total_tokens": 0});
        for (key, value) in used.as_object().unwrap() {
            all[key] = json!(value.as_u64().unwrap() * self.calls);
        }
        [
            Self::line("response_item", &json!({"type": "reasoning", "summary": [], "content": null, "encrypted_content": "gAAAAA".repeat(200)})),
            Self::line("response_item", &json!({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": id})),
            Self::line("response_item", &json!({"type": "function_call_output", "call_id": id, "output": output})),
            Self::line("event_msg", &json!({"type": "token_count", "info": {"total_token_usage": all, "last_token_usage": used, "model_context_window": 258_400}})),
        ]
        .concat()
    }

    /// The model's last text in a turn.
    pub(crate) fn words(&self, text: &str) -> String {
        let turn = format!("{}-{}", self.session, self.turn);
        [
            Self::line("event_msg", &json!({"type": "agent_message", "message": text, "phase": "final_answer"})),
            Self::line(
                "response_item",
                &json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], "phase": "final_answer"}),
            ),
            Self::line("event_msg", &json!({"type": "task_complete", "turn_id": turn, "last_agent_message": text})),
        ]
        .concat()
    }
}
