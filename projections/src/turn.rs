//! Turns: the prompt, the work and the outcome of each.

use events::{Receipt, Timestamp, TurnId, TurnOutcome, TurnTrigger};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{TurnWork, Usage};

/// One turn of a session, open or over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its number within the session, from 1.
    pub number: u32,
    /// What opened it.
    pub trigger: TurnTrigger,
    /// The prompt, shortened.
    pub prompt: Option<String>,
    /// The agent's last text, shortened to its beginning and end.
    pub text: Option<String>,
    /// Messages of the model.
    pub messages: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Tool calls that failed.
    pub tool_errors: u32,
    /// Number of approvals requested.
    pub approvals: u32,
    /// Prompts typed while it ran.
    pub steering: u32,
    /// How it ended; absent while it is open.
    pub outcome: Option<TurnOutcome>,
    /// Start.
    pub started_at: Timestamp,
    /// End.
    pub completed_at: Option<Timestamp>,
    /// Tokens spent.
    pub usage: Usage,
    /// The failures, by kind.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub failures: std::collections::BTreeMap<crate::FailureKind, u32>,
    /// How often a test failed, files were edited, and the same test ran again; absent in turns that were recorded
    /// before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_fix_loops: Option<u32>,
    /// The work of the turn.
    #[serde(default, skip_serializing_if = "TurnWork::is_empty")]
    pub work: TurnWork,
    /// What its checks showed.
    #[serde(default, skip_serializing_if = "Receipt::is_empty")]
    pub receipt: Receipt,
}
