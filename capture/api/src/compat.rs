//! Names and formats kept for older clients.

use events::{EventId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;

/// Whose messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesQuery {
    /// The session; any of its ids.
    pub session: String,
    /// Messages in the answer (default 100, at most 1000).
    #[serde(default)]
    pub limit: Option<Limit>,
}

/// The last prompts and answers of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    /// The session.
    #[serde(rename = "sessionId")]
    pub session: SessionId,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
}

/// A prompt or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its event.
    pub id: EventId,
    /// `user` or `assistant`.
    pub role: String,
    /// Its text, cut to what an event carries.
    pub text: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The sequence of its event.
    pub sequence: u64,
}
