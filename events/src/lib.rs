//! The vocabulary shared by all parts of capture: ids, time, events and their wire form.
//!
//! Owns the closed set of facts about a session ([`Payload`]), the identity of events ([`Identity`]), and the JSON form
//! that leaves the program ([`Event`]). The crate does no I/O, reads no clock, and does not depend on the format of a
//! provider. Start at [`event`].

pub mod cursor;
pub mod event;
pub mod fault;
pub mod finding;
mod finding_facts;
pub mod id;
mod level;
mod need;
pub mod payload;
pub mod provider;
mod reason_facts;
mod receipt;
pub mod schema;
pub mod status;
pub mod time;
mod typed_time;
pub mod visible;

pub use cursor::{Cursor, CursorSummary, FileKey};
pub use event::{Event, NewEvent, Origin, Repeat, TextRef, WireError};
pub use finding::{Finding, FindingKind, FindingState, Notification, QueuedBy, QueuedPrompt, QueuedState, SendOutcome};
pub use finding_facts::FindingFacts;
pub use id::{
    ApprovalId, DeliveryId, EventId, FindingId, Identity, MessageId, ParseIdError, PromptId, RunId, SessionId, TurnId,
};
pub use level::{Confidence, Severity};
pub use need::Need;
pub use payload::claim;
pub use payload::claim::{Choice, ChoiceAnswer, Claim, Dialog, Signal};
pub use payload::{
    AccountScope, AccountedModel, Annotation, ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState,
    AssistantDelta, AssistantMessage, AuditKind, Block, CompactTrigger, ContextCompacted, DecidedBy, DecidedVia,
    ErrorClass, ErrorReported, Excerpt, Heartbeat, Kind, Payload, PromptOrigin, QuestionAnswered, QuestionAsked,
    QuotaReported, SessionExited, SessionForked, SessionStarted, StartKind, StatusChanged, Stop, ToolCall, ToolKind,
    ToolOutcome, ToolResult, Topic, TurnCompleted, TurnOutcome, TurnStarted, TurnTrigger, Unrecognized, UsageAccount,
    UsageReported, UserPrompt,
};
pub use provider::{Provider, Source};
pub use reason_facts::{AtRest, ReasonFacts, ReasonUse};
pub use receipt::{Check, CheckClass, CheckVerdict, ClaimCheck, ClaimSubject, ClaimVerdict, Receipt, TestCounts};
pub use status::{Reason, State};
pub use time::Timestamp;
pub use typed_time::{TYPED_TIMES, TypedTime};
