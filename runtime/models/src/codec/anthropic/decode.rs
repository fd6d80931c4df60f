//! Answers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use session_tree::{Json, Object};

use crate::{
    EndReason, Failure, FailureKind, StreamEvent, Usage,
    codec::{
        decoder::{Sink, count, has_only, object},
        draft::{InputForm, Slot, call_block, opaque_block, text_block, thinking_block},
    },
};

/// pi's text for thinking that is not shown.
const REDACTED: &str = "[Reasoning redacted]";

/// The state of a streaming answer.
#[derive(Debug, Default)]
pub(crate) struct AnthropicAnswer {
    /// Incomplete blocks, by index.
    open: BTreeMap<u64, OpenBlock>,
    usage: Usage,
    /// All tokens written to a cache; the vendor does not always report for how long.
    written: u64,
    reason: Option<String>,
    explanation: Option<String>,
}

#[derive(Debug)]
struct OpenBlock {
    slot: usize,
    /// The block at its start.
    start: Object,
    /// The start of the block as received.
    raw: String,
    text: String,
    signature: String,
    citations: Vec<Json>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    #[serde(borrow)]
    content_block: &'a RawValue,
}

impl AnthropicAnswer {
    pub(crate) fn event(&mut self, name: &str, data: &Object, text: &str, sink: &mut Sink<'_>) {
        match data.text("type").unwrap_or(name) {
            "message_start" => {
                let message = object(data, "message");
                sink.began(message.and_then(|m| m.text("model")), message.and_then(|m| m.text("id")));
                self.count(message.and_then(|message| object(message, "usage")), sink);
            }
            "content_block_start" => self.start(data, text, sink),
            "content_block_delta" => self.delta(data, sink),
            "content_block_stop" => {
                if let Some(block) = count(data, "index").and_then(|index| self.open.remove(&index)) {
                    stop(block, sink);
                }
            }
            "message_delta" => {
                if let Some(delta) = object(data, "delta") {
                    self.reason = delta.text("stop_reason").map(str::to_owned).or(self.reason.take());
                    let details = object(delta, "stop_details");
                    self.explanation = details.and_then(|details| details.text("explanation")).map(str::to_owned);
                }
                self.count(object(data, "usage"), sink);
            }
            "message_stop" => match self.end() {
                Ok(reason) => sink.end(reason),
                Err(failure) => sink.push(StreamEvent::Failed(failure)),
            },
            "error" => sink.push(StreamEvent::Failed(Failure::of_stream(data, text))),
            // `ping`, and event types added later.
            _ => {}
        }
    }

    fn start(&mut self, data: &Object, text: &str, sink: &mut Sink<'_>) {
        let (Some(index), Some(start)) = (count(data, "index"), object(data, "content_block")) else { return };
        let raw = serde_json::from_str::<BlockStart<'_>>(text)
            .map_or_else(|_| start.to_text(), |s| s.content_block.get().to_owned());
        let first = |key: &str| start.text(key).unwrap_or_default().to_owned();
        let (slot, text) = match start.text("type") {
            Some("text") => (Slot::Text(first("text")), first("text")),
            Some("thinking") => (Slot::Thinking(first("thinking")), first("thinking")),
            Some("tool_use") => {
                let id = sink.draft.unique_id(&first("id"));
                (Slot::Call { id, name: first("name"), input: String::new() }, String::new())
            }
            Some(_) | None => (Slot::Hidden, String::new()),
        };
        let at = sink.draft.open(slot.clone());
        match slot {
            Slot::Call { id, name, .. } => sink.push(StreamEvent::ToolOpened { block: at, id, name }),
            Slot::Text(text) if !text.is_empty() => sink.push(StreamEvent::Text(text)),
            Slot::Thinking(text) if !text.is_empty() => sink.push(StreamEvent::Thinking(text)),
            Slot::Text(_) | Slot::Thinking(_) | Slot::Hidden | Slot::Done(_) | Slot::Held(_) => {}
        }
        let signature = first("signature");
        let block = OpenBlock { slot: at, start: start.clone(), raw, text, signature, citations: Vec::new() };
        self.open.insert(index, block);
    }

    fn delta(&mut self, data: &Object, sink: &mut Sink<'_>) {
        let Some(block) = count(data, "index").and_then(|index| self.open.get_mut(&index)) else { return };
        let Some(delta) = object(data, "delta") else { return };
        let more = |key: &str| delta.text(key).unwrap_or_default();
        match delta.text("type") {
            Some("text_delta") => {
                block.text.push_str(more("text"));
                sink.draft.extend(block.slot, more("text"));
                sink.push(StreamEvent::Text(more("text").to_owned()));
            }
            Some("thinking_delta") => {
                block.text.push_str(more("thinking"));
                sink.draft.extend(block.slot, more("thinking"));
                sink.push(StreamEvent::Thinking(more("thinking").to_owned()));
            }
            Some("input_json_delta") => {
                block.text.push_str(more("partial_json"));
                sink.draft.extend(block.slot, more("partial_json"));
                if block.start.text("type") == Some("tool_use") {
                    let text = more("partial_json").to_owned();
                    sink.push(StreamEvent::ToolInput { block: block.slot, text });
                }
            }
            Some("signature_delta") => block.signature.push_str(more("signature")),
            Some("citations_delta") => block.citations.extend(delta.get("citation").cloned()),
            Some(_) | None => {}
        }
    }

    /// Missing fields keep their earlier values: proxies omit counts already reported at the start.
    fn count(&mut self, usage: Option<&Object>, sink: &mut Sink<'_>) {
        let Some(told) = usage else { return };
        let usage = &mut self.usage;
        usage.input = count(told, "input_tokens").unwrap_or(usage.input);
        usage.output = count(told, "output_tokens").unwrap_or(usage.output);
        usage.read = count(told, "cache_read_input_tokens").unwrap_or(usage.read);
        self.written = count(told, "cache_creation_input_tokens").unwrap_or(self.written);
        if let Some(split) = object(told, "cache_creation") {
            usage.write_1h = count(split, "ephemeral_1h_input_tokens").unwrap_or(usage.write_1h);
        }
        usage.write_5m = self.written.saturating_sub(usage.write_1h);
        let details = object(told, "output_tokens_details");
        usage.reasoning = details.and_then(|details| count(details, "thinking_tokens")).or(usage.reasoning);
        sink.usage(*usage);
    }

    /// <https://platform.claude.com/docs/en/api/handling-stop-reasons>
    fn end(&self) -> Result<EndReason, Failure> {
        let reason = match self.reason.as_deref() {
            Some("end_turn" | "stop_sequence") => EndReason::Stop,
            Some("tool_use") => EndReason::ToolUse,
            Some("max_tokens" | "model_context_window_exceeded") => EndReason::Length,
            Some("refusal" | "sensitive") => {
                let said = self.explanation.clone().unwrap_or_default();
                return Err(Failure::new(FailureKind::Refused, said));
            }
            Some(other) => EndReason::Other(other.to_owned()),
            None => {
                let message = "the stream ended without a stop reason";
                return Err(Failure::new(FailureKind::Network, message));
            }
        };
        Ok(reason)
    }
}

fn stop(block: OpenBlock, sink: &mut Sink<'_>) {
    let OpenBlock { slot, start, raw, text, signature, citations } = block;
    let has_more = |known: &[&str]| !has_only(&start, known);
    match start.text("type") {
        Some("text") => {
            let raw = (!citations.is_empty() || has_more(&["type", "text"])).then(|| {
                let whole = start.clone().with("text", text.as_str());
                if citations.is_empty() { whole } else { whole.with("citations", citations) }.to_text()
            });
            sink.finish(slot, text_block(&text).with_some("raw", raw));
        }
        Some("thinking") => {
            let raw = has_more(&["type", "thinking", "signature"])
                .then(|| start.clone().with("thinking", text.as_str()).with("signature", signature.as_str()).to_text());
            let signature = Some(signature.as_str()).filter(|signature| !signature.is_empty());
            sink.finish(slot, thinking_block(&text, signature).with_some("raw", raw));
        }
        Some("redacted_thinking") => {
            let raw = has_more(&["type", "data"]).then_some(raw);
            let block = thinking_block(REDACTED, start.text("data")).with("redacted", true);
            sink.finish(slot, block.with_some("raw", raw));
        }
        Some("tool_use") => {
            // The input of a block without deltas is in its start.
            let given = object(&start, "input").filter(|input| !input.is_empty());
            let input = if text.is_empty() { given.map(Object::to_text).unwrap_or_default() } else { text };
            let Some(Slot::Call { id, name, .. }) = sink.draft.slot(slot).map(|slot| slot.clone()) else { return };
            let call = call_block(&id, &name, &input, InputForm::Value);
            let is_valid = call.get("malformed").is_none() && start.text("id") == Some(&id);
            let raw = (is_valid && has_more(&["type", "id", "name", "input"])).then(|| with_input(&start, &input));
            sink.finish(slot, call.with_some("raw", raw));
        }
        Some(_) | None => {
            let raw = if text.is_empty() { raw } else { with_input(&start, &text) };
            sink.finish(slot, opaque_block(&raw));
        }
    }
}

/// A block with the input assembled from its pieces.
fn with_input(start: &Object, input: &str) -> String {
    match Json::parse(input) {
        Ok(input) => start.clone().with("input", input).to_text(),
        Err(_) => start.to_text(),
    }
}
