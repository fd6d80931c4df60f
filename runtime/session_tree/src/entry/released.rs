//! What stays in memory of an entry whose texts are in the file.
//!
//! Enough to know its place in the tree, and what a message is made of: who said it, which calls it has, whether there
//! is a text. A text that is not blank is [`RELEASED_TEXT`] then.

use crate::{
    entry::{Entry, EntryKind, LEAF_TYPE},
    json::{Json, Object},
};

/// Stands for a text that is in the file only.
const RELEASED_TEXT: &str = "[in the session's file]";
/// What stays of a message.
const OF_MESSAGE: [&str; 4] = ["role", "toolCallId", "toolName", "stopReason"];
/// What stays of a block of a message.
const OF_BLOCK: [&str; 3] = ["type", "id", "name"];

impl Entry {
    /// Whether its texts are in the file only: [`fields`](Self::fields) are not all there are.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    /// Lets the texts go. Entries that say how the tree or its context is built keep them.
    pub(crate) fn release(&mut self) {
        let fields = match self.kind {
            EntryKind::Message if self.role() != Some("system") => {
                let Some(message) = self.message() else { return };
                picked(&self.fields, &["type"]).with("message", released_message(message))
            }
            EntryKind::Custom if self.fields.text("customType") != Some(LEAF_TYPE) => {
                picked(&self.fields, &["type", "customType"])
            }
            EntryKind::Message
            | EntryKind::Custom
            | EntryKind::ThinkingLevelChange
            | EntryKind::ModelChange
            | EntryKind::Compaction
            | EntryKind::BranchSummary
            | EntryKind::CustomMessage
            | EntryKind::Label
            | EntryKind::SessionInfo
            | EntryKind::SessionInit
            | EntryKind::TtsrInjection
            | EntryKind::ContextEdit
            | EntryKind::Usage
            | EntryKind::Unknown => return,
        };
        self.fields = fields;
        self.is_released = true;
    }
}

fn picked(object: &Object, keys: &[&str]) -> Object {
    keys.iter().fold(Object::new(), |picked, key| picked.with_some(key, object.get(key).cloned()))
}

fn released_message(message: &Object) -> Object {
    let content = match message.get("content") {
        Some(Json::Array(blocks)) => Some(Json::Array(blocks.iter().map(released_block).collect())),
        Some(Json::String(text)) => Some(Json::from(released_text(text))),
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) | None => None,
    };
    picked(message, &OF_MESSAGE).with_some("content", content)
}

fn released_block(block: &Json) -> Json {
    let Json::Object(block) = block else { return Json::Null };
    picked(block, &OF_BLOCK).with_some("text", block.text("text").map(released_text)).into()
}

fn released_text(text: &str) -> &'static str {
    if text.trim().is_empty() { "" } else { RELEASED_TEXT }
}
