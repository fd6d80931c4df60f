//! OpenAI's Chat Completions, which many servers imitate.

use serde_json::{Value, json};

use super::{
    ModelRequest, Protocol, Speech,
    cache::CacheUsage,
    script::{Call, ConversationPart},
    wire::Request,
};

#[derive(Debug)]
pub(super) struct Completions;

impl Protocol for Completions {
    fn asked(&self, request: &Request) -> ModelRequest {
        let path = request.path.split('?').next().unwrap_or_default();
        if request.method != "POST" || !path.ends_with("/chat/completions") {
            return ModelRequest::Fixed(404, json!({ "error": { "message": "not found" } }));
        }
        let messages = request.body["messages"].as_array().into_iter().flatten();
        ModelRequest::Turn(messages.filter_map(heard).collect())
    }

    fn speech(&self, request: &Request, usage: Option<CacheUsage>) -> Box<dyn Speech> {
        let model = request.body["model"].clone();
        let wants_usage = request.body["stream_options"]["include_usage"] == true;
        Box::new(Completion { id: super::new_id("chatcmpl"), model, usage: usage.filter(|_| wants_usage), calls: 0 })
    }

    fn aside(&self) -> &'static str {
        "Scripted session"
    }

    fn whole(&self, request: &Request, text: &str) -> Value {
        let message = json!({ "role": "assistant", "content": text });
        json!({ "id": super::new_id("chatcmpl"), "object": "chat.completion", "model": request.body["model"],
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
    }

    fn failure(&self, status: u16) -> Value {
        let (kind, code) = match status {
            401 => ("invalid_request_error", Some("invalid_api_key")),
            429 => ("requests", Some("rate_limit_exceeded")),
            400..500 => ("invalid_request_error", None),
            _ => ("server_error", None),
        };
        json!({ "error": { "message": format!("scripted {status}"), "type": kind, "code": code } })
    }
}

fn heard(message: &Value) -> Option<ConversationPart> {
    let content = &message["content"];
    let text = || match content.as_array() {
        Some(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        None => super::text_of(content),
    };
    match message["role"].as_str()? {
        "user" => Some(ConversationPart::Prompt(text())),
        "tool" => Some(ConversationPart::Result(text())),
        _ => None,
    }
}

#[derive(Debug)]
struct Completion {
    id: String,
    model: Value,
    usage: Option<CacheUsage>,
    calls: usize,
}

impl Completion {
    fn delta(&self, delta: &Value, reason: Option<&str>) -> String {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        self.chunk(&json!([choice]), &Value::Null)
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> String {
        let chunk = json!({ "id": self.id, "object": "chat.completion.chunk", "model": self.model, "choices": choices,
            "usage": usage });
        format!("data: {chunk}\n\n")
    }

    fn arguments(&self, text: &str) -> String {
        let delta = json!({ "index": self.calls - 1, "function": { "arguments": text } });
        self.delta(&json!({ "tool_calls": [delta] }), None)
    }
}

impl Speech for Completion {
    fn begin(&mut self) -> String {
        self.delta(&json!({ "role": "assistant", "content": "" }), None)
    }

    fn think(&mut self, text: &str) -> String {
        self.delta(&json!({ "reasoning_content": text }), None)
    }

    fn text(&mut self, delta: &str) -> String {
        self.delta(&json!({ "content": delta }), None)
    }

    fn call(&mut self, call: &Call) -> String {
        let id = call.id.clone().unwrap_or_else(|| super::new_id("call"));
        let function = json!({ "name": call.name, "arguments": "" });
        let opened = json!({ "index": self.calls, "id": id, "type": "function", "function": function });
        self.calls += 1;
        let input = call.input.to_string();
        let (one, two) = input.split_at(input.floor_char_boundary(input.len() / 2));
        self.delta(&json!({ "tool_calls": [opened] }), None) + &self.arguments(one) + &self.arguments(two)
    }

    fn end(&mut self) -> String {
        let reason = if self.calls == 0 { "stop" } else { "tool_calls" };
        let usage = self.usage.map_or_else(String::new, |usage| {
            let read = json!({ "cached_tokens": usage.read, "cache_write_tokens": usage.write_5m });
            let usage = json!({ "prompt_tokens": usage.total(), "completion_tokens": 42,
                "total_tokens": usage.total() + 42, "prompt_tokens_details": read });
            self.chunk(&json!([]), &usage)
        });
        self.delta(&json!({}), Some(reason)) + &usage + "data: [DONE]\n\n"
    }
}
