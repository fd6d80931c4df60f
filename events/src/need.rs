//! What a session needs of a person, by its status and by its findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    finding::FindingKind,
    status::{Reason, State},
};

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

    /// The need of a session with an open finding of this kind.
    #[must_use]
    pub const fn of_finding(kind: FindingKind) -> Option<Self> {
        match kind {
            FindingKind::Approval | FindingKind::RiskyApproval | FindingKind::ApprovalBacklog => Some(Self::Approval),
            FindingKind::Question => Some(Self::Question),
            FindingKind::Auth
            | FindingKind::RateLimit
            | FindingKind::Quota
            | FindingKind::Network
            | FindingKind::Provider
            | FindingKind::MergeConflict
            | FindingKind::Crash => Some(Self::Failure),
            FindingKind::Stuck
            | FindingKind::Loop
            | FindingKind::RepeatedFailure
            | FindingKind::ContextFull
            | FindingKind::SharedFiles
            | FindingKind::OpenWork => Some(Self::Stuck),
            // A turn that is over counts until a person has looked at it.
            FindingKind::Completion => Some(Self::Prompt),
            // Each of the sessions has a need of its own.
            FindingKind::SharedQuota | FindingKind::SeveralBlocked | FindingKind::LongJob | FindingKind::Idle => None,
        }
    }
}
