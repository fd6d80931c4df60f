//! Anthropic's Messages, as Claude Code 2.1.328 uses them.

use regex::Regex;
use serde_json::{Value, json};

use super::{
    ModelRequest, Protocol, Speech,
    cache::CacheUsage,
    script::{Call, ConversationPart, Part},
    signature::sign,
    wire::Request,
};

/// Tools of which every conversation offers at least one, and a request beside the conversation none.
const TOOLS: [&str; 6] = ["Bash", "Read", "Agent", "Task", "bash", "read"];

/// Starts a sub-agent that works in the background; the conversation is notified of its end by a prompt containing
/// [`NOTIFICATION`].
#[must_use]
pub fn delegate(task: &str) -> Part {
    let input = json!({ "description": "Part of it", "prompt": task, "subagent_type": "general-purpose" });
    Part::Call(Call::new("Agent", input))
}

/// Contained in the prompt that notifies a conversation of the end of a sub-agent.
pub const NOTIFICATION: &str = "<task-notification>";

/// Placeholder in a call for the file of the plan, whose path the conversation contains.
pub const PLAN_FILE: &str = "(the file of the plan)";
const PLAN_PATH: &str = r#"/[^\s"'`\\]+/\.claude/plans/[\w-]+\.md"#;

#[derive(Debug)]
pub(super) struct Messages;

impl Protocol for Messages {
    fn asked(&self, request: &Request) -> ModelRequest {
        let (path, body) = (&request.path, &request.body);
        if path.contains("count_tokens") {
            return ModelRequest::Fixed(200, json!({ "input_tokens": 1200 }));
        }
        if request.method != "POST" || !path.contains("/v1/messages") {
            return ModelRequest::Fixed(200, json!({ "data": [], "has_more": false }));
        }
        let tools = body["tools"].as_array().into_iter().flatten();
        if !tools.filter_map(|tool| tool["name"].as_str()).any(|name| TOOLS.contains(&name)) {
            return ModelRequest::Side { streamed: body["stream"] == true };
        }
        let users = body["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "user");
        ModelRequest::Turn(users.flat_map(|message| heard(&message["content"])).collect())
    }

    fn call(&self, request: &Request, call: &Call) -> Call {
        let place = || Regex::new(PLAN_PATH).ok()?.find(&request.body.to_string()).map(|m| m.as_str().to_owned());
        let mut call = call.clone();
        if call.input["file_path"] == PLAN_FILE
            && let Some(place) = place()
        {
            call.input["file_path"] = place.into();
        }
        call
    }

    fn speech(&self, request: &Request, told: Option<CacheUsage>) -> Box<dyn Speech> {
        let (model, usage) = (request.body["model"].clone(), told.map_or_else(usage, usage_of));
        Box::new(Message { model, usage, id: super::new_id("msg"), ..Message::default() })
    }

    fn aside(&self) -> &'static str {
        r#"{"title": "Scripted session", "isNewTopic": true}"#
    }

    fn whole(&self, request: &Request, text: &str) -> Value {
        json!({
            "id": super::new_id("msg"), "type": "message", "role": "assistant", "model": request.body["model"],
            "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": usage(),
        })
    }

    fn failure(&self, status: u16) -> Value {
        let kind = match status {
            401 => "authentication_error",
            400 => "invalid_request_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": format!("scripted {status}") } })
    }

    fn ping(&self) -> &'static str {
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }

    fn stream_failure(&self) -> String {
        event(&self.failure(529))
    }
}

/// The parts of a user's message.
fn heard(content: &Value) -> Vec<ConversationPart> {
    if let Some(text) = content.as_str() {
        return vec![ConversationPart::Prompt(text.to_owned())];
    }
    let blocks = content.as_array().into_iter().flatten();
    let heard = |block: &Value| match block["type"].as_str() {
        Some("tool_result") => Some(ConversationPart::Result(super::text_of(&block["content"]))),
        Some("text") => block["text"].as_str().map(|text| ConversationPart::Prompt(text.to_owned())),
        _ => None,
    };
    blocks.filter_map(heard).collect()
}

fn usage() -> Value {
    json!({ "input_tokens": 10, "cache_creation_input_tokens": 120, "cache_read_input_tokens": 5000, "output_tokens": 40 })
}

fn usage_of(usage: CacheUsage) -> Value {
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.write_5m + usage.write_1h,
        "cache_read_input_tokens": usage.read, "output_tokens": 1,
        "cache_creation": { "ephemeral_5m_input_tokens": usage.write_5m, "ephemeral_1h_input_tokens": usage.write_1h },
    })
}

#[derive(Debug, Default)]
struct Message {
    model: Value,
    usage: Value,
    id: String,
    /// The number of blocks so far, and whether the last one is an unfinished text.
    blocks: usize,
    open: bool,
    calls: usize,
}

impl Message {
    fn close(&mut self) -> String {
        if !std::mem::take(&mut self.open) {
            return String::new();
        }
        event(&json!({ "type": "content_block_stop", "index": self.blocks - 1 }))
    }

    fn begin_block(&mut self, block: &Value) -> String {
        let begun = event(&json!({ "type": "content_block_start", "index": self.blocks, "content_block": block }));
        self.blocks += 1;
        self.open = true;
        begun
    }

    fn delta(&self, delta: &Value) -> String {
        event(&json!({ "type": "content_block_delta", "index": self.blocks - 1, "delta": delta }))
    }
}

impl Speech for Message {
    fn begin(&mut self) -> String {
        event(&json!({ "type": "message_start", "message": {
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": self.usage,
        }}))
    }

    fn think(&mut self, text: &str) -> String {
        let closed = self.close();
        let begun = self.begin_block(&json!({ "type": "thinking", "thinking": "", "signature": "" }));
        let thought = self.delta(&json!({ "type": "thinking_delta", "thinking": text }));
        let signed = self.delta(&json!({ "type": "signature_delta", "signature": sign(text) }));
        closed + &begun + &thought + &signed + &self.close()
    }

    fn text(&mut self, delta: &str) -> String {
        let begun = if self.open { String::new() } else { self.begin_block(&json!({ "type": "text", "text": "" })) };
        begun + &self.delta(&json!({ "type": "text_delta", "text": delta }))
    }

    fn call(&mut self, call: &Call) -> String {
        self.calls += 1;
        let mut said = self.close();
        let id = call.id.clone().unwrap_or_else(|| super::new_id("toolu"));
        said += &self.begin_block(&json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }));
        said += &self.delta(&json!({ "type": "input_json_delta", "partial_json": call.input.to_string() }));
        said + &self.close()
    }

    fn end(&mut self) -> String {
        let reason = if self.calls == 0 { "end_turn" } else { "tool_use" };
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        self.close()
            + &event(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 42 } }))
            + &event(&json!({ "type": "message_stop" }))
    }
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}
