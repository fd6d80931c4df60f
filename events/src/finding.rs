//! Findings: things that a person should know about a session, derived from its events. Also the actions that followed:
//! sent messages, and prompts that wait for delivery.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{ApprovalId, EventId, FindingId, MessageId, PromptId, SessionId},
    level::{Confidence, Severity},
    provider::names,
    time::Timestamp,
};

names! {
    /// The kind of a finding.
    FindingKind {
        /// An approval is pending.
        Approval = "approval" / 1,
        /// A pending approval could do irreversible harm.
        RiskyApproval = "risky_approval" / 2,
        /// Several approvals are pending, or one for a long time.
        ApprovalBacklog = "approval_backlog" / 3,
        /// The agent asked a question.
        Question = "question" / 4,
        /// A turn is open without progress, or requests to the model keep failing.
        Stuck = "stuck" / 5,
        /// The agent repeats the same steps in a loop.
        Loop = "loop" / 6,
        /// The same test or command fails again and again.
        RepeatedFailure = "repeated_failure" / 7,
        /// The agent is not signed in, or its key was refused.
        Auth = "auth" / 8,
        /// A rate limit was hit.
        RateLimit = "rate_limit" / 9,
        /// A quota is used up.
        Quota = "quota" / 10,
        /// The network fails.
        Network = "network" / 11,
        /// A merge has conflicts.
        MergeConflict = "merge_conflict" / 12,
        /// The context is nearly full.
        ContextFull = "context_full" / 13,
        /// The agent's process died.
        Crash = "crash" / 14,
        /// The session ended with work open.
        OpenWork = "open_work" / 15,
        /// The turn is done and nothing is pending.
        Completion = "completion" / 16,
        /// A command that took long is done.
        LongJob = "long_job" / 17,
        /// The model's provider fails.
        Provider = "provider" / 18,
        /// The session is quiet, with nothing open.
        Idle = "idle" / 19,
        /// Two sessions edit the same file at the same time.
        SharedFiles = "shared_files" / 20,
        /// A quota stops several sessions of an agent.
        SharedQuota = "shared_quota" / 21,
        /// Several sessions wait for a person at the same time.
        SeveralBlocked = "several_blocked" / 22,
        /// A statement of the agent does not agree with its commands.
        Claim = "claim" / 23,
        /// The agent did what the user forbade.
        Boundary = "boundary" / 24,
    }
}

names! {
    /// The state of a finding.
    FindingState {
        /// Open.
        Open = "open" / 1,
        /// Open and acknowledged by a person.
        Acknowledged = "acknowledged" / 2,
        /// Resolved.
        Resolved = "resolved" / 3,
    }
}

/// Something that a person should know about a session. Also the data of an event `finding`, one for each change of it;
/// the newest has the current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Identifies the finding; derived from `session_id`, `key` and `first_at`.
    pub id: FindingId,
    /// The kind.
    pub kind: FindingKind,
    /// How severe it is.
    pub severity: Severity,
    /// Its state.
    pub state: FindingState,
    /// How certain it is: no more than its strongest evidence.
    #[serde(default = "high", skip_serializing_if = "is_high")]
    pub confidence: Confidence,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Identifies the cause. A session has at most one unresolved finding with a key.
    pub key: String,
    /// The finding in a few words: `cargo test failed 4 times`.
    pub what: String,
    /// The reason for the finding, in one sentence.
    pub why: String,
    /// The subject, if there is a single one: the tool and the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The approval it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// The events on which it is based, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EventId>,
    /// When it began.
    pub first_at: Timestamp,
    /// When it was last seen.
    pub last_at: Timestamp,
    /// How often it was seen.
    pub count: u32,
    /// When it is expected to end by itself, such as the reset of a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When a person acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<Timestamp>,
    /// When it was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
    /// Why it was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
}

const fn high() -> Confidence {
    Confidence::High
}

fn is_high(confidence: &Confidence) -> bool {
    *confidence == Confidence::High
}

impl Finding {
    /// The id of the finding that began at `first_at`.
    #[must_use]
    pub fn id_of(session: SessionId, key: &str, first_at: Timestamp) -> FindingId {
        let mut hash = blake3::Hasher::new();
        hash.update(&session.to_bytes());
        hash.update(key.as_bytes());
        hash.update(&first_at.as_millisecond().to_le_bytes());
        format!("f{}", &hash.finalize().to_hex()[..16]).into()
    }

    /// Whether the finding is not resolved.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match self.state {
            FindingState::Open | FindingState::Acknowledged => true,
            FindingState::Resolved => false,
        }
    }
}

names! {
    /// The outcome of a message.
    SendOutcome {
        /// The channel accepted it.
        Sent = "sent" / 1,
        /// All attempts failed.
        Failed = "failed" / 2,
        /// Not sent: the queue was full, or the user was present.
        Dropped = "dropped" / 3,
    }
}

/// The outcome of a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    /// Identifies the message; a combined message is about several findings.
    pub message_id: MessageId,
    /// The channel, as the configuration names it.
    pub channel: String,
    /// The findings of this session it is about.
    pub findings: Vec<FindingId>,
    /// Its outcome.
    pub outcome: SendOutcome,
    /// Why it was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of attempts.
    pub attempts: u32,
}

names! {
    /// The state of a queued prompt.
    QueuedState {
        /// Queued until the session waits for a prompt.
        Queued = "queued" / 1,
        /// It is being typed.
        Delivering = "delivering" / 2,
        /// The agent accepted it.
        Delivered = "delivered" / 3,
        /// It is not known whether the agent accepted it; it is not typed again.
        Unclear = "unclear" / 4,
        /// It was cancelled.
        Cancelled = "cancelled" / 5,
    }
}

names! {
    /// Who queued a prompt.
    QueuedBy {
        /// A person.
        Person = "person" / 1,
        /// A rule of the user, because of a finding.
        Monitor = "monitor" / 2,
    }
}

/// A change of a queued prompt. The prompt is the event's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedPrompt {
    /// Its id.
    #[schemars(with = "String")]
    pub prompt_id: PromptId,
    /// Its state.
    pub state: QueuedState,
    /// Who queued it.
    pub by: QueuedBy,
    /// The reason for its state, if it is not obvious.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_id_depends_on_its_key_and_time() {
        let session = SessionId::from_bytes([7; 16]);
        let at = Timestamp::from_millisecond(1_000);
        assert_eq!(Finding::id_of(session, "loop", at), Finding::id_of(session, "loop", at));
        assert_ne!(
            Finding::id_of(session, "loop", at),
            Finding::id_of(session, "loop", Timestamp::from_millisecond(2_000))
        );
        assert_ne!(Finding::id_of(session, "loop", at), Finding::id_of(session, "stuck", at));
    }
}
