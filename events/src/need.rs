//! What a session needs of a person. What its status needs is decided by [`Reason::need`], what a finding needs by
//! [`FindingKind::facts`](crate::FindingKind::facts).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::{Reason, State};

/// What a session needs of a person. What is listed first is looked at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A decision on a permission request: the agent cannot go on.
    Approval,
    /// An answer to a question: the agent cannot go on.
    Question,
    /// Something outside of the work failed: sign-in, quota, network, the process.
    Failure,
    /// A look: the agent makes no progress, repeats itself, or edits what another one edits.
    Stuck,
    /// The next prompt: the turn is over.
    Prompt,
}

impl Need {
    /// All of them, in the order in which they are looked at.
    pub const ALL: [Self; 5] = [Self::Approval, Self::Question, Self::Failure, Self::Stuck, Self::Prompt];

    /// Its name on every interface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Question => "question",
            Self::Failure => "failure",
            Self::Stuck => "stuck",
            Self::Prompt => "prompt",
        }
    }

    /// The need of a session with this status.
    #[must_use]
    pub const fn of_status(state: State, reason: Option<Reason>) -> Option<Self> {
        match (state, reason) {
            (State::WaitingApproval, _) => Some(Self::Approval),
            (State::Waiting, Some(reason)) => reason.need(),
            (State::Running | State::Waiting | State::Idle | State::Exited | State::Unknown, _) => None,
        }
    }
}
