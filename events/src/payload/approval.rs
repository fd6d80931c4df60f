//! Payloads about permission requests and their outcome.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::approval_kind::ApprovalKind;
use super::{dialog::Dialog, skip::is_false};
use crate::{
    id::{ApprovalId, DeliveryId},
    payload::tool::ToolOutcome,
    provider::names,
    status::Reason,
};

impl ApprovalKind {
    /// The reason of a session that waits for this approval.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Command | Self::Read => Reason::Tool,
            Self::Edit | Self::Write => Reason::Edit,
            Self::Question => Reason::Question,
            Self::Plan => Reason::Plan,
            Self::Mcp => Reason::Mcp,
            Self::Fetch => Reason::Fetch,
            Self::Trust => Reason::Trust,
        }
    }

    /// Whether it is a request to change files, so that the same request never comes again with the same files.
    #[must_use]
    pub const fn changes_files(self) -> bool {
        match self {
            Self::Edit | Self::Write => true,
            Self::Command | Self::Read | Self::Question | Self::Plan | Self::Mcp | Self::Fetch | Self::Trust => false,
        }
    }
}

names! {
    /// The state of an approval.
    ApprovalState {
        /// Waiting for a decision.
        Pending = "pending" / 1,
        /// Allowed through capture.
        Allowed = "allowed" / 2,
        /// Denied through capture.
        Denied = "denied" / 3,
        /// Answered in the agent's own dialog, or by another program.
        AnsweredElsewhere = "answered_elsewhere" / 4,
        /// There was no answer in time, or it is no longer known whether the agent waits.
        Expired = "expired" / 5,
        /// A decision is no longer needed: the turn was interrupted, or the agent has ended.
        Withdrawn = "withdrawn" / 6,
    }
}

by_default!(ApprovalState::Pending);

impl ApprovalResolved {
    /// The new state of the approval; `None` if the event only reports how the call ended. A decision made through
    /// capture contains only whether it allows.
    #[must_use]
    pub const fn new_state(&self) -> Option<ApprovalState> {
        match (self.state, self.allowed) {
            (Some(state), _) => Some(state),
            (None, Some(true)) => Some(ApprovalState::Allowed),
            (None, Some(false)) => Some(ApprovalState::Denied),
            (None, None) => None,
        }
    }
}

names! {
    /// What a row of the audit record reports.
    AuditKind {
        /// The policy left the request to a person.
        Asked = "asked" / 1,
        /// capture is about to press the keys that answer the dialog.
        Attempted = "attempted" / 2,
        /// Keys were pressed, but the dialog is still open.
        Unclear = "unclear" / 3,
        /// The dialog was not answered, or it is unknown whether it was; the evidence has the reason.
        Refused = "refused" / 4,
        /// The request was allowed or denied through capture.
        Decided = "decided" / 5,
        /// A rule denied the call before the agent asked for permission.
        Forbidden = "forbidden" / 6,
        /// The agent received the answer.
        Delivered = "delivered" / 7,
        /// The agent stopped waiting before the answer arrived.
        Undelivered = "undelivered" / 8,
        /// The request was closed without a decision through capture.
        Closed = "closed" / 9,
        /// The requested call has ended.
        Outcome = "outcome" / 10,
        /// A person changed the mode of a session of our own agent.
        Granted = "granted" / 11,
        /// Rows were emptied, because their sessions were forgotten.
        Forgot = "forgot" / 12,
    }
}

names! {
    /// Who decided.
    DecidedBy {
        /// A rule of the user's policy.
        Policy = "policy" / 1,
        /// A person.
        Person = "person" / 2,
        /// A person, for all identical requests of a session.
        Grant = "grant" / 3,
    }
}

names! {
    /// How a decision reaches the agent.
    DecidedVia {
        /// The agent's hook waits for it.
        Hook = "hook" / 1,
        /// Keys typed into the terminal of a run.
        Keys = "keys" / 2,
        /// The process that drives the agent by its protocol waits for it.
        Protocol = "protocol" / 3,
    }
}

/// The stored parts of a request that is too long to be stored completely.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// Its beginning.
    pub beginning: String,
    /// Its end.
    pub end: String,
    /// The length of the whole, bytes.
    pub bytes: u64,
}

impl Excerpt {
    /// Cuts the middle out of a text, so that at most `kept` bytes remain.
    #[must_use]
    pub fn of(text: &str, kept: usize) -> Self {
        let beginning = &text[..text.floor_char_boundary(kept / 2)];
        let end = &text[text.ceil_char_boundary(text.len().saturating_sub(kept / 2)).max(beginning.len())..];
        Self { beginning: beginning.to_owned(), end: end.to_owned(), bytes: text.len() as u64 }
    }

    /// The kept text: the beginning and the end, on separate lines.
    #[must_use]
    pub fn joined(&self) -> String {
        format!("{}\n{}", self.beginning, self.end)
    }

    /// Number of kept bytes.
    #[must_use]
    pub const fn kept(&self) -> u64 {
        (self.beginning.len() + self.end.len()) as u64
    }
}

data! {
    /// The agent stopped to ask for permission. The content of the request is exact unless it was read from a screen.
    ApprovalRequested {
        /// capture's id of the approval.
        approval_id: ApprovalId,
        /// The kind of action that the agent asks for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<ApprovalKind>,
        /// The provider's id of the call, if it reports one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The provider's name for the tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The command, every byte of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// The files it concerns, as the agent names them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// The URL to be fetched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The tool's input, JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// Whether part of the request is unknown.
        #[serde(default, skip_serializing_if = "is_false")]
        cut: bool,
        /// Secrets were removed from the request before it was stored; the agent's original still contains them.
        #[serde(default, skip_serializing_if = "is_false")]
        masked: bool,
        /// The beginning and the end of the command, or of the input if there is no command, if they are too long to be
        /// in `command` and `input`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excerpt: Option<Box<Excerpt>>,
        /// The directory in which the call would run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// The agent's own name for the sandbox of the call, `none` without one; absent if the agent does not report
        /// it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<String>,
        /// The dialog it was read from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dialog: Option<Box<Dialog>>,
        /// The delivery of the hook that made the request and may wait for the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        delivery: Option<DeliveryId>,
        /// The BLAKE3 hash of the payload passed to the hook.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// The PATH of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        search_path: Option<String>,
        /// The key of the claim that was made with the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }
}

data! {
    /// An approval was closed. With an `outcome`: its call ended.
    ApprovalResolved {
        /// capture's id of the approval.
        approval_id: ApprovalId,
        /// Whether it was allowed; absent when not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed: Option<bool>,
        /// The new state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ApprovalState>,
        /// Who decided, if the decision was made through capture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<DecidedBy>,
        /// The name of the paired device on which a person decided; absent if it was not a paired device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
        /// How the decision reaches the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<DecidedVia>,
        /// The rule of the policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The reason, or the message to the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The command that runs instead of the requested one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rewrite: Option<String>,
        /// How the requested call ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<ToolOutcome>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_changes_the_approval_state_but_an_outcome_does_not() {
        let of = |state, allowed, outcome| {
            ApprovalResolved { state, allowed, outcome, ..ApprovalResolved::default() }.new_state()
        };
        assert_eq!(of(None, Some(true), None), Some(ApprovalState::Allowed));
        assert_eq!(of(None, Some(false), Some(ToolOutcome::Denied)), Some(ApprovalState::Denied));
        assert_eq!(of(Some(ApprovalState::Withdrawn), Some(false), None), Some(ApprovalState::Withdrawn));
        assert_eq!(of(None, None, Some(ToolOutcome::Ok)), None);
    }
}
