//! The message assembled from an answer.

use session_tree::{Json, Object};

use crate::{StreamEvent, Usage};

/// The message so far: the blocks of a stored message, its usage and its ids.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The answering model, as reported in the answer.
    pub model: Option<String>,
    /// The vendor's id of the answer.
    pub id: Option<String>,
    /// Tokens.
    pub usage: Usage,
    slots: Vec<Slot>,
    /// Number of blocks reported as complete.
    told: usize,
    /// Prefix of the ids of calls without one from the vendor.
    tag: String,
}

/// A block, complete or not.
#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Text(String),
    Thinking(String),
    Call {
        id: String,
        name: String,
        input: String,
    },
    /// Shown only when complete.
    Hidden,
    Done(Object),
    /// Complete, except for data that may arrive at the end of the answer.
    Held(Object),
}

impl Draft {
    pub(crate) fn new(tag: &str) -> Self {
        Self { tag: tag.to_owned(), ..Self::default() }
    }

    pub(crate) fn open(&mut self, slot: Slot) -> usize {
        self.slots.push(slot);
        self.slots.len() - 1
    }

    pub(crate) fn slot(&mut self, at: usize) -> Option<&mut Slot> {
        self.slots.get_mut(at)
    }

    pub(crate) fn finish(&mut self, at: usize, block: Object) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot::Done(block);
        }
    }

    pub(crate) fn hold(&mut self, at: usize, block: Object) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot::Held(block);
        }
    }

    /// Reports the complete blocks, up to the first incomplete one.
    pub(crate) fn release(&mut self, out: &mut Vec<StreamEvent>) {
        while let Some(Slot::Done(block)) = self.slots.get(self.told) {
            out.push(StreamEvent::Block(block.clone()));
            self.told += 1;
        }
    }

    /// Reports the remaining blocks at the end of the answer.
    pub(crate) fn release_all(&mut self, out: &mut Vec<StreamEvent>) {
        for slot in self.slots.get_mut(self.told..).unwrap_or_default() {
            if let Slot::Held(block) = slot {
                *slot = Slot::Done(std::mem::take(block));
            }
        }
        while self.told < self.slots.len() {
            self.release(out);
            self.told += 1;
        }
    }

    /// Appends to a text, thinking or call.
    pub(crate) fn extend(&mut self, at: usize, more: &str) {
        match self.slots.get_mut(at) {
            Some(Slot::Text(text) | Slot::Thinking(text) | Slot::Call { input: text, .. }) => text.push_str(more),
            Some(Slot::Hidden | Slot::Done(_) | Slot::Held(_)) | None => {}
        }
    }

    /// An id that no other call of the answer has: vendors refuse duplicate ids.
    pub(crate) fn unique_id(&self, id: &str) -> String {
        // Responses ids contain a call and its item: the call counts.
        let call_of = |id: &str| id.split('|').next().unwrap_or_default().to_owned();
        let is_taken = |id: &str| {
            let id = call_of(id);
            self.slots.iter().any(|slot| match slot {
                Slot::Call { id: other, .. } => call_of(other) == id,
                Slot::Done(block) | Slot::Held(block) => block.text("id").is_some_and(|other| call_of(other) == id),
                Slot::Text(_) | Slot::Thinking(_) | Slot::Hidden => false,
            })
        };
        let (call, rest) = id.split_at(call_of(id).len());
        let mut candidates = (2..).map(|n| format!("{call}-{n}{rest}"));
        match is_taken(id) {
            false => id.to_owned(),
            true => candidates.find(|candidate| !is_taken(candidate)).unwrap_or_else(|| id.to_owned()),
        }
    }

    /// An id for a call without one from the vendor.
    pub(crate) fn made_up_id(&self, prefix: &str) -> String {
        format!("{prefix}{}-{}", self.tag, self.slots.len())
    }

    /// Whether a call is incomplete.
    pub(crate) fn has_open_call(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Slot::Call { .. }))
    }

    pub(crate) fn has_call(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Slot::Done(block) if block.text("type") == Some("toolCall")))
    }
}

pub(crate) fn text_block(text: &str) -> Object {
    Object::new().with("type", "text").with("text", text)
}

pub(crate) fn thinking_block(text: &str, signature: Option<&str>) -> Object {
    Object::new().with("type", "thinking").with("thinking", text).with_some("thinkingSignature", signature)
}

pub(crate) fn opaque_block(raw: &str) -> Object {
    Object::new().with("type", "opaque").with("raw", raw)
}

/// How the input of a call is returned to the vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputForm {
    /// As a string that must be identical.
    Text,
    /// As a value that must be equivalent.
    Value,
}

/// A call, including its input as text if its value would not reproduce it.
pub(crate) fn call_block(id: &str, name: &str, input: &str, form: InputForm) -> Object {
    let block = Object::new().with("type", "toolCall").with("id", id).with("name", name);
    let read = if input.trim().is_empty() { Ok(Json::Object(Object::new())) } else { Json::parse(input) };
    match read {
        Ok(value @ Json::Object(_)) => {
            let text = value.to_text();
            let same = match form {
                InputForm::Text => text == input,
                InputForm::Value => input.trim().is_empty() || Json::parse(&text).is_ok_and(|read| read == value),
            };
            block.with("arguments", value).with_some("argumentsText", (!same).then_some(input))
        }
        Ok(_) | Err(_) => block.with("arguments", Object::new()).with("malformed", input),
    }
}
