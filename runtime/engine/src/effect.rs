//! What the machine wants done.

use serde::Serialize;
use session_tree::{FailureKind, NewEntry, Object};

use crate::{
    cache::{CachePrediction, MissCause},
    ids::{CallId, RequestNumber, Ticket},
    input::{AnswerUsage, CallDecision, CallFacts, ModelChoice, PauseReason, SessionMode, TurnOutcome},
};

/// Something to be done. An executor performs effects in their order, and those of a later step after those of an
/// earlier one.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Append an entry after the leaf; answer with `Appended` or `AppendFailed`.
    Append(Append),
    /// Encode a request from the entries as they are now ([`wire::outline`](crate::wire::outline)); answer with
    /// `Prepared`, or with `Streamed(Failed)`.
    Prepare(RequestPlan),
    /// Send what was prepared; report the answer by `Streamed`.
    Send(RequestNumber),
    /// Drop a request. Nothing of it need be reported; what is reported is ignored.
    Cancel(RequestNumber),
    /// Find out what a call would do; answer with `Inspected`. Must change nothing.
    Inspect(CallRun),
    /// Ask for permission; answer with `Decided`.
    Ask(Box<AskedPermission>),
    /// Nobody needs to answer any more.
    Withdraw(CallId),
    /// Run a tool; answer with `Returned`.
    Run(CallRun),
    /// Let a tool answer a call that changes nothing as things are; answer with `Returned`. Must change nothing: if it
    /// would change something by now, the result says so.
    RunWithoutEffect(CallRun),
    /// End a tool with all its processes. Nothing need be reported; what is reported is ignored.
    Kill(CallId),
    /// Answer with `Ticked` once the monotonic clock has this time. Takes the place of the one before.
    Sleep {
        /// Milliseconds, as in [`StepTime::mono_ms`](crate::StepTime::mono_ms).
        until_mono_ms: u64,
    },
    /// Tell whoever watches. No answer.
    Tell(RuntimeFrame),
}

/// An entry to append.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// For the answer.
    pub ticket: Ticket,
    /// The entry.
    pub entry: NewEntry,
    /// Whether it must be on the disk, not only on its way there, before it counts as appended: what follows it
    /// changes something.
    pub sync: bool,
}

/// A request to prepare.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestPlan {
    /// Its number.
    pub request: RequestNumber,
    /// The model.
    pub model: ModelChoice,
    /// Whether the cache entry at the end of the system prompt is to be kept for an hour.
    pub long_system_cache: bool,
}

/// A call to inspect or to run.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRun {
    /// The call.
    pub call: CallId,
    /// The id that the model gave it.
    pub model_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments; for a run, those that were allowed.
    pub arguments: Object,
}

/// A permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedPermission {
    /// The call.
    pub call: CallRun,
    /// What it would do.
    pub facts: CallFacts,
    /// The mode in which it was asked.
    pub mode: SessionMode,
}

/// What the machine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineActivity {
    /// Nothing: it waits for a prompt.
    Idle,
    /// A request was made, and nothing of the answer has come.
    Waiting,
    /// An answer is coming.
    Streaming,
    /// A call waits for a decision.
    Deciding,
    /// Tools are running.
    Running,
    /// A request failed and will be repeated.
    Retrying {
        /// When, on the monotonic clock.
        until_mono_ms: u64,
        /// The same, in milliseconds since 1970.
        until_wall_ms: i64,
    },
    /// The model looks for something again and again that has not come, so the next request waits.
    Slowed {
        /// Until when, on the monotonic clock.
        until_mono_ms: u64,
        /// The same, in milliseconds since 1970.
        until_wall_ms: i64,
        /// How often it has looked.
        times: usize,
    },
    /// The turn is paused.
    Paused(PauseReason),
}

/// What happened to a queued message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueOutcome {
    /// It waits.
    Queued,
    /// It is a message of the session.
    Landed {
        /// The entry.
        entry: String,
    },
    /// It was taken back.
    Withdrawn,
    /// It was not accepted.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Something for whoever watches. Everything that counts is also in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum RuntimeFrame {
    /// The machine does something else now.
    Activity(EngineActivity),
    /// A turn began.
    TurnStarted,
    /// A turn ended.
    TurnEnded {
        /// How.
        outcome: TurnOutcome,
        /// What to show a person.
        error: Option<String>,
    },
    /// More of a text.
    Text(String),
    /// More of a thought.
    Thinking(String),
    /// A call begins to be streamed.
    CallOpened {
        /// The tool.
        tool: String,
    },
    /// A content block of the answer is whole, in pi's form, as the message of the answer will have it. Those of an
    /// answer have their order.
    Block(Object),
    /// A call was decided.
    CallDecided {
        /// The call.
        call: CallId,
        /// How.
        decision: CallDecision,
    },
    /// A tool begins.
    CallStarted {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
    },
    /// A call has its result.
    CallEnded {
        /// The call.
        call: CallId,
        /// Whether it is an error.
        is_error: bool,
    },
    /// A request ended.
    RequestEnded {
        /// Its number.
        request: RequestNumber,
        /// What it used.
        usage: Option<AnswerUsage>,
        /// What was expected of the cache.
        predicted: CachePrediction,
        /// Why less was read than there was.
        cause: Option<MissCause>,
        /// Why it failed.
        failure: Option<FailureKind>,
        /// What to show a person of the failure.
        error: Option<String>,
    },
    /// The context has reached another share of what the model takes, of [`window::SHARES`](crate::window::SHARES).
    ContextFills {
        /// The tokens of the last request and its answer.
        tokens: u64,
        /// How many tokens the model takes.
        window: u64,
    },
    /// What happened to a message.
    Message {
        /// Its id.
        id: String,
        /// What.
        outcome: QueueOutcome,
    },
    /// Something was not done.
    Refused {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The file cannot be appended to. Nothing goes on until it can.
    DiskTrouble {
        /// What the system said, with the file; nothing when it is over.
        error: Option<String>,
    },
    /// Another program touched the file, so the session is over: it ran nothing since, and accepts nothing more.
    FileLost {
        /// What happened, with the file.
        error: String,
    },
}
