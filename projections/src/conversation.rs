//! The state of the conversation itself: whether a turn is open, what it waits for, and how the last turn ended.
//! [`crate::status`] weighs claims of other sources against it.

use events::{ErrorClass, Reason, State, Timestamp, ToolKind, TurnOutcome};
use serde::{Deserialize, Serialize};

use crate::receipt::{LineKind, RunningCheck};

/// Maximum number of open calls remembered; the oldest is dropped for a new one.
const OPEN_CALLS: usize = 64;

/// The state of the conversation itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Conversation {
    /// The phase.
    pub phase: Phase,
    /// Calls without a result, oldest first.
    pub calls: Vec<OpenCall>,
    /// When the transcript last reported, with low confidence, that work continues. Some agents write a call only when
    /// it has returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubted_at: Option<Timestamp>,
    /// When the most recently returned call was made, and when it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_call: Option<(Timestamp, Timestamp)>,
    /// Whether a program runs the session, so that the user cannot type into it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
}

/// The phase of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Phase {
    /// There was no prompt yet.
    #[default]
    Silent,
    /// A turn is open.
    Open {
        /// The reason reported while no call is open.
        doing: Reason,
    },
    /// The last turn is over.
    Ended {
        /// The outcome of the turn.
        outcome: TurnOutcome,
        /// The class of the error, if the turn failed.
        class: Option<ErrorClass>,
        /// Number of sub-agents that were still running.
        pending_subagents: u32,
        /// Whether the end is certain.
        certain: bool,
    },
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The provider's id.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The kind of the tool.
    pub tool: ToolKind,
    /// One line about it, verbatim, for comparing it with others.
    pub title: Option<String>,
    /// One line about it, without secrets, for people.
    #[serde(default)]
    pub shown: Option<String>,
    /// The files of an edit that changes several files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The checks that a command runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<RunningCheck>,
    /// What its other programs may do.
    #[serde(default, skip_serializing_if = "LineKind::is_unknown")]
    pub(crate) line: LineKind,
    /// The running command from which the call reads on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<u64>,
    /// Whether the agent may ask the user before it runs the call.
    pub may_ask: bool,
    /// When it was called.
    pub at: Timestamp,
}

impl OpenCall {
    /// The files of an edit. The name of a single file was shortened, without its secrets.
    pub(crate) fn edited_files(&self) -> &[String] {
        if self.files.is_empty() { self.shown.as_slice() } else { &self.files }
    }
}

impl Conversation {
    /// Records a call.
    pub fn called(&mut self, call: OpenCall) {
        self.calls.retain(|c| c.call_id != call.call_id);
        if self.calls.len() == OPEN_CALLS {
            self.calls.remove(0);
        }
        self.calls.push(call);
    }

    /// Removes and returns the call that a result answers; `by` is when it returned.
    pub fn returned(&mut self, call_id: &str, by: Timestamp) -> Option<OpenCall> {
        let at = self.calls.iter().position(|c| c.call_id == call_id)?;
        let call = self.calls.remove(at);
        self.last_call = Some((call.at, by));
        Some(call)
    }

    /// Whether a permission request made at `asked_at` has been answered: the only call that was open then has
    /// returned.
    #[must_use]
    pub fn was_answered(&self, asked_at: Timestamp) -> bool {
        let spans = |(called, returned): (Timestamp, Timestamp)| called <= asked_at && asked_at <= returned;
        self.calls.is_empty() && self.last_call.is_some_and(spans)
    }

    /// Whether a turn is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    /// The call that a dialog is most likely about: the first that may ask for permission.
    #[must_use]
    pub fn likely_asker(&self) -> Option<&OpenCall> {
        self.calls
            .iter()
            .find(|c| c.may_ask)
            .or_else(|| self.calls.iter().find(|c| !matches!(c.tool, ToolKind::Read | ToolKind::Subagent)))
            .or_else(|| self.calls.first())
    }

    /// The state and reason that the conversation alone indicates.
    #[must_use]
    pub fn verdict(&self) -> (State, Option<Reason>) {
        match &self.phase {
            Phase::Silent => (State::Waiting, Some(Reason::NewSession)),
            Phase::Open { doing } => {
                if self.calls.iter().any(|c| c.tool == ToolKind::Question) {
                    (State::Waiting, Some(Reason::Question))
                } else if self.calls.is_empty() {
                    (State::Running, Some(*doing))
                } else if self.calls.iter().all(|c| c.tool == ToolKind::Subagent) {
                    (State::Running, Some(Reason::Subagents))
                } else {
                    (State::Running, Some(Reason::Tool))
                }
            }
            Phase::Ended { pending_subagents, .. } if *pending_subagents > 0 => {
                (State::Running, Some(Reason::Subagents))
            }
            Phase::Ended { outcome, class, .. } => (State::Waiting, Some(end_reason(*outcome, *class))),
        }
    }
}

/// The reason why a session waits after a turn with this outcome.
#[must_use]
pub fn end_reason(outcome: TurnOutcome, class: Option<ErrorClass>) -> Reason {
    match outcome {
        TurnOutcome::Interrupted | TurnOutcome::TakenBack => Reason::Interrupted,
        TurnOutcome::Denied => Reason::Denied,
        TurnOutcome::Failed => match class {
            Some(ErrorClass::Auth) => Reason::Auth,
            Some(ErrorClass::Quota | ErrorClass::RateLimit) => Reason::Quota,
            Some(ErrorClass::Network | ErrorClass::Provider | ErrorClass::Context | ErrorClass::Other) | None => {
                Reason::Error
            }
        },
        TurnOutcome::Completed | TurnOutcome::Exited | TurnOutcome::Superseded | TurnOutcome::TimedOut => {
            Reason::TurnComplete
        }
    }
}

/// The reason of a dialog about this tool.
#[must_use]
pub fn approval_reason(tool: ToolKind) -> Reason {
    match tool {
        ToolKind::Edit => Reason::Edit,
        ToolKind::Plan => Reason::Plan,
        ToolKind::Mcp => Reason::Mcp,
        ToolKind::Fetch => Reason::Fetch,
        ToolKind::Execute | ToolKind::Read | ToolKind::Question | ToolKind::Subagent | ToolKind::Other => Reason::Tool,
    }
}
