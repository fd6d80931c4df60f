//! The health of the server and its sources.

use events::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Prefix of a source's detail while history is read; the progress follows.
pub const READING: &str = "reading history:";
/// Name of the source of an agent's hooks, after the agent's name.
pub const HOOKS: &str = "hooks";
/// Name of the source that reports the store.
pub const STORE: &str = "store";
/// Name of the source that reports the policy in force.
pub const POLICY: &str = "policy";
/// Name of the source that reports whether old sessions are removed by themselves.
pub const RETENTION: &str = "retention";

/// All sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sources {
    /// The sources.
    pub sources: Vec<SourceHealth>,
}

/// One source and how it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceHealth {
    /// Which: `claude transcripts`, `hooks`.
    pub name: String,
    /// Whether it is being read.
    pub active: bool,
    /// How long it has been seen behind its newest bytes or deliveries, ms; absent where nothing is read in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<u64>,
    /// When its last event happened.
    pub last_event_at: Option<Timestamp>,
    /// Events that the source lost.
    pub dropped: u64,
    /// Records that were merged into the event of another one: the blocks of a message.
    pub coalesced: u64,
    /// Failures so far.
    pub errors: u64,
    /// Files it follows.
    pub files: u64,
    /// Details, in one line.
    pub detail: Option<String>,
    /// What needs attention, in one line; absent while all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl SourceHealth {
    /// A source that works and has nothing to say.
    #[must_use]
    pub const fn active(name: String) -> Self {
        Self {
            name,
            active: true,
            lag_ms: None,
            last_event_at: None,
            dropped: 0,
            coalesced: 0,
            errors: 0,
            files: 0,
            detail: None,
            trouble: None,
        }
    }
}
