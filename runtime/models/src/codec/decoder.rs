//! Decodes the bytes of an answer to events.

use session_tree::{Json, Object};

use super::{anthropic, chat, draft::Draft, gemini, responses};
use crate::{
    Api, Failure, FailureKind, StreamEvent,
    sse::{SseEvent, SseReader},
};

/// Maximum size of an answer, in bytes.
const ANSWER_BYTES: usize = 64 << 20;

/// Decodes one answer. The result does not depend on how its bytes are split.
#[derive(Debug)]
pub struct Decoder {
    dialect: Dialect,
    sse: SseReader,
    draft: Draft,
    bytes: usize,
    ended: bool,
}

#[derive(Debug)]
enum Dialect {
    Anthropic(anthropic::decode::AnthropicAnswer),
    Responses(responses::decode::ResponsesAnswer),
    Chat(chat::decode::ChatAnswer),
    Gemini(gemini::decode::GeminiAnswer),
}

/// The output of a dialect.
pub(crate) struct Sink<'a> {
    pub(crate) draft: &'a mut Draft,
    pub(crate) out: &'a mut Vec<StreamEvent>,
}

impl Sink<'_> {
    pub(crate) fn push(&mut self, event: StreamEvent) {
        self.out.push(event);
    }

    pub(crate) fn fail(&mut self, kind: FailureKind, message: impl Into<String>) {
        self.out.push(StreamEvent::Failed(Failure::new(kind, message)));
    }

    /// Completes a block.
    pub(crate) fn finish(&mut self, at: usize, block: Object) {
        self.draft.finish(at, block);
        self.draft.release(self.out);
    }

    /// Completes the answer.
    pub(crate) fn end(&mut self, reason: crate::EndReason) {
        self.draft.release_all(self.out);
        self.out.push(StreamEvent::Ended(reason));
    }

    /// Reports the usage if it changed.
    pub(crate) fn usage(&mut self, usage: crate::Usage) {
        if self.draft.usage != usage {
            self.draft.usage = usage;
            self.out.push(StreamEvent::Usage(usage));
        }
    }

    pub(crate) fn began(&mut self, model: Option<&str>, id: Option<&str>) {
        let filled = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        self.draft.model = filled(model);
        self.draft.id = filled(id);
        self.out.push(StreamEvent::Began { model: self.draft.model.clone(), id: self.draft.id.clone() });
    }
}

impl Decoder {
    /// A decoder for one answer. `tag` must be unique in the session: ids generated for calls without one start with
    /// it.
    #[must_use]
    pub fn new(api: Api, tag: &str) -> Self {
        let dialect = match api {
            Api::Anthropic => Dialect::Anthropic(anthropic::decode::AnthropicAnswer::default()),
            Api::Responses => Dialect::Responses(responses::decode::ResponsesAnswer::default()),
            Api::Chat => Dialect::Chat(chat::decode::ChatAnswer::default()),
            Api::Gemini => Dialect::Gemini(gemini::decode::GeminiAnswer::default()),
        };
        Self { dialect, sse: SseReader::default(), draft: Draft::new(tag), bytes: 0, ended: false }
    }

    /// Decodes the next bytes. After the last event ([`StreamEvent::is_last`]) it returns nothing more.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.ended {
            return out;
        }
        let room = ANSWER_BYTES.saturating_sub(self.bytes);
        self.bytes += bytes.len();
        let mut events = Vec::new();
        let read = self.sse.read(&bytes[..bytes.len().min(room)], &mut events);
        for event in &events {
            self.event(event, &mut out);
            if self.is_over(&out) {
                return self.close(out);
            }
        }
        match read {
            Err(error) => out.push(StreamEvent::Failed(Failure::new(FailureKind::Unknown, error.to_string()))),
            Ok(()) if bytes.len() > room => {
                let message = format!("the answer is longer than {} MiB", ANSWER_BYTES >> 20);
                out.push(StreamEvent::Failed(Failure::new(FailureKind::Unknown, message)));
            }
            Ok(()) => {}
        }
        if self.is_over(&out) { self.close(out) } else { out }
    }

    /// Signals the end of the bytes.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.ended {
            return out;
        }
        let mut events = Vec::new();
        let read = self.sse.finish(&mut events);
        for event in events.iter().take_while(|_| read.is_ok()) {
            self.event(event, &mut out);
        }
        let mut sink = Sink { draft: &mut self.draft, out: &mut out };
        match &mut self.dialect {
            Dialect::Gemini(answer) if !sink.out.last().is_some_and(StreamEvent::is_last) => answer.finish(&mut sink),
            Dialect::Gemini(_) | Dialect::Anthropic(_) | Dialect::Responses(_) | Dialect::Chat(_) => {}
        }
        if !self.is_over(&out) {
            out.push(StreamEvent::Failed(Failure::new(
                FailureKind::Network,
                "the stream ended before the answer was complete",
            )));
        }
        self.close(out)
    }

    fn is_over(&self, out: &[StreamEvent]) -> bool {
        out.last().is_some_and(StreamEvent::is_last)
    }

    fn close(&mut self, mut out: Vec<StreamEvent>) -> Vec<StreamEvent> {
        self.ended = true;
        // An end with an incomplete call is a failure: the call cannot be made.
        if let Some(StreamEvent::Ended(_)) = out.last()
            && self.draft.has_open_call()
        {
            out.pop();
            let message = "the answer ended inside the input of a tool call";
            out.push(StreamEvent::Failed(Failure::new(FailureKind::Network, message)));
        }
        out
    }

    fn event(&mut self, event: &SseEvent, out: &mut Vec<StreamEvent>) {
        let mut sink = Sink { draft: &mut self.draft, out };
        if event.data.trim() == "[DONE]" {
            if let Dialect::Chat(answer) = &mut self.dialect {
                answer.done(&mut sink);
            }
            return;
        }
        let data = match Json::parse(&event.data) {
            Ok(Json::Object(data)) => data,
            Ok(_) | Err(_) => {
                sink.fail(FailureKind::Network, "an event of the stream is not a JSON object");
                return;
            }
        };
        match &mut self.dialect {
            Dialect::Anthropic(answer) => answer.event(&event.name, &data, &event.data, &mut sink),
            Dialect::Responses(answer) => answer.event(&data, &event.data, &mut sink),
            Dialect::Chat(answer) => answer.event(&data, &event.data, &mut sink),
            Dialect::Gemini(answer) => answer.event(&data, &event.data, &mut sink),
        }
    }
}

/// A token count.
pub(crate) fn count(of: &Object, key: &str) -> Option<u64> {
    match of.get(key)? {
        Json::Number(number) => number.as_u64(),
        Json::Null | Json::Bool(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

/// The object in a field of an object.
pub(crate) fn object<'a>(of: &'a Object, key: &str) -> Option<&'a Object> {
    of.get(key).and_then(Json::as_object)
}

/// The objects in an array field.
pub(crate) fn objects<'a>(of: &'a Object, key: &str) -> impl Iterator<Item = &'a Object> {
    of.get(key).and_then(Json::as_array).unwrap_or_default().iter().filter_map(Json::as_object)
}

/// A non-empty text in a field.
pub(crate) fn filled<'a>(of: &'a Object, key: &str) -> Option<&'a str> {
    of.text(key).filter(|text| !text.is_empty())
}

/// Whether all keys of an object, except those with value `null`, are in this list.
pub(crate) fn has_only(of: &Object, keys: &[&str]) -> bool {
    of.iter().all(|(key, value)| keys.contains(&key) || *value == Json::Null)
}
