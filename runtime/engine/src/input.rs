//! The events an executor reports to the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use session_tree::{Entry, FailureKind, Json, MessageUsage, Object};

use crate::{
    cache::{CacheRules, RequestDigest},
    compaction::CompactionCut,
    context::SessionFacts,
    ids::{CallId, RequestNumber, Ticket},
    state::TurnSettings,
};

/// The time of a step. The machine reads no clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepTime {
    /// Milliseconds since 1970: for entries and for the provider's cache.
    pub wall_ms: i64,
    /// Milliseconds of a clock that is never set back and continues while the computer sleeps: for delays and time
    /// limits.
    pub mono_ms: u64,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineInput {
    /// The session was opened. The first input of every process, also for a new session. For calls listed by
    /// [`EngineState::interrupted_calls`](crate::EngineState::interrupted_calls), `changed` has the files that changed
    /// since they started, if known.
    Restored {
        /// Paths by call.
        changed: BTreeMap<CallId, Vec<String>>,
    },
    /// New facts for the session context.
    Facts(SessionFacts),
    /// A user or a program starts a turn. Refused while one is running.
    Prompt(UserMessage),
    /// A message for the running turn: sent at the next boundary between tools and requests, or after the turn. Without
    /// a running turn it starts one.
    Queue {
        /// When it lands.
        kind: QueueKind,
        /// The message.
        message: UserMessage,
    },
    /// Withdraws a queued message.
    Unqueue {
        /// Its id; `None` withdraws all.
        id: Option<String>,
    },
    /// Ends the turn now at the user's request.
    Abort,
    /// Ends the turn now because the session or its process ends.
    Stop,
    /// Pauses at the next boundary.
    Pause,
    /// Continues after a pause, or with messages that were held back after an abort.
    Resume,
    /// Changes the model, starting with the next request.
    SetModel(ModelChoice),
    /// Changes the mode. Refused unless a person granted it.
    SetMode {
        /// The mode.
        mode: SessionMode,
        /// Who granted it.
        grant: ModeGrant,
    },
    /// Changes the limits.
    SetLimits {
        /// The limits; they replace all earlier ones.
        limits: SpendLimits,
        /// The user or program that sets them.
        by: String,
    },
    /// Changes the limits of turns.
    SetTurns(TurnSettings),
    /// Changes the name of the session; an empty name removes it.
    SetName(String),
    /// Replaces the beginning of the conversation by a summary, at the next boundary between tools and requests.
    Compact {
        /// What the summary should contain, in the user's words.
        focus: Option<String>,
    },
    /// Reverts files and conversation by one task. Not implemented yet; refused.
    Undo,
    /// Repeats an undone task. Not implemented yet; refused.
    Redo,
    /// An entry is in the file.
    Appended {
        /// The ticket of its effect.
        ticket: Ticket,
        /// The entry as it was written.
        entry: Box<Entry>,
    },
    /// An entry could not be written. The executor must not try the entries of later tickets either.
    AppendFailed {
        /// The ticket of its effect.
        ticket: Ticket,
        /// The error of the system, with the file.
        error: String,
        /// Whether a retry may succeed. If not, another program modified the file, and the session is over.
        may_pass: bool,
    },
    /// The body of a request was encoded.
    Prepared {
        /// The request.
        request: RequestNumber,
        /// The digests of its blocks.
        digest: RequestDigest,
        /// For a summary, what the compaction will keep; `None` if there is nothing to compact.
        cut: Option<Box<CompactionCut>>,
    },
    /// An event of an answer.
    Streamed {
        /// The request it answers.
        request: RequestNumber,
        /// The event.
        event: AnswerEvent,
    },
    /// The effects of a call, or why its arguments are refused.
    Inspected {
        /// The call.
        call: CallId,
        /// The facts, or the error for the model.
        facts: Result<CallFacts, String>,
    },
    /// A permission request was decided.
    Decided {
        /// The call.
        call: CallId,
        /// The decision.
        decision: CallDecision,
    },
    /// A tool ended.
    Returned {
        /// The call.
        call: CallId,
        /// Its result.
        result: CallOutput,
    },
    /// The time of an [`Effect::Sleep`](crate::Effect::Sleep) has come. An early tick has no effect.
    Ticked,
}

/// A message for the model, from a person or a program.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// The id under which its outcome is reported; unique in the session.
    pub id: String,
    /// A string, or an array of content blocks (`text`, `image`) in pi's form.
    pub content: Json,
    /// The sender.
    pub origin: MessageOrigin,
}

/// The sender of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum MessageOrigin {
    /// A person at a terminal, an editor or a browser.
    Person,
    /// The monitor, because of a finding. The model and the approver learn that the message is not from the user.
    Monitor {
        /// The finding's id.
        finding: String,
    },
    /// Another program with the scope to control sessions.
    Program {
        /// Its name.
        name: String,
    },
}

/// When a queued message lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// At the next boundary between tools and requests.
    Steer,
    /// After the turn.
    FollowUp,
}

/// Which calls are allowed without asking. Granted by a person for the lifetime of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionMode {
    /// Reads only; every other call is denied.
    Plan,
    /// The policy and people decide.
    #[default]
    Ask,
    /// Like `Ask`, and edits in the workspace are allowed.
    AcceptEdits,
    /// Like `AcceptEdits`, and commands are allowed. Requires a sandbox; refused without one.
    Auto,
}

impl SessionMode {
    /// The name, as written in entries and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
        }
    }
}

/// The grant of a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeGrant {
    /// The person, as the audit record names them.
    pub by: String,
    /// The row of the audit record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<u64>,
}

/// The limits on what a session may spend. A missing limit is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SpendLimits {
    /// Input and output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost, in billionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd: Option<u64>,
    /// Duration of turns, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Number of tool calls started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
}

/// A model with its properties.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's id.
    pub id: String,
    /// The name of the wire format, as in the `api` of pi's messages.
    pub api: String,
    /// The level of thinking, as pi names it (`off`, `low`, `high`).
    pub thinking: String,
    /// The number of input tokens it accepts; `None` if unknown.
    pub window: Option<u64>,
    /// How the provider caches.
    pub cache: CacheRules,
    /// Whether the price of an answer is known.
    pub is_priced: bool,
}

/// An event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerEvent {
    /// The answer began.
    Began {
        /// The model that answers, as the provider names it.
        model: String,
    },
    /// More of a text block.
    Text(String),
    /// More of a thinking block.
    Thinking(String),
    /// A call begins; its input follows.
    CallOpened {
        /// The tool.
        tool: String,
    },
    /// A complete content block in the form of pi's messages: `text`, `thinking` or `toolCall` with signatures, or any
    /// other block, unchanged. Calls whose input is not a JSON object have `arguments: {}` and the text in `malformed`.
    Block(Object),
    /// The usage so far; the last report counts.
    Usage(AnswerUsage),
    /// The answer is complete.
    Ended(AnswerEnd),
    /// The answer will not be completed.
    Failed(AnswerFailure),
}

/// Why a complete answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model finished.
    Stop,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The answer reached its maximum length.
    Length,
    /// The model or the provider refused to answer.
    Refused,
}

/// The usage of a request, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AnswerUsage {
    /// Input neither read from the cache nor written to it.
    pub input: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache for five minutes, or for a time the provider chooses.
    #[serde(rename = "cacheWrite5m")]
    pub cache_write_5m: u64,
    /// Input written to the cache for an hour.
    #[serde(rename = "cacheWrite1h")]
    pub cache_write_1h: u64,
    /// Output, including thinking.
    pub output: u64,
    /// The thinking tokens in `output`.
    pub reasoning: u64,
    /// The price in billionths of a dollar; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd: Option<u64>,
}

impl AnswerUsage {
    /// All input.
    #[must_use]
    pub const fn prompt_tokens(&self) -> u64 {
        self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h
    }

    /// The usage in the form of messages.
    #[must_use]
    pub const fn of_message(&self) -> MessageUsage {
        MessageUsage {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write_5m + self.cache_write_1h,
            cache_write_1h: self.cache_write_1h,
            reasoning: if self.reasoning > 0 { Some(self.reasoning) } else { None },
            cost_nano_usd: self.cost_nano_usd,
        }
    }

    /// Number of tokens in the cache after the request.
    #[must_use]
    pub const fn cached_tokens(&self) -> u64 {
        self.cache_read + self.cache_write_5m + self.cache_write_1h
    }
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFailure {
    /// The kind.
    pub kind: FailureKind,
    /// How long the provider asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Whether a retry can help, if the provider or its codec says.
    pub should_retry: Option<bool>,
    /// The error as text for the user, without keys.
    pub message: String,
}

/// The effects a call would have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CallFacts {
    /// The class of the call.
    pub kind: CallClass,
    /// The directory in which it would run.
    pub cwd: String,
    /// The files and directories it touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The address it would connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Texts in the call that appeared only in untrusted results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taint: Vec<String>,
}

/// Classes of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallClass {
    /// Reads files of the workspace.
    Read,
    /// Reads files elsewhere.
    ReadOutside,
    /// Edits a part of a file.
    Edit,
    /// Writes a whole file.
    Write,
    /// Runs a command.
    Command,
    /// Fetches from the network.
    Fetch,
    /// Asks the user a question.
    Question,
    /// Concerns only the session: its to-do list, its background processes.
    Note,
    /// Anything else.
    #[default]
    Other,
}

impl CallClass {
    /// Whether calls of this class may run in parallel.
    #[must_use]
    pub const fn is_parallel(self) -> bool {
        match self {
            Self::Read | Self::ReadOutside => true,
            Self::Edit | Self::Write | Self::Command | Self::Fetch | Self::Question | Self::Note | Self::Other => false,
        }
    }

    /// Whether the call changes files itself, as opposed to by a command.
    #[must_use]
    pub const fn changes_files(self) -> bool {
        match self {
            Self::Edit | Self::Write => true,
            Self::Read
            | Self::ReadOutside
            | Self::Command
            | Self::Fetch
            | Self::Question
            | Self::Note
            | Self::Other => false,
        }
    }

    /// Whether the call changes nothing.
    #[must_use]
    pub const fn is_harmless(self) -> bool {
        match self {
            Self::Read | Self::ReadOutside | Self::Question | Self::Note => true,
            Self::Edit | Self::Write | Self::Command | Self::Fetch | Self::Other => false,
        }
    }
}

/// A decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallDecision {
    /// The verdict.
    pub verdict: CallVerdict,
    /// The source of the decision: `policy`, `mode`, or a person.
    pub by: String,
    /// The rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The row of the audit record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<u64>,
    /// The reason, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer to a question, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Arguments that replace the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Object>,
}

/// Verdicts about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallVerdict {
    /// It may run.
    Allow,
    /// It must not.
    Deny,
    /// The request was not answered in time. The call does not run, and the model is not told that it was refused.
    Unanswered,
    /// The call would change nothing at present: the tool only reports why. The user may not have been asked.
    NoEffect,
}

/// The result of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOutput {
    /// Content blocks (`text`, `image`) for the model, already shortened and redacted: they are never changed later.
    pub content: Vec<Json>,
    /// Whether it is an error.
    pub is_error: bool,
    /// Data that is not sent to the model: `exit`, `ms`, `changed`, the location of the full output.
    pub details: Option<Object>,
}

/// Why a turn is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A person or the monitor requested it.
    Requested,
    /// The same calls were repeated with the same results.
    Loop,
    /// The token limit is reached.
    TokenLimit,
    /// The cost limit is reached.
    CostLimit,
    /// There is a cost limit, and the price of the model is unknown.
    PriceUnknown,
    /// The time limit is reached.
    TimeLimit,
    /// The limit on tool calls is reached.
    CallLimit,
    /// The quota is exhausted until a time the provider named. The turn then resumes automatically.
    Quota,
    /// The provider named a time until which it accepts no requests, for another reason such as an overload. The turn
    /// then resumes automatically.
    Unavailable,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model finished.
    Done,
    /// The last answer reached its maximum length.
    Length,
    /// The model returned an empty answer twice.
    Empty,
    /// The user aborted it.
    Aborted,
    /// The session or the program ended while it was running.
    Interrupted,
    /// The request failed.
    Failed,
    /// The model or the provider refused to answer.
    Refused,
    /// The turn reached its maximum number of answers.
    Rounds,
}
