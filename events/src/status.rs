//! The states of a session, and the reasons for them.

use crate::{finding::FindingKind, need::Need, provider::names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

names! {
    /// The status of a session.
    State {
        /// Working: model, tool, retry, compaction or sub-agents.
        Running = "running" / 1,
        /// Waiting for the user's input.
        Waiting = "waiting" / 2,
        /// A dialog asks for permission.
        WaitingApproval = "waiting_approval" / 3,
        /// No open turn, and no activity for a while.
        Idle = "idle" / 4,
        /// The process is gone.
        Exited = "exited" / 5,
        /// No evidence.
        Unknown = "unknown" / 6,
    }
}

names! {
    /// Why a session is in its state. Each reason belongs to the state named at the start of its description.
    Reason {
        /// running: the model was asked and has not answered yet.
        Thinking = "thinking" / 1,
        /// running: the model's answer is arriving.
        Streaming = "streaming" / 2,
        /// running: a tool was called and has not returned; waiting_approval: a command needs permission.
        Tool = "tool" / 3,
        /// running: the model call failed and is being tried again.
        Retrying = "retrying" / 4,
        /// running: the context is being compacted.
        Compacting = "compacting" / 5,
        /// running: sub-agents work while the main turn waits.
        Subagents = "subagents" / 6,
        /// waiting: no prompt has been given yet.
        NewSession = "new_session" / 10,
        /// waiting: the agent finished its turn.
        TurnComplete = "turn_complete" / 11,
        /// waiting: the agent asked a question.
        Question = "question" / 12,
        /// waiting: the user interrupted the turn.
        Interrupted = "interrupted" / 13,
        /// waiting: the user refused a permission, which ended the turn.
        Denied = "denied" / 14,
        /// waiting: the turn ended in an error.
        Error = "error" / 15,
        /// waiting: not signed in, or the key was refused.
        Auth = "auth" / 16,
        /// waiting: a quota or rate limit stopped the turn.
        Quota = "quota" / 17,
        /// waiting: the turn is over while a background command still runs.
        Background = "background" / 18,
        /// waiting_approval: an edit of files.
        Edit = "edit" / 31,
        /// waiting_approval: a plan.
        Plan = "plan" / 32,
        /// waiting_approval: a call of an MCP tool.
        Mcp = "mcp" / 33,
        /// waiting_approval: a fetch from the network.
        Fetch = "fetch" / 34,
        /// waiting_approval: trust in a folder, a hook or a key.
        Trust = "trust" / 35,
        /// idle: no open turn, and silence.
        Quiet = "quiet" / 40,
        /// exited: ended normally.
        Clean = "clean" / 50,
        /// exited: with an error.
        Failed = "failed" / 51,
        /// exited: killed by a signal, or without a clean end.
        Killed = "killed" / 52,
        /// unknown: there was never any evidence.
        NoEvidence = "no_evidence" / 60,
        /// unknown: the source of the last evidence no longer exists.
        Lost = "lost" / 61,
    }
}

impl State {
    /// Whether a session in this state, for this reason, cannot continue until the user answers.
    #[must_use]
    pub const fn awaits_answer(self, reason: Option<Reason>) -> bool {
        match self {
            Self::WaitingApproval => true,
            Self::Waiting | Self::Idle => matches!(reason, Some(Reason::Question)),
            Self::Running | Self::Exited | Self::Unknown => false,
        }
    }
}

/// Consequences of a reason. [`Reason::facts`] has the others.
impl Reason {
    /// The need of a session that is `waiting` for this reason.
    #[must_use]
    pub const fn need(self) -> Option<Need> {
        match self.facts().waiting {
            Some(waiting) => waiting.need,
            None => None,
        }
    }

    /// The finding about a session that is `waiting` for this reason, if the reason alone is sufficient.
    #[must_use]
    pub const fn finding(self) -> Option<FindingKind> {
        match self.facts().waiting {
            Some(waiting) => waiting.finding,
            None => None,
        }
    }

    /// Whether this reason for the end of a turn is more specific than another source's. Refusing a dialog interrupts
    /// the turn; hooks and screens report an interrupted turn as ended; and an error may concern sign-in or quota.
    #[must_use]
    pub fn is_more_specific_than(self, other: Self) -> bool {
        self.facts().waiting.is_some_and(|waiting| waiting.more_specific_than.contains(&other))
    }
}
