//! The monitor's findings about sessions.

use events::{Finding, FindingKind, FindingState};
use projections::AttentionItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::{CommaList, Limit};

/// Which findings to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FindingsQuery {
    /// Only findings in this state; without it, those that are not resolved.
    pub state: Option<StateFilter>,
    /// Only findings of these kinds.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub kind: CommaList<FindingKind>,
    /// Only findings of this session. Any of its ids is accepted.
    pub session: Option<String>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Findings on a page (default 100, at most 1000).
    pub limit: Option<Limit>,
}

/// A state of findings, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateFilter {
    /// Open, and not acknowledged.
    Open,
    /// Open, and acknowledged by a person.
    Acknowledged,
    /// Resolved.
    Resolved,
    /// Every state.
    All,
}

impl StateFilter {
    /// The state to select; `None` selects all states.
    #[must_use]
    pub const fn state(self) -> Option<FindingState> {
        match self {
            Self::Open => Some(FindingState::Open),
            Self::Acknowledged => Some(FindingState::Acknowledged),
            Self::Resolved => Some(FindingState::Resolved),
            Self::All => None,
        }
    }
}

/// The active sessions that need a person, most urgent first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionList {
    /// The position of the log the list reflects.
    pub as_of: u64,
    /// The sessions and their needs.
    pub items: Vec<AttentionItem>,
}

/// A page of findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingPage {
    /// The position of the log the page reflects.
    #[serde(default)]
    pub as_of: u64,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Continues the list; `null` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}
