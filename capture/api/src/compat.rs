//! Names and formats kept for older clients.

use events::{Event, EventId, Reason, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;

/// Which messages to return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesQuery {
    /// The session. Any of its ids is accepted.
    pub session: String,
    /// Messages in the answer (default 100, at most 1000).
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Only messages with a lower sequence than this, for the previous page.
    #[serde(default)]
    pub before: Option<u64>,
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
    /// Its whole text, or only the beginning if it is too large to be stored or the answer already contains 16 MiB of
    /// long texts.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
    /// The sequence of its event.
    pub sequence: u64,
}

/// The status of a session, in the words of older clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamStatus {
    /// The session.
    #[serde(rename = "sessionId")]
    pub session: SessionId,
    /// `running`, `waiting`, `idle` or `exited`.
    pub status: String,
    /// Whether the agent is at work.
    pub working: bool,
    /// The reason for the status.
    pub reason: Option<Reason>,
}

/// The status of all sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamStatuses {
    /// The active sessions.
    pub sessions: Vec<StreamStatus>,
}

/// A session and its last events.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionStream {
    /// The session and its status.
    #[serde(flatten)]
    pub status: StreamStatus,
    /// Its last events, at most 50, oldest first.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub events: Vec<Event>,
}
