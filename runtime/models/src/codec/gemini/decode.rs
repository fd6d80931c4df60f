//! Answers.

use serde::Deserialize;
use serde_json::value::RawValue;
use session_tree::{Json, Object};

use crate::{
    EndReason, Failure, FailureKind, StreamEvent, Usage,
    codec::{
        decoder::{Sink, count, filled, has_only, object, objects},
        draft::{InputForm, Slot, call_block, opaque_block, text_block, thinking_block},
    },
};

/// Prefix of the ids generated for calls without one; they are not sent back.
pub(crate) const GENERATED_ID: &str = "gemini-call-";

/// The state of a streaming answer.
#[derive(Debug, Default)]
pub(crate) struct GeminiAnswer {
    began: bool,
    /// The open text or thinking block.
    open: Option<OpenText>,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Debug)]
struct OpenText {
    slot: usize,
    thought: bool,
    text: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
}

#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<CandidateContent<'a>>,
}

#[derive(Deserialize)]
struct CandidateContent<'a> {
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

impl GeminiAnswer {
    pub(crate) fn event(&mut self, data: &Object, text: &str, sink: &mut Sink<'_>) {
        if object(data, "error").is_some() {
            sink.push(StreamEvent::Failed(Failure::of_stream(data, text)));
            return;
        }
        if !std::mem::replace(&mut self.began, true) {
            sink.began(data.text("modelVersion"), data.text("responseId"));
        }
        if let Some(usage) = object(data, "usageMetadata") {
            sink.usage(usage_of(usage));
        }
        if let Some(reason) = object(data, "promptFeedback").and_then(|feedback| filled(feedback, "blockReason")) {
            sink.fail(FailureKind::Refused, format!("the prompt was blocked: {reason}"));
            return;
        }
        if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(text)
            && let Some(content) = chunk.candidates.into_iter().next().and_then(|candidate| candidate.content)
        {
            for raw in content.parts {
                if let Ok(Json::Object(part)) = Json::parse(raw.get()) {
                    self.part(&part, raw.get(), sink);
                }
            }
        }
        if let Some(candidate) = objects(data, "candidates").next()
            && let Some(reason) = filled(candidate, "finishReason")
        {
            self.reason = Some(reason.to_owned());
            self.message = filled(candidate, "finishMessage").map(str::to_owned);
        }
    }

    /// Handles the end of the stream, which is how Gemini signals that the answer is complete.
    pub(crate) fn finish(&mut self, sink: &mut Sink<'_>) {
        self.close(sink);
        let Some(reason) = self.reason.take() else { return };
        // python-genai, `types.FinishReason`.
        let reason = match reason.as_str() {
            "MAX_TOKENS" => EndReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" => {
                sink.fail(FailureKind::Refused, format!("the answer was stopped: {reason}"));
                return;
            }
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                let message = self.message.take().unwrap_or_else(|| format!("the model failed: {reason}"));
                let failure = Failure { should_retry: Some(true), ..Failure::new(FailureKind::Unknown, message) };
                sink.push(StreamEvent::Failed(failure));
                return;
            }
            _ if sink.draft.has_call() => EndReason::ToolUse,
            "STOP" => EndReason::Stop,
            _ => EndReason::Other(reason),
        };
        sink.end(reason);
    }

    fn part(&mut self, part: &Object, raw: &str, sink: &mut Sink<'_>) {
        let signature = filled(part, "thoughtSignature");
        if let Some(call) = object(part, "functionCall") {
            self.close(sink);
            let given = filled(call, "id");
            let id = given.map_or_else(|| sink.draft.made_up_id(GENERATED_ID), str::to_owned);
            let id = sink.draft.unique_id(&id);
            let name = call.text("name").unwrap_or_default();
            let input = call.get("args").map_or_else(|| "{}".to_owned(), Json::to_text);
            let slot = sink.draft.open(Slot::Hidden);
            sink.push(StreamEvent::ToolOpened { block: slot, id: id.clone(), name: name.to_owned() });
            sink.push(StreamEvent::ToolInput { block: slot, text: input.clone() });
            let known =
                has_only(part, &["functionCall", "thoughtSignature"]) && has_only(call, &["name", "args", "id"]);
            // Numbers such as `1.0` would be written differently.
            let exact = Json::parse(&input).ok().as_ref() == call.get("args") || call.get("args").is_none();
            let block = call_block(&id, name, &input, InputForm::Value).with_some("thoughtSignature", signature);
            let raw = ((!known || !exact) && given.is_none_or(|given| given == id)).then_some(raw);
            sink.finish(slot, block.with_some("raw", raw));
            return;
        }
        let thought = part.get("thought") == Some(&Json::Bool(true));
        let Some(text) = part.text("text").filter(|_| has_only(part, &["text", "thought", "thoughtSignature"])) else {
            self.close(sink);
            let slot = sink.draft.open(Slot::Hidden);
            sink.finish(slot, opaque_block(raw));
            return;
        };
        let told = |text: &str| {
            if thought { StreamEvent::Thinking(text.to_owned()) } else { StreamEvent::Text(text.to_owned()) }
        };
        if let Some(signature) = signature {
            // A part with a signature is returned unchanged; pieces without one are joined. Docs, thought signatures.
            self.close(sink);
            let block = if thought {
                thinking_block(text, Some(signature))
            } else {
                text_block(text).with("textSignature", signature)
            };
            let slot = sink.draft.open(Slot::Hidden);
            sink.finish(slot, block);
            if !text.is_empty() {
                sink.push(told(text));
            }
            return;
        }
        if text.is_empty() {
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.thought != thought) {
            self.close(sink);
        }
        let open = self.open.get_or_insert_with(|| {
            let slot = if thought { Slot::Thinking(String::new()) } else { Slot::Text(String::new()) };
            OpenText { slot: sink.draft.open(slot), thought, text: String::new() }
        });
        open.text.push_str(text);
        sink.draft.extend(open.slot, text);
        sink.push(told(text));
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        if let Some(open) = self.open.take() {
            let block = if open.thought { thinking_block(&open.text, None) } else { text_block(&open.text) };
            sink.finish(open.slot, block);
        }
    }
}

/// <https://ai.google.dev/api/generate-content#UsageMetadata>: the prompt includes cached tokens, the candidates
/// exclude thinking.
fn usage_of(usage: &Object) -> Usage {
    let number = |key: &str| count(usage, key).unwrap_or_default();
    let read = number("cachedContentTokenCount");
    Usage {
        input: (number("promptTokenCount") + number("toolUsePromptTokenCount")).saturating_sub(read),
        read,
        write_5m: 0,
        write_1h: 0,
        output: number("candidatesTokenCount") + number("thoughtsTokenCount"),
        reasoning: count(usage, "thoughtsTokenCount"),
    }
}
