//! The part of an entry that stays in memory when its texts are only in the file.
//!
//! It suffices to find the entry's place in the tree and to know the structure of a message: its role, its calls,
//! whether it has a text. A non-blank text is replaced by [`RELEASED_TEXT`].

use crate::{
    entry::{Entry, EntryKind, LEAF_TYPE},
    json::{Json, Object},
};

/// Replaces a text that is only in the file.
const RELEASED_TEXT: &str = "[in the session's file]";
/// The fields of a message that stay in memory.
const OF_MESSAGE: [&str; 4] = ["role", "toolCallId", "toolName", "stopReason"];
/// The fields of a message's block that stay in memory.
const OF_BLOCK: [&str; 3] = ["type", "id", "name"];

impl Entry {
    /// Whether its texts are only in the file, so that [`fields`](Self::fields) is incomplete.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    /// Drops the texts. Entries that determine the tree or its context are not changed.
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
