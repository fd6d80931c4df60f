//! Findings: what a person should know of a session, concluded from its events. And what was done
//! about them: messages that were sent, prompts that wait to be delivered.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApprovalId, EventId, FindingId, MessageId, PromptId, SessionId, Severity, Timestamp, provider::names};

names! {
    /// What sort of thing was found.
    FindingKind {
        /// An approval waits for somebody.
        Approval = "approval" / 1,
        /// An approval waits whose subject could do harm that cannot be undone.
        RiskyApproval = "risky_approval" / 2,
        /// Several approvals wait, or one has waited long.
        ApprovalBacklog = "approval_backlog" / 3,
        /// The agent asked a question.
        Question = "question" / 4,
        /// A turn is open and nothing goes on, or the same request is tried again without end.
        Stuck = "stuck" / 5,
        /// The agent goes round in a circle.
        Loop = "loop" / 6,
        /// The same test or command fails again and again.
        RepeatedFailure = "repeated_failure" / 7,
        /// The agent is not signed in, or its key was refused.
        Auth = "auth" / 8,
        /// Too many requests for now.
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
    }
}

names! {
    /// How a finding stands.
    FindingState {
        /// It is so.
        Open = "open" / 1,
        /// It is so, and somebody knows.
        Acknowledged = "acknowledged" / 2,
        /// It is so no more.
        Resolved = "resolved" / 3,
    }
}

/// Something a person should know of a session. Also the data of an event `finding`, one for each
/// change of it: the newest is how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Names it: made from `session_id`, `key` and `first_at`.
    pub id: FindingId,
    /// What sort.
    pub kind: FindingKind,
    /// How bad it is.
    pub severity: Severity,
    /// How it stands.
    pub state: FindingState,
    /// Whose.
    pub session_id: SessionId,
    /// One cause, one key: while a finding of the session with this key is not resolved, there is
    /// no other.
    pub key: String,
    /// What, in a few words: `cargo test failed 4 times`.
    pub what: String,
    /// Why we say so, in one sentence.
    pub why: String,
    /// What it is about, as far as one thing can be named: the tool and the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The approval it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// The events it was concluded from, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EventId>,
    /// When it began.
    pub first_at: Timestamp,
    /// When it was seen last.
    pub last_at: Timestamp,
    /// How often it was seen.
    pub count: u32,
    /// When it is expected to end by itself: the reset of a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When somebody said that they know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
    /// Why it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
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

    /// Whether it still is so.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match self.state {
            FindingState::Open | FindingState::Acknowledged => true,
            FindingState::Resolved => false,
        }
    }
}

names! {
    /// What became of a message.
    SendOutcome {
        /// The channel took it.
        Sent = "sent" / 1,
        /// The channel did not take it, and it is not tried any more.
        Failed = "failed" / 2,
        /// It was not sent: too many wait, or the user was there.
        Dropped = "dropped" / 3,
    }
}

/// A message to a person was sent, or was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    /// Names the message; one that is grouped tells of several findings.
    pub message_id: MessageId,
    /// The channel, as the configuration names it.
    pub channel: String,
    /// The findings of this session it tells of.
    pub findings: Vec<FindingId>,
    /// What became of it.
    pub outcome: SendOutcome,
    /// Why it was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
}

names! {
    /// How a prompt stands that waits to be delivered.
    QueuedState {
        /// It waits until the session waits for a prompt.
        Queued = "queued" / 1,
        /// It is being typed.
        Delivering = "delivering" / 2,
        /// The agent took it.
        Delivered = "delivered" / 3,
        /// Nobody can tell whether the agent took it; it is not typed again.
        Unclear = "unclear" / 4,
        /// Somebody took it back.
        Cancelled = "cancelled" / 5,
    }
}

names! {
    /// Who put a prompt in the queue.
    QueuedBy {
        /// A person.
        Person = "person" / 1,
        /// A rule of the user, because of a finding.
        Monitor = "monitor" / 2,
    }
}

/// A prompt that waits to be delivered to a session, or what became of it. Its text is the event's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedPrompt {
    /// Names it.
    #[schemars(with = "String")]
    pub prompt_id: PromptId,
    /// How it stands.
    pub state: QueuedState,
    /// Who put it there.
    pub by: QueuedBy,
    /// Why it stands so, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_has_one_id_and_another_time_another() {
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
