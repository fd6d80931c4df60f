//! Gemini's generateContent and streamGenerateContent, as Gemini CLI 0.61.0 uses them.

use serde_json::{Value, json};

use super::{
    ModelRequest, Protocol, Speech,
    cache::CacheUsage,
    script::{Call, ConversationPart, Part},
    signature::sign,
    wire::Request,
};

/// Delegates to a sub-agent; its report is the result of the call.
#[must_use]
pub fn delegate(task: &str) -> Part {
    Part::Call(Call::new("invoke_agent", json!({ "agent_name": "generalist", "prompt": task })))
}

/// The final report of a sub-agent, in the form of the generalist.
#[must_use]
pub fn report(text: &str) -> Part {
    Part::Call(Call::new("complete_task", json!({ "result": { "response": text } })))
}

#[derive(Debug)]
pub(super) struct Gemini;

impl Protocol for Gemini {
    fn asked(&self, request: &Request) -> ModelRequest {
        let verb = request.path.rsplit(':').next().unwrap_or_default().split('?').next().unwrap_or_default();
        match verb {
            "countTokens" => ModelRequest::Fixed(200, json!({ "totalTokens": 1200 })),
            "generateContent" => ModelRequest::Side { streamed: false },
            "streamGenerateContent" => {
                let contents = request.body["contents"].as_array().into_iter().flatten();
                let users = contents.filter(|content| content["role"] == "user");
                let parts = users.flat_map(|content| content["parts"].as_array().into_iter().flatten());
                ModelRequest::Turn(parts.filter_map(heard).collect())
            }
            _ => ModelRequest::Fixed(404, self.failure(404)),
        }
    }

    fn speech(&self, request: &Request, usage: Option<CacheUsage>) -> Box<dyn Speech> {
        Box::new(Candidate { model: model(request), usage, calls: 0, held: None })
    }

    fn aside(&self) -> &'static str {
        "OK"
    }

    fn whole(&self, request: &Request, text: &str) -> Value {
        said(&model(request), &json!([{ "text": text }]), true, None)
    }

    fn failure(&self, status: u16) -> Value {
        let word = match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        };
        json!({ "error": { "code": status, "status": word, "message": format!("scripted {status}") } })
    }
}

fn heard(part: &Value) -> Option<ConversationPart> {
    if part["functionResponse"].is_object() {
        return Some(ConversationPart::Result(super::text_of(&part["functionResponse"]["response"])));
    }
    part["text"].as_str().map(|text| ConversationPart::Prompt(text.to_owned()))
}

/// `/v1beta/models/MODEL:VERB`
pub(super) fn model(request: &Request) -> String {
    let rest = request.path.split("/models/").nth(1).unwrap_or_default();
    rest.split(':').next().unwrap_or_default().to_owned()
}

fn said(model: &str, parts: &Value, last: bool, usage: Option<CacheUsage>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if last {
        candidate["finishReason"] = "STOP".into();
    }
    let (input, read) = usage.map_or((1200, 0), |usage| (usage.total(), usage.read));
    let usage = json!({
        "promptTokenCount": input, "candidatesTokenCount": 40, "totalTokenCount": input + 65,
        "thoughtsTokenCount": 25, "cachedContentTokenCount": read,
    });
    json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "scripted" })
}

#[derive(Debug)]
struct Candidate {
    model: String,
    usage: Option<CacheUsage>,
    calls: usize,
    /// The next piece to send: the end must be sent together with the last piece, because an empty text is an error.
    held: Option<Value>,
}

impl Candidate {
    fn next(&mut self, part: Value) -> String {
        self.held.replace(part).map(|part| self.event(&part, false)).unwrap_or_default()
    }

    fn event(&self, part: &Value, last: bool) -> String {
        format!("data: {}\r\n\r\n", said(&self.model, &json!([part]), last, self.usage))
    }
}

impl Speech for Candidate {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn text(&mut self, delta: &str) -> String {
        self.next(json!({ "text": delta }))
    }

    fn think(&mut self, text: &str) -> String {
        self.next(json!({ "text": text, "thought": true }))
    }

    fn call(&mut self, call: &Call) -> String {
        let mut part = json!({ "functionCall": { "name": call.name, "args": call.input } });
        // From version 3 on models send ids, and the first call of an answer has a signature: docs, thought signatures.
        if self.model.starts_with("gemini-3") {
            part["functionCall"]["id"] = call.id.clone().unwrap_or_else(|| super::new_id("fc")).into();
            if self.calls == 0 {
                part["thoughtSignature"] = sign(&call.name).into();
            }
        }
        self.calls += 1;
        self.next(part)
    }

    fn end(&mut self) -> String {
        self.held.take().map(|part| self.event(&part, true)).unwrap_or_default()
    }
}
