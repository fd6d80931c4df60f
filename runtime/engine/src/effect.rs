//! The effects the machine requests.

use serde::Serialize;
use session_tree::{FailureKind, NewEntry, Object};

use crate::{
    cache::{CachePrediction, MissCause},
    ids::{CallId, RequestNumber, Ticket},
    input::{AnswerUsage, CallDecision, CallFacts, ModelChoice, PauseReason, SessionMode, TurnOutcome},
};

/// An action for the executor, which performs effects in order, and those of a later step after those of an earlier
/// one.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Append an entry after the leaf; answer with `Appended` or `AppendFailed`.
    Append(Append),
    /// Encode a request from the current entries ([`wire::outline`](crate::wire::outline)); answer with `Prepared`, or
    /// with `Streamed(Failed)`.
    Prepare(RequestPlan),
    /// Send the prepared request; report the answer with `Streamed`.
    Send(RequestNumber),
    /// Drop a request. Reports are optional and ignored.
    Cancel(RequestNumber),
    /// Determine what a call would do; answer with `Inspected`. Must change nothing.
    Inspect(CallRun),
    /// Ask for permission; answer with `Decided`.
    Ask(Box<AskedPermission>),
    /// Withdraw the permission request.
    Withdraw(CallId),
    /// Run a tool; answer with `Returned`.
    Run(CallRun),
    /// Let a tool answer a call that was found to change nothing; answer with `Returned`. Must change nothing: if the
    /// call would now change something, the result says so.
    RunWithoutEffect(CallRun),
    /// Kill a tool with all its processes. Reports are optional and ignored.
    Kill(CallId),
    /// Answer with `Ticked` once the monotonic clock reaches this time. Replaces the previous `Sleep`.
    Sleep {
        /// Milliseconds, as in [`StepTime::mono_ms`](crate::StepTime::mono_ms).
        until_mono_ms: u64,
    },
    /// Notify the subscribers. No answer.
    Tell(RuntimeFrame),
}

/// An entry to append.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// Identifies the entry in the answer.
    pub ticket: Ticket,
    /// The entry.
    pub entry: NewEntry,
    /// Whether the entry must be synced to disk before it counts as appended, because the action that follows it
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
    /// Whether to cache the end of the system prompt for an hour.
    pub long_system_cache: bool,
    /// What it is for.
    pub purpose: RequestPurpose,
}

/// What a request is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RequestPurpose {
    /// The next answer of a turn.
    #[default]
    Turn,
    /// A summary of the conversation. `Prepared` brings the [cut](crate::compaction::cut).
    Compaction(SummaryRequest),
}

/// How a summary is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRequest {
    /// Where the model reads the conversation.
    pub form: SummaryForm,
    /// What the summary should contain, in the user's words.
    pub focus: Option<String>,
    /// Whether the model already answered with something else.
    pub again: bool,
    /// The approximate number of tokens at the end of the conversation that will be kept.
    pub kept_tokens: u64,
}

/// Where the model that writes a summary reads the conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SummaryForm {
    /// In the conversation itself, after which the order is sent: the provider has cached it.
    #[default]
    Live,
    /// In one text with shortened results, without tools: it is smaller, and nothing is cached.
    Flattened,
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
    /// Its arguments; for a run, the allowed ones.
    pub arguments: Object,
}

/// A permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedPermission {
    /// The call.
    pub call: CallRun,
    /// The effects the call would have.
    pub facts: CallFacts,
    /// The mode at the time of the request.
    pub mode: SessionMode,
}

/// The machine's current activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineActivity {
    /// Idle: waiting for a prompt.
    Idle,
    /// A request was sent, and no part of the answer has arrived.
    Waiting,
    /// An answer is arriving.
    Streaming,
    /// A call waits for a decision.
    Deciding,
    /// Tools are running.
    Running,
    /// The model writes the summary that will replace the beginning of the conversation.
    Compacting,
    /// A request failed and will be repeated.
    Retrying {
        /// The time of the retry, on the monotonic clock.
        until_mono_ms: u64,
        /// The time of the retry, in milliseconds since 1970.
        until_wall_ms: i64,
    },
    /// The model polls for something that has not happened, so the next request is delayed.
    Slowed {
        /// The end of the delay, on the monotonic clock.
        until_mono_ms: u64,
        /// The end of the delay, in milliseconds since 1970.
        until_wall_ms: i64,
        /// How often it has polled.
        times: usize,
    },
    /// The turn is paused.
    Paused(PauseReason),
}

/// Why the conversation is compacted. The names are pi's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// It was requested.
    Manual,
    /// The context is almost full.
    Threshold,
    /// The provider refused a request because the conversation no longer fits.
    Overflow,
}

impl CompactionReason {
    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Threshold => "threshold",
            Self::Overflow => "overflow",
        }
    }
}

/// What happened to a queued message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueOutcome {
    /// It waits.
    Queued,
    /// It became a message of the session.
    Landed {
        /// The entry.
        entry: String,
    },
    /// It was withdrawn.
    Withdrawn,
    /// It was not accepted.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A notification for the subscribers. Everything that matters is also in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum RuntimeFrame {
    /// The activity changed.
    Activity(EngineActivity),
    /// A turn began.
    TurnStarted,
    /// A turn ended.
    TurnEnded {
        /// The outcome.
        outcome: TurnOutcome,
        /// The error, as text for the user.
        error: Option<String>,
    },
    /// More of a text block.
    Text(String),
    /// More of a thinking block.
    Thinking(String),
    /// The beginning of a call was received.
    CallOpened {
        /// The tool.
        tool: String,
    },
    /// A content block of the answer is complete, in pi's form, as the message will contain it. The blocks of an answer
    /// arrive in order.
    Block(Object),
    /// A call was decided.
    CallDecided {
        /// The call.
        call: CallId,
        /// The decision.
        decision: CallDecision,
    },
    /// A tool starts.
    CallStarted {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
    },
    /// A call has a result.
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
        /// Its usage.
        usage: Option<AnswerUsage>,
        /// The predicted use of the cache.
        predicted: CachePrediction,
        /// Why fewer tokens were read than were available.
        cause: Option<MissCause>,
        /// Why it failed.
        failure: Option<FailureKind>,
        /// The failure, as text for the user.
        error: Option<String>,
    },
    /// The context has reached another share of the model's window ([`window::SHARES`](crate::window::SHARES)).
    ContextFills {
        /// The tokens of the last request and its answer.
        tokens: u64,
        /// The size of the model's window, in tokens.
        window: u64,
    },
    /// A summary is requested that will replace the beginning of the conversation.
    CompactionStarted {
        /// Why.
        reason: CompactionReason,
    },
    /// The beginning of the conversation was replaced by a summary.
    Compacted {
        /// Why.
        reason: CompactionReason,
        /// The estimated number of tokens in the context before.
        tokens_before: u64,
        /// The estimated number of tokens in the summary.
        summary_tokens: u64,
    },
    /// The conversation was not compacted. Nothing changed.
    CompactionFailed {
        /// Why it was begun.
        reason: CompactionReason,
        /// Why it failed.
        error: String,
    },
    /// Secrets in a message were replaced, so that neither the model nor the file has them. Sent by the executor.
    SecretsMasked {
        /// The message.
        id: String,
        /// Their number.
        secrets: usize,
    },
    /// What happened to a message.
    Message {
        /// Its id.
        id: String,
        /// The outcome.
        outcome: QueueOutcome,
    },
    /// A request was refused.
    Refused {
        /// The name of the request.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The file cannot be appended to. The machine waits until it can.
    DiskTrouble {
        /// The error of the system, with the file; `None` once appending works again.
        error: Option<String>,
    },
    /// Another program modified the file, so the session is over: it has run nothing since and accepts no more input.
    FileLost {
        /// The error, with the file.
        error: String,
    },
}
