//! Prompts that wait to be delivered to a session, and what became of them.

use events::{QueuedBy, QueuedPrompt, QueuedState, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prompt in a session's queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Names it.
    pub id: String,
    /// Whose.
    pub session_id: SessionId,
    /// How it stands.
    pub state: QueuedState,
    /// Who put it there.
    pub by: QueuedBy,
    /// The prompt.
    pub text: String,
    /// Secrets were taken out of its text before it was stored: what is stored is not what is to be typed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Why it stands so, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it was put there.
    pub queued_at: Timestamp,
    /// When it was delivered or taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl Prompt {
    /// The event that tells how it stands; its text is the event's.
    #[must_use]
    pub fn to_event(&self) -> QueuedPrompt {
        QueuedPrompt { prompt_id: self.id.clone(), state: self.state, by: self.by, why: self.why.clone() }
    }

    /// Whether it still may be taken back.
    #[must_use]
    pub const fn waits(&self) -> bool {
        match self.state {
            QueuedState::Queued => true,
            QueuedState::Delivering | QueuedState::Delivered | QueuedState::Unclear | QueuedState::Cancelled => false,
        }
    }
}
