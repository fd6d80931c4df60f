//! The state machine of the built-in agent: [`step`] applies one event and returns the effects to perform.
//!
//! Every event is an [`EngineInput`]; every action is an [`Effect`]. An executor performs the effects and reports their
//! outcomes. Three laws hold, each with a property test:
//!
//! 1. An effect with an external consequence is returned only after the entry that names it is in the session's file.
//! 2. The recorded state of a session is a fold over its entries ([`RecordedSession`]): reading any prefix of the file,
//!    even one cut inside a line, gives the state in which it was written.
//! 3. From every state, [`EngineInput::Abort`] leads to [`EngineActivity::Idle`] in the same step.
//!
//! The crate does no I/O, reads no clock, uses no randomness and names no provider. [`entries`] defines the entries
//! that are written, [`wire`] what a model is sent, and [`cache`] the analysis of cache use.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod answers;
mod budget;

pub mod cache;
mod calls;
pub mod compaction;
mod context;
mod effect;
pub mod entries;
mod guard;
mod ids;
mod input;
pub mod limits;
mod machine;
mod queue;
mod recorded;
mod retry;
mod state;
mod summarizing;
mod turn;
pub mod window;
pub mod wire;

pub use context::{InstructionFile, InstructionOrigin, SessionFacts};
pub use effect::{
    Append, AskedPermission, CallRun, CompactionReason, Effect, EngineActivity, QueueOutcome, RequestPlan,
    RequestPurpose, RuntimeFrame, SummaryForm, SummaryRequest,
};
pub use ids::{CallId, RequestNumber, Ticket};
pub use input::{
    AnswerEnd, AnswerEvent, AnswerFailure, AnswerUsage, CallClass, CallDecision, CallFacts, CallOutput, CallVerdict,
    EngineInput, MessageOrigin, ModeGrant, ModelChoice, PauseReason, QueueKind, SessionMode, SpendLimits, StepTime,
    TurnOutcome, UserMessage,
};
pub use machine::step;
pub use recorded::{InterruptedCall, RecordedSession};
pub use session_tree::FailureKind;
pub use state::{EngineSetup, EngineState, TurnSettings};

#[cfg(test)]
mod tests;
