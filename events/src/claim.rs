//! Claims: what a source says about a session's state, apart from the conversation itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApprovalKind, Confidence, Reason, State, Timestamp, TurnOutcome};

/// One claim of one source. The adapter that read it also says how strong it is and how long it
/// holds, so that no reducer needs to know the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signal {
    /// What is claimed.
    #[serde(flatten)]
    pub claim: Claim,
    /// How far the source can be trusted in this.
    pub strength: Confidence,
    /// When the claim expires, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
    /// The source's own words, for `explain`: `waiting: permission prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The moment from which the claim counts, when that is later than its own: what is likely at
    /// first becomes true unless another event comes before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_from: Option<Timestamp>,
    /// Distinguishes claims of one source that hold at the same time, such as two requests
    /// made at once. A claim replaces the one with the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The dialog on the agent's screen that the claim is read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Box<Dialog>>,
}

impl Signal {
    /// A claim that holds at once and until something ends it, without a dialog.
    #[must_use]
    pub const fn new(claim: Claim, strength: Confidence, words: Option<String>) -> Self {
        Self { claim, strength, valid_until: None, words, holds_from: None, key: None, dialog: None }
    }
}

/// A dialog an agent shows: what it asks, and how it can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Dialog {
    /// The kind of approval it asks for; absent for a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<ApprovalKind>,
    /// The question it asks: `Do you want to proceed?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The subject of the question: command, file or URL. Read from a screen, so it may be cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Its options, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// Tells this dialog from every other of its run: from one with other words, and from one with the
    /// same words that came before or after it. Who answers names the mark, so that what was decided for
    /// one dialog never reaches another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// An option of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Its text on the screen.
    pub label: String,
    /// The key that gives this answer at once: `1`, `y`, `esc`; absent when it can only be selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the cursor is on it, so that Enter gives it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub selected: bool,
    /// What it means for the approval that is asked for; absent where the rules do not say, as for a
    /// question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ChoiceAnswer>,
}

/// The answer that an option of a dialog gives to its approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Answer")]
pub enum ChoiceAnswer {
    /// Allows the request once.
    AllowOnce,
    /// Allows the request, and more: later, elsewhere, or of the same kind.
    AllowAlways,
    /// Denies the request.
    Deny,
    /// Another answer, or not known.
    Other,
}

/// The things a source can claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// The session is in this state. It holds until the same source says something else, it is
    /// overruled, or `valid_until` passes.
    State {
        /// The state.
        state: State,
        /// Why, when the source says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
    /// The agent's main turn is over. Says nothing about sub-agents or background commands.
    TurnEnded {
        /// How it ended.
        outcome: TurnOutcome,
        /// Sub-agents the agent knows to be still at work.
        #[serde(default, skip_serializing_if = "is_zero")]
        pending_subagents: u32,
    },
    /// This process runs the session.
    ProcessAlive {
        /// Process id.
        pid: u32,
        /// Start time in clock ticks since boot (`/proc/<pid>/stat`, field 22); tells a reused
        /// pid from the process that was meant.
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

fn is_zero(n: &u32) -> bool {
    *n == 0
}
