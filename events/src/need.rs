//! The need of a session for action by the user. [`Reason::need`] derives it from its status, and
//! [`FindingKind::facts`](crate::FindingKind::facts) from its findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::{Reason, State};

/// What a session needs from a person, in the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A decision on a permission request; the agent cannot continue without it.
    Approval,
    /// An answer to a question; the agent cannot continue without it.
    Question,
    /// Help with a failure outside the work: sign-in, quota, network, the process.
    Failure,
    /// A check: the agent makes no progress, repeats itself, or edits a file that another session edits.
    Stuck,
    /// The next prompt: the turn is over.
    Prompt,
}

impl Need {
    /// All needs, in the order of urgency.
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
