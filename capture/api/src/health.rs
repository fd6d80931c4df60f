//! The health of the server and its sources.

use std::fmt;

use events::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Suffix of the name of an agent's hook source, after the agent's name.
pub const HOOKS: &str = "hooks";
/// Name of the source that reports the store.
pub const STORE: &str = "store";
/// Name of the source that reports the policy in force.
pub const POLICY: &str = "policy";
/// Name of the source that reports whether old sessions are removed automatically.
pub const RETENTION: &str = "retention";

/// All sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sources {
    /// The sources.
    pub sources: Vec<SourceHealth>,
}

/// Progress of reading the history. Both numbers grow until all files are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadingProgress {
    /// Bytes that have been read.
    pub done_bytes: u64,
    /// Bytes that were found.
    pub total_bytes: u64,
}

/// `120 of 1006 MB`.
impl fmt::Display for ReadingProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} MB", self.done_bytes / 1_000_000, self.total_bytes / 1_000_000)
    }
}

/// One source and how it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceHealth {
    /// Its name: `claude transcripts`, `hooks`.
    pub name: String,
    /// Whether it is being read.
    pub active: bool,
    /// How long the source has lagged behind its newest bytes or deliveries, ms; absent for sources that are not read
    /// in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<u64>,
    /// When its last event happened.
    pub last_event_at: Option<Timestamp>,
    /// Events that the source lost.
    pub dropped: u64,
    /// Records that were merged into the event of another record, such as the blocks of a message.
    pub coalesced: u64,
    /// Failures so far.
    pub errors: u64,
    /// Files it follows.
    pub files: u64,
    /// Progress of reading the history; absent once all of it has been read, and for sources without history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<ReadingProgress>,
    /// Details, in one line.
    pub detail: Option<String>,
    /// What needs attention, in one line; absent while all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl SourceHealth {
    /// An active source without details or problems.
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
            reading: None,
            detail: None,
            trouble: None,
        }
    }
}
