//! What the checks of turns showed, also those of sub-agents, held against what the agent said.

use events::{Receipt, SessionId};
use projections::Turn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;

/// How many turns of a session to check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckQuery {
    /// The number of finished turns, counted from the last one (default 1, at most 1000).
    pub last: Option<Limit>,
}

/// The last finished turns of a session, each with what its checks showed and what the agent said about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCheck {
    /// The position up to which events are included.
    pub as_of: u64,
    /// The turns, oldest first.
    pub turns: Vec<CheckedTurn>,
}

/// A finished turn and what its checks showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedTurn {
    /// The turn; `receipt` contains its checks and the agent's statements.
    #[serde(flatten)]
    pub turn: Turn,
    /// The checks in one line; absent if none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<String>,
    /// The turns of sub-agents that began during this turn and ran checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<CheckedSubagent>,
}

/// A turn of a sub-agent that ran checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedSubagent {
    /// The session of the sub-agent.
    pub session_id: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// The number of the turn within that session.
    pub turn: u32,
    /// The checks in one line.
    pub checks: String,
    /// What its checks showed.
    pub receipt: Receipt,
}
