//! OpenAI's Responses, as Codex 0.169.0 uses them.

use serde_json::{Value, json};

use super::{
    ModelRequest, Protocol, Speech,
    cache::CacheUsage,
    script::{Call, ConversationPart, Part},
    signature::sign,
    wire::Request,
};

/// Starts a sub-agent that works in the background; [`wait`] waits for it.
#[must_use]
pub fn delegate(task: &str) -> Part {
    let input = json!({ "message": task, "task_name": "helper", "fork_turns": "none" });
    Part::Call(Call::new("spawn_agent", input).within("collaboration"))
}

/// Waits for messages of the sub-agents.
#[must_use]
pub fn wait() -> Part {
    Part::Call(Call::new("wait_agent", json!({ "timeout_ms": 60_000 })).within("collaboration"))
}

/// The name of a call that uses whichever command tool the agent offers.
const SHELL: &str = "shell";

/// Runs a command in any version of Codex.
#[must_use]
pub fn shell(line: &str) -> Call {
    Call::new(SHELL, json!({ "command": line }))
}

/// Runs a command in any version of Codex that must ask for permission.
#[must_use]
pub fn escalated(line: &str) -> Call {
    Call::new(SHELL, json!({ "command": line, "escalated": true }))
}

#[derive(Debug)]
pub(super) struct Responses;

impl Protocol for Responses {
    fn asked(&self, request: &Request) -> ModelRequest {
        if request.method != "POST" || !request.path.split('?').next().unwrap_or_default().ends_with("/responses") {
            return ModelRequest::Fixed(404, json!({ "error": { "message": "not found" } }));
        }
        let heard: Vec<ConversationPart> =
            request.body["input"].as_array().into_iter().flatten().filter_map(heard).collect();
        // The title of a thread is requested in a separate thread, by its last prompt.
        let is_title = |text: &String| text.starts_with("Generate a concise") && text.contains("title");
        let last = heard.iter().rev().find_map(|heard| match heard {
            ConversationPart::Prompt(text) => Some(text),
            ConversationPart::Result(_) => None,
        });
        if last.is_some_and(is_title) { ModelRequest::Side { streamed: true } } else { ModelRequest::Turn(heard) }
    }

    /// Converts a plain command to a call of the tool that this version offers.
    fn call(&self, request: &Request, call: &Call) -> Call {
        if call.name != SHELL {
            return call.clone();
        }
        let (line, escalated) = (&call.input["command"], call.input["escalated"] == true);
        let offers = |name: &str| {
            request.body["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
        };
        // The oldest tool names the field differently.
        let with = |mut input: Value| {
            if escalated {
                if offers("shell") {
                    input["with_escalated_permissions"] = true.into();
                } else {
                    input["sandbox_permissions"] = "require_escalated".into();
                }
                input["justification"] = "It is to be seen".into();
            }
            input
        };
        if offers("shell_command") {
            Call::new("shell_command", with(json!({ "command": line })))
        } else if offers("exec_command") {
            Call::new("exec_command", with(json!({ "cmd": line })))
        } else if offers("shell") {
            Call::new("shell", with(json!({ "command": ["bash", "-lc", line] })))
        } else {
            let input = with(json!({ "cmd": line }));
            Call::new("exec", format!("const r = await tools.exec_command({input}); text(r.output);").into())
        }
    }

    fn speech(&self, request: &Request, usage: Option<CacheUsage>) -> Box<dyn Speech> {
        let model = request.body["model"].clone();
        Box::new(Response { id: super::new_id("resp"), model, usage, ..Response::default() })
    }

    fn aside(&self) -> &'static str {
        "Scripted session"
    }

    fn whole(&self, _: &Request, text: &str) -> Value {
        let message = Response::message(&super::new_id("msg"), text);
        json!({ "id": super::new_id("resp"), "object": "response", "status": "completed", "output": [message] })
    }

    fn failure(&self, status: u16) -> Value {
        json!({ "error": { "message": format!("scripted {status}"), "type": "scripted" } })
    }

    fn stream_failure(&self) -> String {
        let data = json!({ "type": "error", "code": "server_error", "message": "scripted", "param": null });
        format!("event: error\ndata: {data}\n\n")
    }
}

fn heard(item: &Value) -> Option<ConversationPart> {
    let content = item["content"].as_array().into_iter().flatten();
    // Messages between agents have the type of encrypted content.
    let text = |part: &Value| part["text"].as_str().or(part["encrypted_content"].as_str()).map(str::to_owned);
    let text = content.filter_map(text).collect::<Vec<_>>().join("\n");
    // The type of a message is optional.
    match item["type"].as_str().unwrap_or("message") {
        "function_call_output" | "custom_tool_call_output" => {
            Some(ConversationPart::Result(super::text_of(&item["output"])))
        }
        "message" if item["role"] == "user" => Some(ConversationPart::Prompt(text)),
        "agent_message" if text.contains("Message Type: NEW_TASK") => Some(ConversationPart::Prompt(text)),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Response {
    id: String,
    sequence: u64,
    /// Completed items.
    output: Vec<Value>,
    /// The unfinished message: its id and its text so far.
    open: Option<(String, String)>,
    /// The latest reasoning item, to which calls belong.
    thought: Option<String>,
    model: Value,
    usage: Option<CacheUsage>,
}

impl Response {
    fn event(&mut self, kind: &str, mut data: Value) -> String {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        format!("event: {kind}\ndata: {data}\n\n")
    }

    fn message(id: &str, text: &str) -> Value {
        let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
        json!({ "id": id, "type": "message", "role": "assistant", "status": "completed", "content": content })
    }

    fn close(&mut self) -> String {
        let Some((id, text)) = self.open.take() else { return String::new() };
        let index = self.output.len();
        let item = Self::message(&id, &text);
        self.output.push(item.clone());
        let done = json!({ "item_id": id, "output_index": index, "content_index": 0, "text": text });
        self.event("response.output_text.done", done)
            + &self.event("response.output_item.done", json!({ "output_index": index, "item": item }))
    }
}

impl Speech for Response {
    fn begin(&mut self) -> String {
        let response =
            json!({ "id": self.id, "object": "response", "status": "in_progress", "output": [], "model": self.model });
        self.event("response.created", json!({ "response": response }))
    }

    fn think(&mut self, text: &str) -> String {
        let mut said = self.close();
        let (index, id) = (self.output.len(), super::new_id("rs"));
        let begun = json!({ "id": id, "type": "reasoning", "summary": [] });
        said += &self.event("response.output_item.added", json!({ "output_index": index, "item": begun }));
        let delta = json!({ "item_id": id, "output_index": index, "summary_index": 0, "delta": text });
        said += &self.event("response.reasoning_summary_text.delta", delta);
        let summary = json!([{ "type": "summary_text", "text": text }]);
        let item = json!({ "id": id, "type": "reasoning", "summary": summary, "encrypted_content": sign(&id) });
        self.output.push(item.clone());
        self.thought = Some(id);
        said + &self.event("response.output_item.done", json!({ "output_index": index, "item": item }))
    }

    fn text(&mut self, delta: &str) -> String {
        let index = self.output.len();
        let mut said = String::new();
        let id = match &mut self.open {
            Some((id, text)) => {
                text.push_str(delta);
                id.clone()
            }
            None => {
                let id = super::new_id("msg");
                self.open = Some((id.clone(), delta.to_owned()));
                let item = json!({
                    "id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": [],
                });
                said = self.event("response.output_item.added", json!({ "output_index": index, "item": item }));
                id
            }
        };
        let data = json!({ "item_id": id, "output_index": index, "content_index": 0, "delta": delta });
        said + &self.event("response.output_text.delta", data)
    }

    fn call(&mut self, call: &Call) -> String {
        let mut said = self.close();
        let index = self.output.len();
        // A tool whose input is text is a custom tool.
        let (kind, field, part, input) = match call.input.as_str() {
            Some(text) => ("custom_tool_call", "input", "custom_tool_call_input", text.to_owned()),
            None => ("function_call", "arguments", "function_call_arguments", call.input.to_string()),
        };
        let id = match &self.thought {
            Some(reasoning) => format!("fc_{reasoning}-{index}"),
            None => super::new_id("fc"),
        };
        let call_id = call.id.clone().unwrap_or_else(|| super::new_id("call"));
        let mut item = json!({
            "id": id, "type": kind, "status": "in_progress", "name": call.name, "call_id": call_id,
        });
        item[field] = "".into();
        if let Some(namespace) = &call.namespace {
            item["namespace"] = namespace.as_str().into();
        }
        said += &self.event("response.output_item.added", json!({ "output_index": index, "item": item }));
        let at = json!({ "item_id": id, "output_index": index });
        let mut delta = at.clone();
        delta["delta"] = input.as_str().into();
        said += &self.event(&format!("response.{part}.delta"), delta);
        let mut done = at;
        done[field] = input.as_str().into();
        said += &self.event(&format!("response.{part}.done"), done);
        item["status"] = "completed".into();
        item[field] = input.into();
        self.output.push(item.clone());
        said + &self.event("response.output_item.done", json!({ "output_index": index, "item": item }))
    }

    fn end(&mut self) -> String {
        let said = self.close();
        let (input, details) = match self.usage {
            Some(usage) => {
                (usage.total(), json!({ "cached_tokens": usage.read, "cache_write_tokens": usage.write_5m }))
            }
            None => (1200, json!({ "cached_tokens": 200 })),
        };
        let usage = json!({
            "input_tokens": input, "input_tokens_details": details,
            "output_tokens": 60, "output_tokens_details": { "reasoning_tokens": 10 }, "total_tokens": input + 60,
        });
        let response = json!({
            "id": self.id, "object": "response", "status": "completed", "output": self.output, "usage": usage,
        });
        said + &self.event("response.completed", json!({ "response": response }))
    }
}
