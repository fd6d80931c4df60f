//! Queued prompts and their outcome.

use events::{PromptId, QueuedBy, QueuedPrompt, QueuedState, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queued prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Its id.
    #[schemars(with = "String")]
    pub id: PromptId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Its state.
    pub state: QueuedState,
    /// Who queued it.
    pub by: QueuedBy,
    /// The prompt.
    pub text: String,
    /// Whether secrets were removed from its text before it was stored, so that the stored text is not the text to
    /// type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The reason for its state, if it is not obvious.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When it was delivered or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl Prompt {
    /// The event that records the prompt's current state; the prompt's text is the text of the event.
    #[must_use]
    pub fn to_event(&self) -> QueuedPrompt {
        QueuedPrompt { prompt_id: self.id, state: self.state, by: self.by, why: self.why.clone() }
    }

    /// Whether the prompt can still be cancelled.
    #[must_use]
    pub const fn waits(&self) -> bool {
        match self.state {
            QueuedState::Queued => true,
            QueuedState::Delivering | QueuedState::Delivered | QueuedState::Unclear | QueuedState::Cancelled => false,
        }
    }
}
