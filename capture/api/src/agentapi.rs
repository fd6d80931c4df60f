//! The interface of coder/agentapi for a run, with the names and formats its clients expect (version 0.12).
//!
//! `docs/http-api.md` lists the differences.

use events::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the agent is working.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentApiState {
    /// The agent is working.
    Running,
    /// The agent waits for input.
    Stable,
}

/// The status of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiStatus {
    /// Whether the agent is working.
    pub status: AgentApiState,
    /// The agent.
    pub agent_type: String,
    /// Always `pty`.
    pub transport: String,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentApiRole {
    /// The author of a prompt.
    User,
    /// The agent.
    Agent,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiMessage {
    /// Its position in the conversation; later messages have larger ids.
    pub id: u64,
    /// Its text.
    pub content: String,
    /// Its author.
    pub role: AgentApiRole,
    /// When it was written.
    pub time: Timestamp,
}

/// The messages of the conversation, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiMessages {
    /// The messages; at most the last 1,000 of a conversation.
    pub messages: Vec<AgentApiMessage>,
}

/// The kind of a message to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentApiInputKind {
    /// A prompt: it is typed and submitted.
    User,
    /// Characters to type into the terminal unchanged.
    Raw,
}

/// A message to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentApiInput {
    /// The text.
    pub content: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: AgentApiInputKind,
}

/// A message that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiSent {
    /// Always true.
    pub ok: bool,
}
