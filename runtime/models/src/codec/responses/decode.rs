//! Answers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use session_tree::{Json, Object};

use super::encode::says_all;
use crate::{
    EndReason, Failure, FailureKind, StreamEvent, Usage,
    codec::{
        decoder::{Sink, count, filled, has_only, object, objects},
        draft::{InputForm, Slot, call_block, opaque_block, text_block, thinking_block},
    },
};

/// The state of a streaming answer.
#[derive(Debug, Default)]
pub(crate) struct ResponsesAnswer {
    /// Incomplete items: their slot in the draft, by index.
    open: BTreeMap<u64, usize>,
    /// Reasoning items received without encrypted content, by id.
    unencrypted: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct ItemEvent<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
}

#[derive(Deserialize)]
struct CompletedEvent<'a> {
    #[serde(borrow)]
    response: CompletedResponse<'a>,
}

#[derive(Deserialize)]
struct CompletedResponse<'a> {
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

impl ResponsesAnswer {
    pub(crate) fn event(&mut self, data: &Object, text: &str, sink: &mut Sink<'_>) {
        let index = count(data, "output_index").unwrap_or_default();
        let delta = data.text("delta").unwrap_or_default();
        match data.text("type").unwrap_or_default() {
            "response.created" => {
                let response = object(data, "response");
                sink.began(response.and_then(|r| r.text("model")), response.and_then(|r| r.text("id")));
            }
            "response.output_item.added" => {
                if let Some(item) = object(data, "item") {
                    self.added(index, item, sink);
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                if let Some(slot) = self.open.get(&index) {
                    sink.draft.extend(*slot, delta);
                    sink.push(StreamEvent::Text(delta.to_owned()));
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if let Some(slot) = self.open.get(&index) {
                    sink.draft.extend(*slot, delta);
                    sink.push(StreamEvent::Thinking(delta.to_owned()));
                }
            }
            "response.function_call_arguments.delta" => {
                if let Some(slot) = self.open.get(&index) {
                    sink.draft.extend(*slot, delta);
                    sink.push(StreamEvent::ToolInput { block: *slot, text: delta.to_owned() });
                }
            }
            "response.output_item.done" => {
                let item = object(data, "item");
                let raw = serde_json::from_str::<ItemEvent<'_>>(text).map(|event| event.item.get());
                if let (Some(item), Ok(raw)) = (item, raw) {
                    self.done(index, item, raw, sink);
                }
            }
            "response.completed" | "response.incomplete" => self.end(data, text, sink),
            // An error without a type is from a proxy, not from OpenAI.
            "" if object(data, "error").is_some() => sink.push(StreamEvent::Failed(Failure::of_stream(data, text))),
            "response.failed" | "error" => sink.push(StreamEvent::Failed(Failure::of_stream(data, text))),
            // Parts and ends already reported by other events, `keepalive`, and event types added later.
            _ => {}
        }
    }

    fn added(&mut self, index: u64, item: &Object, sink: &mut Sink<'_>) -> usize {
        let slot = match item.text("type") {
            Some("message") => Slot::Text(String::new()),
            Some("reasoning") => Slot::Thinking(String::new()),
            Some("function_call") => {
                let id = sink.draft.unique_id(&joined_id(item));
                let name = item.text("name").unwrap_or_default().to_owned();
                Slot::Call { id, name, input: String::new() }
            }
            Some(_) | None => Slot::Hidden,
        };
        let at = sink.draft.open(slot.clone());
        if let Slot::Call { id, name, .. } = slot {
            sink.push(StreamEvent::ToolOpened { block: at, id, name });
        }
        self.open.insert(index, at);
        at
    }

    fn done(&mut self, index: u64, item: &Object, raw: &str, sink: &mut Sink<'_>) {
        let at = match self.open.get(&index) {
            Some(at) => *at,
            None => self.added(index, item, sink),
        };
        self.open.remove(&index);
        match item.text("type") {
            Some("message") => {
                let part_text = |part: &Object| part.text("text").or(part.text("refusal")).map(str::to_owned);
                let text: String = objects(item, "content").filter_map(part_text).collect();
                let signature = item.text("id").map(|id| {
                    Object::new().with("v", 1_u64).with("id", id).with_some("phase", item.text("phase")).to_text()
                });
                let block = text_block(&text).with_some("textSignature", signature);
                sink.finish(at, block.with_some("raw", (!says_all(item)).then_some(raw)));
            }
            Some("reasoning") => {
                let texts = |key: &str| {
                    let texts: Vec<&str> = objects(item, key).filter_map(|part| part.text("text")).collect();
                    Some(texts.join("\n\n")).filter(|text| !text.is_empty())
                };
                let text = texts("summary").or_else(|| texts("content")).unwrap_or_default();
                if filled(item, "encrypted_content").is_none()
                    && let Some(id) = item.text("id")
                {
                    self.unencrypted.insert(id.to_owned(), at);
                }
                let block = thinking_block(&text, Some(raw));
                // Azure sends the encrypted content only at the end.
                if self.unencrypted.values().any(|slot| *slot == at) {
                    sink.draft.hold(at, block);
                } else {
                    sink.finish(at, block);
                }
            }
            Some("function_call") => self.call_done(at, item, raw, sink),
            Some(_) | None => {
                sink.finish(at, opaque_block(raw));
            }
        }
    }

    fn call_done(&self, at: usize, item: &Object, raw: &str, sink: &mut Sink<'_>) {
        let Some(Slot::Call { id, name, input }) = sink.draft.slot(at).map(|slot| slot.clone()) else { return };
        let told = filled(item, "arguments").unwrap_or(&input);
        if let Some(missed) = told.strip_prefix(input.as_str()).filter(|missed| !missed.is_empty()) {
            sink.push(StreamEvent::ToolInput { block: at, text: missed.to_owned() });
        }
        let call = call_block(&id, &name, told, InputForm::Text).with_some("namespace", item.text("namespace"));
        let known = has_only(item, &["id", "type", "status", "arguments", "call_id", "name", "namespace"]);
        let is_valid = call.get("malformed").is_none() && id == joined_id(item);
        sink.finish(at, call.with_some("raw", (!known && is_valid).then_some(raw)));
    }

    fn end(&mut self, data: &Object, text: &str, sink: &mut Sink<'_>) {
        let Some(response) = object(data, "response") else { return };
        self.add_encrypted(text, sink);
        if let Some(usage) = object(response, "usage") {
            sink.usage(usage_of(usage));
        }
        let reason = object(response, "incomplete_details").and_then(|details| details.text("reason"));
        let reason = match (response.text("status"), reason) {
            (Some("incomplete"), Some("max_output_tokens")) => EndReason::Length,
            (Some("incomplete"), Some("content_filter")) => {
                sink.fail(FailureKind::Refused, "the vendor's filter stopped the answer");
                return;
            }
            (Some("incomplete"), reason) => EndReason::Other(reason.unwrap_or("incomplete").to_owned()),
            _ if sink.draft.has_call() => EndReason::ToolUse,
            _ => EndReason::Stop,
        };
        sink.end(reason);
    }

    /// Azure sends the encrypted content of a reasoning item only at the end: earendil-works/pi#6409.
    fn add_encrypted(&mut self, text: &str, sink: &mut Sink<'_>) {
        if self.unencrypted.is_empty() {
            return;
        }
        let Ok(completed) = serde_json::from_str::<CompletedEvent<'_>>(text) else { return };
        for raw in completed.response.output {
            let Ok(Json::Object(item)) = Json::parse(raw.get()) else { continue };
            if filled(&item, "encrypted_content").is_some()
                && let Some(slot) = item.text("id").and_then(|id| self.unencrypted.remove(id))
                && let Some(Slot::Held(block)) = sink.draft.slot(slot)
            {
                block.set("thinkingSignature", raw.get());
            }
        }
    }
}

/// The ids of a call and its item, joined like in pi.
fn joined_id(item: &Object) -> String {
    let call = item.text("call_id").unwrap_or_default();
    match item.text("id") {
        Some(id) => format!("{call}|{id}"),
        None => call.to_owned(),
    }
}

/// <https://platform.openai.com/docs/api-reference/responses/object>: input includes tokens read from a cache and,
/// since GPT-5.6, tokens written to one.
fn usage_of(usage: &Object) -> Usage {
    let input = object(usage, "input_tokens_details");
    let input_count = |key: &str| input.and_then(|details| count(details, key)).unwrap_or_default();
    let (read, written) = (input_count("cached_tokens"), input_count("cache_write_tokens"));
    let output = object(usage, "output_tokens_details");
    Usage {
        input: count(usage, "input_tokens").unwrap_or_default().saturating_sub(read.saturating_add(written)),
        read,
        write_5m: written,
        write_1h: 0,
        output: count(usage, "output_tokens").unwrap_or_default(),
        reasoning: output.and_then(|details| count(details, "reasoning_tokens")),
    }
}
