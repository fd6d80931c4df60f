//! The interface of coder/agentapi for a run, with the names and formats its clients expect (version 0.12).
//!
//! `docs/http-api.md` lists the differences.

use events::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentApiState {
    /// It works.
    Running,
    /// It waits for input.
    Stable,
}

/// How the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiStatus {
    /// Whether it works.
    pub status: AgentApiState,
    /// The agent.
    pub agent_type: String,
    /// Always `pty`.
    pub transport: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentApiRole {
    /// What was asked of the agent.
    User,
    /// What the agent said.
    Agent,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiMessage {
    /// Its place in the conversation: later messages have larger ids.
    pub id: u64,
    /// Its text.
    pub content: String,
    /// Who said it.
    pub role: AgentApiRole,
    /// When.
    pub time: Timestamp,
}

/// The messages of the conversation, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiMessages {
    /// The messages; of a long conversation the last 1,000.
    pub messages: Vec<AgentApiMessage>,
}

/// What a message to the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentApiInputKind {
    /// A prompt: it is typed and submitted.
    User,
    /// Characters for the terminal, as they are.
    Raw,
}

/// A message to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentApiInput {
    /// The text.
    pub content: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: AgentApiInputKind,
}

/// A message that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentApiSent {
    /// Always true.
    pub ok: bool,
}
