//! Answers.

use session_tree::{Json, Object};

use super::encode::REASONING_FIELDS;
use crate::{
    EndReason, Failure, FailureKind, StreamEvent, Usage,
    codec::{
        decoder::{Sink, count, filled, object, objects},
        draft::{InputForm, Slot, call_block, text_block, thinking_block},
    },
};

/// Prefix of the ids of calls without one from the server.
const GENERATED_ID: &str = "call-";

/// The state of a streaming answer.
#[derive(Debug, Default)]
pub(crate) struct ChatAnswer {
    began: bool,
    text: Option<(usize, String)>,
    thinking: Option<OpenThinking>,
    calls: Vec<StreamedCall>,
    reason: Option<EndReason>,
    refused: bool,
}

#[derive(Debug)]
struct OpenThinking {
    slot: usize,
    /// The field that contains it.
    field: &'static str,
    text: String,
    /// `reasoning_details`, with the pieces of each text joined.
    details: Vec<Object>,
}

#[derive(Debug)]
struct StreamedCall {
    slot: usize,
    index: Option<u64>,
    /// As received from the server.
    id: Option<String>,
    input: String,
    /// Unknown fields.
    more: Object,
}

impl ChatAnswer {
    pub(crate) fn event(&mut self, data: &Object, text: &str, sink: &mut Sink<'_>) {
        if data.get("error").is_some_and(|error| *error != Json::Null) {
            sink.push(StreamEvent::Failed(Failure::of_stream(data, text)));
            return;
        }
        if !std::mem::replace(&mut self.began, true) {
            sink.began(data.text("model"), data.text("id"));
        }
        let choice = objects(data, "choices").next();
        // Moonshot puts the usage into the choice.
        if let Some(usage) = object(data, "usage").or(choice.and_then(|choice| object(choice, "usage"))) {
            sink.usage(usage_of(usage));
        }
        let Some(choice) = choice else { return };
        if let Some(delta) = object(choice, "delta") {
            self.delta(delta, sink);
        }
        if let Some(reason) = filled(choice, "finish_reason") {
            self.finish(reason, sink);
        }
    }

    /// `[DONE]`: the answer is complete if a finish reason was received.
    pub(crate) fn done(&mut self, sink: &mut Sink<'_>) {
        match self.reason.take() {
            Some(_) if self.refused => sink.fail(FailureKind::Refused, "the vendor's filter stopped the answer"),
            Some(reason) => sink.end(reason),
            None => sink.fail(FailureKind::Network, "the stream ended without a finish reason"),
        }
    }

    fn delta(&mut self, delta: &Object, sink: &mut Sink<'_>) {
        // Some servers send the same thinking in two fields.
        let thinking = REASONING_FIELDS.into_iter().find_map(|field| Some((field, filled(delta, field)?)));
        if let Some((field, more)) = thinking {
            let open = self.thinking(field, sink);
            open.text.push_str(more);
            sink.draft.extend(open.slot, more);
            sink.push(StreamEvent::Thinking(more.to_owned()));
        }
        for detail in objects(delta, "reasoning_details") {
            add_detail(&mut self.thinking("", sink).details, detail);
        }
        for more in [filled(delta, "content"), filled(delta, "refusal")].into_iter().flatten() {
            let (slot, text) =
                self.text.get_or_insert_with(|| (sink.draft.open(Slot::Text(String::new())), String::new()));
            text.push_str(more);
            sink.draft.extend(*slot, more);
            sink.push(StreamEvent::Text(more.to_owned()));
        }
        for call in objects(delta, "tool_calls") {
            self.call(call, sink);
        }
    }

    fn thinking(&mut self, field: &'static str, sink: &mut Sink<'_>) -> &mut OpenThinking {
        let open = self.thinking.get_or_insert_with(|| {
            let slot = sink.draft.open(Slot::Thinking(String::new()));
            OpenThinking { slot, field, text: String::new(), details: Vec::new() }
        });
        if open.field.is_empty() {
            open.field = field;
        }
        open
    }

    fn call(&mut self, delta: &Object, sink: &mut Sink<'_>) {
        let function = object(delta, "function");
        let (index, id) = (count(delta, "index"), filled(delta, "id"));
        let name = function.and_then(|function| filled(function, "name"));
        // Calls are matched by index; servers without an index repeat the id in each piece, or send each call in one
        // piece.
        let at = match (index, id) {
            (Some(index), _) => self.calls.iter().position(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().position(|call| call.id.as_deref() == Some(id)),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let at = at.unwrap_or_else(|| {
            let wire_id = id.map_or_else(|| sink.draft.made_up_id(GENERATED_ID), str::to_owned);
            let call_id = sink.draft.unique_id(&wire_id);
            let name = name.unwrap_or_default().to_owned();
            let slot = sink.draft.open(Slot::Call { id: call_id.clone(), name: name.clone(), input: String::new() });
            sink.push(StreamEvent::ToolOpened { block: slot, id: call_id, name });
            let more = Object::new();
            self.calls.push(StreamedCall { slot, index, id: id.map(str::to_owned), input: String::new(), more });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        let known = ["index", "id", "type", "function"];
        for (key, value) in delta.iter().filter(|(key, value)| !known.contains(key) && **value != Json::Null) {
            call.more.set(key, value.clone());
        }
        if let Some(more) = function.and_then(|function| filled(function, "arguments")) {
            call.input.push_str(more);
            sink.draft.extend(call.slot, more);
            sink.push(StreamEvent::ToolInput { block: call.slot, text: more.to_owned() });
        }
    }

    /// A finish reason was received: open blocks are complete.
    fn finish(&mut self, reason: &str, sink: &mut Sink<'_>) {
        if let Some(open) = self.thinking.take() {
            let details: Vec<Json> = open.details.into_iter().map(Json::Object).collect();
            let details = (!details.is_empty()).then(|| Json::Array(details).to_text());
            let signature = details.as_deref().or(Some(open.field)).filter(|signature| !signature.is_empty());
            sink.finish(open.slot, thinking_block(&open.text, signature));
        }
        if let Some((slot, text)) = self.text.take() {
            sink.finish(slot, text_block(&text));
        }
        for call in std::mem::take(&mut self.calls) {
            let Some(Slot::Call { id, name, .. }) = sink.draft.slot(call.slot).map(|slot| slot.clone()) else {
                continue;
            };
            let block = call_block(&id, &name, &call.input, InputForm::Text);
            let is_valid = block.get("malformed").is_none() && call.id.as_deref() == Some(id.as_str());
            let raw = (is_valid && !call.more.is_empty()).then(|| {
                let function = Object::new().with("name", name.as_str()).with("arguments", call.input.as_str());
                let whole = Object::new().with("id", id.as_str()).with("type", "function").with("function", function);
                call.more.iter().fold(whole, |whole, (key, value)| whole.with(key, value.clone())).to_text()
            });
            sink.finish(call.slot, block.with_some("raw", raw));
        }
        self.refused = reason == "content_filter";
        self.reason = Some(match reason {
            "length" => EndReason::Length,
            _ if sink.draft.has_call() => EndReason::ToolUse,
            "stop" | "end" | "eos" | "tool_calls" | "function_call" => EndReason::Stop,
            other => EndReason::Other(other.to_owned()),
        });
    }
}

/// Pieces of a text are joined, other details are kept separate: OpenRouter, "Preserving reasoning".
fn add_detail(details: &mut Vec<Object>, detail: &Object) {
    let key = match detail.text("type") {
        Some("reasoning.text") => "text",
        Some("reasoning.summary") => "summary",
        Some(_) | None => {
            details.push(detail.clone());
            return;
        }
    };
    match details.last_mut().filter(|last| last.text("type") == detail.text("type")) {
        Some(last) => {
            let text = format!("{}{}", last.text(key).unwrap_or_default(), detail.text(key).unwrap_or_default());
            for (name, value) in detail.iter().filter(|(_, value)| **value != Json::Null) {
                if last.get(name).is_none_or(|old| *old == Json::Null) {
                    last.set(name, value.clone());
                }
            }
            last.set(key, text);
        }
        None => details.push(detail.clone()),
    }
}

/// <https://platform.openai.com/docs/api-reference/chat/object>; `prompt_cache_hit_tokens` is DeepSeek's.
fn usage_of(usage: &Object) -> Usage {
    let input = object(usage, "prompt_tokens_details");
    let input_count = |key: &str| input.and_then(|details| count(details, key));
    let read = input_count("cached_tokens").or(count(usage, "prompt_cache_hit_tokens")).unwrap_or_default();
    let written = input_count("cache_write_tokens").unwrap_or_default();
    let output = object(usage, "completion_tokens_details");
    Usage {
        input: count(usage, "prompt_tokens").unwrap_or_default().saturating_sub(read.saturating_add(written)),
        read,
        write_5m: written,
        write_1h: 0,
        output: count(usage, "completion_tokens").unwrap_or_default(),
        reasoning: output.and_then(|details| count(details, "reasoning_tokens")),
    }
}
