//! Builds the lines of events.

use engine::AnswerUsage;
use session_tree::{Json, Object};

/// An event without fields.
pub(super) fn event(name: &str) -> Object {
    Object::new().with("type", name)
}

/// An event with a message.
pub(super) fn message_event(name: &str, message: &Object) -> String {
    event(name).with("message", message.clone()).to_text()
}

/// An update of a streaming answer.
pub(super) struct MessageUpdate(Object);

/// `text_start`, `thinking_delta` and so on.
pub(super) fn update(kind: &str, phase: &str, index: u64) -> MessageUpdate {
    MessageUpdate(event(&format!("{kind}_{phase}")).with("contentIndex", index))
}

impl MessageUpdate {
    pub(super) fn with(self, key: &str, value: impl Into<Json>) -> Self {
        Self(self.0.with(key, value))
    }

    /// The usage is reported only with the complete message.
    pub(super) fn line(self) -> String {
        let update = event("message_update").with("usage", usage(AnswerUsage::default()));
        update.with("assistantMessageEvent", self.0).to_text()
    }
}

/// `usage` of a message.
pub(super) fn usage(usage: AnswerUsage) -> Object {
    // The cost is not known yet and reported as 0: every answer ends with the whole usage.
    AnswerUsage { cost_nano_usd: Some(0), ..usage }.of_message().to_object()
}
