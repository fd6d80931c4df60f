//! Claims: statements of a source about a session's state, apart from the conversation itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::dialog::{Choice, ChoiceAnswer, Dialog};
use super::{skip::is_zero, turn::TurnOutcome};
use crate::{
    level::Confidence,
    status::{Reason, State},
    time::Timestamp,
};

/// One claim of one source. The adapter that read it sets its strength and duration, so that reducers do not depend on
/// the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signal {
    /// What is claimed.
    #[serde(flatten)]
    pub claim: Claim,
    /// How far the source can be trusted for this claim.
    pub strength: Confidence,
    /// When the claim expires, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
    /// The source's own words, for `explain`: `waiting: permission prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The time from which the claim counts, if later than the event's own time. Something that is only likely at first
    /// then counts as true, unless another event comes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_from: Option<Timestamp>,
    /// Distinguishes claims of one source that hold at the same time, such as two requests made at once. A claim
    /// replaces the earlier claim with the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The dialog on the agent's screen that the claim is read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Box<Dialog>>,
}

impl Signal {
    /// A claim without a dialog that applies immediately, until it is replaced or withdrawn.
    #[must_use]
    pub const fn new(claim: Claim, strength: Confidence, words: Option<String>) -> Self {
        Self { claim, strength, valid_until: None, words, holds_from: None, key: None, dialog: None }
    }
}

/// The things a source can claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// The session is in this state. The claim holds until the same source makes another claim, the claim is overruled,
    /// or `valid_until` passes.
    State {
        /// The state.
        state: State,
        /// The reason, if the source reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
    /// The agent's main turn is over. Makes no claim about sub-agents or background commands.
    TurnEnded {
        /// How it ended.
        outcome: TurnOutcome,
        /// Number of sub-agents that are still working, according to the agent.
        #[serde(default, skip_serializing_if = "is_zero")]
        pending_subagents: u32,
    },
    /// This process runs the session.
    ProcessAlive {
        /// Process id.
        pid: u32,
        /// Start time in clock ticks since boot (`/proc/<pid>/stat`, field 22); distinguishes the process from a later
        /// one with the same pid.
        start_ticks: u64,
    },
    /// The process that ran the session is gone.
    ProcessGone {
        /// Process id.
        pid: u32,
        /// Whether the agent ended cleanly (removed its registry file, wrote its end).
        clean: bool,
    },
    /// The source withdraws its last claim without making another.
    Withdrawn,
}
