//! The closed set of things that can happen in a session, each with its data.
//!
//! Text for people (prompt, answer, command output, error message) is not part of the payload, but in the event's
//! `text`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

use self::claim::Signal;
use crate::{
    finding::{Finding, Notification, QueuedPrompt},
    provider::names,
};

names! {
    /// The kind of an event.
    Kind {
        /// See [`SessionStarted`].
        SessionStarted = "session.started" / 1,
        /// See [`SessionExited`].
        SessionExited = "session.exited" / 2,
        /// See [`TurnStarted`].
        TurnStarted = "turn.started" / 3,
        /// See [`TurnCompleted`].
        TurnCompleted = "turn.completed" / 4,
        /// See [`UserPrompt`].
        UserPrompt = "user.prompt" / 5,
        /// See [`AssistantDelta`].
        AssistantDelta = "assistant.delta" / 6,
        /// See [`AssistantMessage`].
        AssistantMessage = "assistant.message" / 7,
        /// See [`ToolCall`].
        ToolCall = "tool.call" / 8,
        /// See [`ToolResult`].
        ToolResult = "tool.result" / 9,
        /// See [`ApprovalRequested`].
        ApprovalRequested = "approval.requested" / 10,
        /// See [`ApprovalResolved`].
        ApprovalResolved = "approval.resolved" / 11,
        /// See [`StatusChanged`].
        StatusChanged = "status.changed" / 12,
        /// See [`ErrorReported`].
        Error = "error" / 13,
        /// See [`Heartbeat`].
        Heartbeat = "heartbeat" / 14,
        /// See [`QuestionAsked`].
        QuestionAsked = "question.asked" / 15,
        /// See [`QuestionAnswered`].
        QuestionAnswered = "question.answered" / 16,
        /// See [`UsageReported`].
        UsageReported = "usage.reported" / 17,
        /// See [`ContextCompacted`].
        ContextCompacted = "context.compacted" / 18,
        /// See [`SessionForked`].
        SessionForked = "session.forked" / 19,
        /// See [`Annotation`].
        Annotation = "annotation" / 20,
        /// See [`Signal`].
        Signal = "signal" / 21,
        /// See [`Unrecognized`].
        Unrecognized = "unrecognized" / 22,
        /// See [`Finding`].
        Finding = "finding" / 23,
        /// See [`Notification`].
        Notification = "notification" / 24,
        /// See [`QueuedPrompt`].
        QueuedPrompt = "prompt.queued" / 25,
    }
}

macro_rules! payload {
    ($($(#[$doc:meta])* $kind:ident($data:ty),)*) => {
        /// What happened, with its data.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(untagged)]
        pub enum Payload { $($(#[$doc])* $kind($data),)* }

        impl Payload {
            /// The kind of the event.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)* }
            }

            /// Parses the data of an event of this kind from JSON.
            ///
            /// # Errors
            /// If the JSON is not the data of that kind.
            pub fn from_json(kind: Kind, data: &str) -> Result<Self, serde_json::Error> {
                match kind { $(Kind::$kind => serde_json::from_str::<$data>(data).map(Self::$kind),)* }
            }

            pub(crate) fn data_schema(kind: Kind, generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                match kind { $(Kind::$kind => generator.subschema_for::<$data>(),)* }
            }
        }
        $(impl From<$data> for Payload { fn from(data: $data) -> Self { Self::$kind(data) } })*
    };
}

/// The largest payloads are boxed, so that the others need less space.
macro_rules! boxed {
    ($($data:ident),*) => {
        $(impl From<$data> for Payload { fn from(data: $data) -> Self { Box::new(data).into() } })*
    };
}

boxed!(ApprovalRequested, Finding);

payload! {
    /// `session.started`
    SessionStarted(SessionStarted),
    /// `session.exited`
    SessionExited(SessionExited),
    /// `turn.started`
    TurnStarted(TurnStarted),
    /// `turn.completed`
    TurnCompleted(TurnCompleted),
    /// `user.prompt`
    UserPrompt(UserPrompt),
    /// `assistant.delta`
    AssistantDelta(AssistantDelta),
    /// `assistant.message`
    AssistantMessage(AssistantMessage),
    /// `tool.call`
    ToolCall(ToolCall),
    /// `tool.result`
    ToolResult(ToolResult),
    /// `approval.requested`
    ApprovalRequested(Box<ApprovalRequested>),
    /// `approval.resolved`
    ApprovalResolved(ApprovalResolved),
    /// `status.changed`
    StatusChanged(StatusChanged),
    /// `error`
    Error(ErrorReported),
    /// `heartbeat`
    Heartbeat(Heartbeat),
    /// `question.asked`
    QuestionAsked(QuestionAsked),
    /// `question.answered`
    QuestionAnswered(QuestionAnswered),
    /// `usage.reported`
    UsageReported(UsageReported),
    /// `context.compacted`
    ContextCompacted(ContextCompacted),
    /// `session.forked`
    SessionForked(SessionForked),
    /// `annotation`
    Annotation(Annotation),
    /// `signal`
    Signal(Signal),
    /// `unrecognized`
    Unrecognized(Unrecognized),
    /// `finding`
    Finding(Box<Finding>),
    /// `notification`
    Notification(Notification),
    /// `prompt.queued`
    QueuedPrompt(QueuedPrompt),
}

macro_rules! by_default {
    ($name:ident :: $variant:ident) => {
        impl Default for $name {
            fn default() -> Self {
                Self::$variant
            }
        }
    };
}

macro_rules! data {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    };
}

// After the macros that they use.
mod approval;
mod approval_kind;
pub mod claim;
mod dialog;
mod session;
pub(crate) mod skip;
mod tool;
mod turn;

pub use approval::{
    ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState, AuditKind, DecidedBy, DecidedVia, Excerpt,
};
pub use session::{
    Annotation, CompactTrigger, ContextCompacted, SessionExited, SessionForked, SessionStarted, StartKind,
    StatusChanged, Topic,
};
pub use tool::{QuestionAnswered, QuestionAsked, ToolCall, ToolKind, ToolOutcome, ToolResult};
pub use turn::{
    AccountScope, AccountedModel, AssistantDelta, AssistantMessage, Block, PromptOrigin, QuotaReported, Stop,
    TurnCompleted, TurnOutcome, TurnStarted, TurnTrigger, UsageAccount, UsageReported, UserPrompt,
};

names! {
    /// The kind of an error.
    ErrorClass {
        /// Not signed in, or the key was refused.
        Auth = "auth" / 1,
        /// A rate limit was hit.
        RateLimit = "rate_limit" / 2,
        /// A quota is used up.
        Quota = "quota" / 3,
        /// The network, or a connection that broke.
        Network = "network" / 4,
        /// The model's provider failed.
        Provider = "provider" / 5,
        /// The context is too long.
        Context = "context" / 6,
        /// Anything else.
        Other = "other" / 7,
    }
}

by_default!(ErrorClass::Other);

data! {
    /// The agent reported an error. Its message is the event's text.
    ErrorReported {
        /// The kind.
        class: ErrorClass,
        /// The provider's code: `529`, `usage_limit_exceeded`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Whether the error ended the turn.
        #[serde(default, skip_serializing_if = "skip::is_false")]
        ends_turn: bool,
        /// Whether the agent retries by itself.
        #[serde(default, skip_serializing_if = "skip::is_false")]
        retrying: bool,
    }
}

data! {
    /// The session is alive; the event has no other meaning.
    Heartbeat {}
}

data! {
    /// A record that is unknown or damaged. Nothing is lost: `origin` states where its bytes are, and the event's text
    /// contains their readable part.
    Unrecognized {
        /// The record's own kind: `type` (`system/foo`), or `damaged`, `oversized`.
        raw_kind: String,
        /// What is wrong with the record, if it is damaged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issue: Option<String>,
        /// Its length, bytes.
        #[serde(default)]
        length: u64,
        /// Hash of its bytes (BLAKE3, hexadecimal), if they are not stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    }
}
