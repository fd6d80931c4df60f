//! What an executor reports to the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use session_tree::{Entry, FailureKind, Json, MessageUsage, Object};

use crate::{
    cache::{CacheRules, RequestDigest},
    context::SessionFacts,
    ids::{CallId, RequestNumber, Ticket},
    state::TurnSettings,
};

/// When a step happens. The machine reads no clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepTime {
    /// Milliseconds since 1970: for entries, and for how long a provider keeps its cache.
    pub wall_ms: i64,
    /// Milliseconds of a clock that is never set back and goes on while the machine sleeps: for waits and time limits.
    pub mono_ms: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineInput {
    /// The session was opened. The first input of every life, also of a new session. `changed` has, for calls that
    /// [`EngineState::interrupted_calls`](crate::EngineState::interrupted_calls) lists, the files that changed since
    /// they were started, as far as that is known.
    Restored {
        /// Paths by call.
        changed: BTreeMap<CallId, Vec<String>>,
    },
    /// What the session context is made of, from now on.
    Facts(SessionFacts),
    /// A person or a program begins a turn. Refused while one is running.
    Prompt(UserMessage),
    /// A message for the running turn: at the next boundary between tools and requests, or after it. Without a
    /// running turn it begins one.
    Queue {
        /// When it is to land.
        kind: QueueKind,
        /// The message.
        message: UserMessage,
    },
    /// Takes a queued message back.
    Unqueue {
        /// Its id; nothing takes all back.
        id: Option<String>,
    },
    /// Ends the turn now, because the user wants it.
    Abort,
    /// Ends the turn now for another reason: the session or its process ends.
    Stop,
    /// Stops at the next boundary.
    Pause,
    /// Goes on after a pause, or with messages that were held back after an abort.
    Resume,
    /// Another model, from the next request on.
    SetModel(ModelChoice),
    /// Another mode. Refused unless a person granted it.
    SetMode {
        /// The mode.
        mode: SessionMode,
        /// Who granted it.
        grant: ModeGrant,
    },
    /// Other limits.
    SetLimits {
        /// The limits; they take the place of all before.
        limits: SpendLimits,
        /// Who set them.
        by: String,
    },
    /// Other limits of turns, from now on.
    SetTurns(TurnSettings),
    /// Another name of the session; an empty one takes it away.
    SetName(String),
    /// Asks for a compaction. Not implemented yet, and refused as that.
    Compact,
    /// Asks for files and conversation to go back by one task. Not implemented yet, and refused as that.
    Undo,
    /// Asks for an undone task to be done again. Not implemented yet, and refused as that.
    Redo,
    /// An entry is in the file.
    Appended {
        /// Of which effect.
        ticket: Ticket,
        /// The entry as it was written.
        entry: Box<Entry>,
    },
    /// An entry could not be written. Neither are the entries of later tickets: the executor must not try them.
    AppendFailed {
        /// Of which effect.
        ticket: Ticket,
        /// What the system said, with the file.
        error: String,
        /// Whether it may succeed later. If not, another program touched the file, and the session is over.
        may_pass: bool,
    },
    /// The body of a request was encoded.
    Prepared {
        /// Which request.
        request: RequestNumber,
        /// The digests of its blocks.
        digest: RequestDigest,
    },
    /// Something of an answer.
    Streamed {
        /// To which request.
        request: RequestNumber,
        /// What.
        event: AnswerEvent,
    },
    /// What a call would do, or why its arguments are refused.
    Inspected {
        /// Which call.
        call: CallId,
        /// The facts, or the error for the model.
        facts: Result<CallFacts, String>,
    },
    /// A permission request was decided.
    Decided {
        /// For which call.
        call: CallId,
        /// How.
        decision: CallDecision,
    },
    /// A tool ended.
    Returned {
        /// Of which call.
        call: CallId,
        /// With what.
        result: CallOutput,
    },
    /// The time that an [`Effect::Sleep`](crate::Effect::Sleep) named has come. An early one does nothing.
    Ticked,
}

/// A message for the model, from a person or a program.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// The id by which its outcome is told; unique in the session.
    pub id: String,
    /// A string, or an array of content blocks (`text`, `image`), as pi has them.
    pub content: Json,
    /// Who sent it.
    pub origin: MessageOrigin,
}

/// Who sent a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum MessageOrigin {
    /// A person, at a terminal, an editor or a browser.
    Person,
    /// The monitor, because of a finding. The model and the approver are told that it is not the user's word.
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

/// What calls are allowed without a question of their own. A person's grant for the life of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionMode {
    /// Reads only; every other call is denied.
    Plan,
    /// The policy and people decide.
    #[default]
    Ask,
    /// Edits in the workspace are allowed.
    AcceptEdits,
    /// Commands too. Needs a sandbox, and is refused without one.
    Auto,
}

impl SessionMode {
    /// The name, as it is written.
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

/// Who granted a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeGrant {
    /// The person, as the audit record names them.
    pub by: String,
    /// The row of the audit record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<u64>,
}

/// How much a session may spend. What is absent has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SpendLimits {
    /// Tokens in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Costs in billionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd: Option<u64>,
    /// Time in turns, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Tool calls that were started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
}

/// A model and what has to be known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's id.
    pub id: String,
    /// The name of the wire format, as messages of pi have it in `api`.
    pub api: String,
    /// The level of thinking, as pi names it (`off`, `low`, `high`).
    pub thinking: String,
    /// How many tokens of input it takes; nothing when that is not known.
    pub window: Option<u64>,
    /// How the provider caches.
    pub cache: CacheRules,
    /// Whether what an answer costs is known.
    pub is_priced: bool,
}

/// Something of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerEvent {
    /// The answer began.
    Began {
        /// The model that answers, as the provider names it.
        model: String,
    },
    /// More of a text.
    Text(String),
    /// More of a thought.
    Thinking(String),
    /// A call begins; its input follows.
    CallOpened {
        /// The tool.
        tool: String,
    },
    /// A whole content block as a message of pi has it: `text`, `thinking` or `toolCall` with their signatures, or
    /// any other, kept as it is. Calls whose input is not a JSON object have `arguments: {}` and the text in
    /// `malformed`.
    Block(Object),
    /// The usage so far; the last one counts.
    Usage(AnswerUsage),
    /// The answer is complete.
    Ended(AnswerEnd),
    /// The answer will not be completed.
    Failed(AnswerFailure),
}

/// Why a complete answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model has said everything.
    Stop,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The answer reached its maximum length.
    Length,
    /// The model or the provider refused to answer.
    Refused,
}

/// What a request used, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AnswerUsage {
    /// Input that was neither read from the cache nor written to it.
    pub input: u64,
    /// Input that was read from the cache.
    pub cache_read: u64,
    /// Input that was written to the cache for five minutes, or for as long as the provider decides.
    #[serde(rename = "cacheWrite5m")]
    pub cache_write_5m: u64,
    /// Input that was written to the cache for an hour.
    #[serde(rename = "cacheWrite1h")]
    pub cache_write_1h: u64,
    /// Output, thoughts included.
    pub output: u64,
    /// The thoughts in `output`.
    pub reasoning: u64,
    /// The price in billionths of a dollar; nothing when it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd: Option<u64>,
}

impl AnswerUsage {
    /// All input.
    #[must_use]
    pub const fn prompt_tokens(&self) -> u64 {
        self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h
    }

    /// As messages tell it.
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

    /// What is in the cache afterwards.
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
    /// Whether repeating the request can help, when the provider or its codec says so.
    pub should_retry: Option<bool>,
    /// What to show a person; without keys.
    pub message: String,
}

/// What a call would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CallFacts {
    /// What sort of call it is.
    pub kind: CallClass,
    /// The directory in which it would run.
    pub cwd: String,
    /// The files and directories it touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The address it would connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Texts of the call that only untrusted results contained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taint: Vec<String>,
}

/// Sorts of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallClass {
    /// Reads files of the workspace.
    Read,
    /// Reads files elsewhere.
    ReadOutside,
    /// Changes a file in a part.
    Edit,
    /// Writes a whole file.
    Write,
    /// Runs a command.
    Command,
    /// Fetches from the network.
    Fetch,
    /// Asks a person a question.
    Question,
    /// Concerns the session only: the list of things to do, its own background processes.
    Note,
    /// Anything else.
    #[default]
    Other,
}

impl CallClass {
    /// Whether several of them may run at once.
    #[must_use]
    pub const fn is_parallel(self) -> bool {
        match self {
            Self::Read | Self::ReadOutside => true,
            Self::Edit | Self::Write | Self::Command | Self::Fetch | Self::Question | Self::Note | Self::Other => false,
        }
    }

    /// Whether the call leaves everything as it is.
    #[must_use]
    pub const fn is_harmless(self) -> bool {
        match self {
            Self::Read | Self::ReadOutside | Self::Question | Self::Note => true,
            Self::Edit | Self::Write | Self::Command | Self::Fetch | Self::Other => false,
        }
    }
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallDecision {
    /// What was decided.
    pub verdict: CallVerdict,
    /// Who decided: `policy`, `mode`, a person.
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
    /// Arguments in the place of the model's.
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
    /// Nobody answered in time. It does not run, and the model is not told that it was refused.
    Unanswered,
    /// As things are it changes nothing: the tool only says why. Nobody need have been asked.
    NoEffect,
}

/// What a tool gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOutput {
    /// Content blocks (`text`, `image`) for the model. Shortened and redacted already: they are never changed later.
    pub content: Vec<Json>,
    /// Whether it is an error.
    pub is_error: bool,
    /// What the model does not get: `exit`, `ms`, `changed`, where the whole output is.
    pub details: Option<Object>,
}

/// Why a turn is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A person or the monitor wanted it.
    Requested,
    /// The same calls were repeated with the same results.
    Loop,
    /// The limit of tokens is reached.
    TokenLimit,
    /// The limit of costs is reached.
    CostLimit,
    /// There is a limit of costs, and the price of the model is unknown.
    PriceUnknown,
    /// The limit of time is reached.
    TimeLimit,
    /// The limit of tool calls is reached.
    CallLimit,
    /// The quota is used up until a time that the provider named. The turn goes on by itself then.
    Quota,
    /// The provider named a time until which it takes nothing, for another reason, such as an overload. The turn goes on
    /// by itself then.
    Unavailable,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model has said everything.
    Done,
    /// The last answer reached its maximum length.
    Length,
    /// The model said nothing, twice.
    Empty,
    /// The user ended it.
    Aborted,
    /// The session or the program ended while it was running.
    Interrupted,
    /// The request failed.
    Failed,
    /// The model or the provider refused to answer.
    Refused,
    /// The turn had its maximum number of answers.
    Rounds,
}
