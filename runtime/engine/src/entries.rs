//! The entries this program adds to a session file: `custom` entries, which pi preserves and sends to no model.
//!
//! Each type is the `data` of such an entry, named by [`RuntimeEntry::TYPE`]; keys are in camelCase. The file also
//! contains pi's own entries: the system prompt and the tools are a `system` message, the session context is a
//! `custom_message` of type [`CONTEXT_TYPE`], and a note to the model is one of type [`NOTE_TYPE`]. Messages written by
//! this program contain an object `capture`: an answer `{request}`, a user message [`Sent`], a result [`ResultOrigin`].

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use session_tree::{Entry, EntryBody, FailureKind, Json, NewEntry};

use crate::{
    cache::{CachePrediction, ChainPoint, MissCause},
    ids::{CallId, RequestNumber},
    input::{
        AnswerUsage, CallDecision, CallFacts, MessageOrigin, ModeGrant, PauseReason, QueueKind, SessionMode,
        SpendLimits, TurnOutcome,
    },
};

/// Type of the `custom_message` with date, working directory, model and instructions.
pub const CONTEXT_TYPE: &str = "capture.context";
/// Type of the `custom_message` with a note from the machine to the model.
pub const NOTE_TYPE: &str = "capture.note";
/// Key of this program's object in messages.
pub const OWN_KEY: &str = "capture";

/// The data of a `custom` entry of this program.
pub trait RuntimeEntry: Serialize + DeserializeOwned {
    /// The entry's `customType`.
    const TYPE: &str;

    /// The entry to append.
    fn to_entry(&self) -> NewEntry {
        NewEntry::Custom { custom_type: Self::TYPE.to_owned(), data: Some(to_json(self)) }
    }

    /// Parses an entry; `None` if it has another type or is damaged.
    #[must_use]
    fn of(entry: &Entry) -> Option<Self> {
        let EntryBody::Custom(custom) = entry.body() else { return None };
        if custom.custom_type() != Some(Self::TYPE) {
            return None;
        }
        from_json(custom.data()?)
    }
}

/// Serializes a value to JSON, preserving the order of keys.
pub(crate) fn to_json(value: &impl Serialize) -> Json {
    // Only structs of this crate are serialized here: their keys are strings and their numbers are finite.
    serde_json::to_string(value).ok().and_then(|text| Json::parse(&text).ok()).unwrap_or(Json::Null)
}

pub(crate) fn from_json<T: DeserializeOwned>(json: &Json) -> Option<T> {
    serde_json::from_str(&json.to_text()).ok()
}

macro_rules! entries {
    ($($name:ident = $tag:literal,)*) => {
        $(impl RuntimeEntry for $name {
            const TYPE: &str = $tag;
        })*
    };
}

entries! {
    Frozen = "capture.frozen",
    Asked = "capture.asked",
    Decided = "capture.decided",
    Started = "capture.started",
    RequestRecord = "capture.request",
    TaskEnded = "capture.task",
    BudgetSet = "capture.budget",
    QueuedRecord = "capture.steer",
    PauseRecord = "capture.paused",
    Reopened = "capture.restored",
    ModeSet = "capture.mode",
    ProcessEnded = "session_exit",
}

/// The hashes of the prefix of every request. Follows the `system` message that contains the prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frozen {
    /// The version of the program that wrote it.
    pub version: String,
    /// BLAKE3 of the system prompt, in hexadecimal digits.
    pub system: String,
    /// BLAKE3 of the JSON text of the tools, in hexadecimal digits.
    pub tools: String,
}

/// A permission request. The effect `Ask` follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The call.
    pub call: CallId,
    /// The id that the model gave it.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// BLAKE3 of the arguments' JSON text, in hexadecimal digits.
    pub input: String,
    /// The effects the call would have.
    #[serde(flatten)]
    pub facts: CallFacts,
    /// The mode.
    pub mode: SessionMode,
}

/// A decision about a permission request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The call.
    pub call: CallId,
    /// The decision.
    #[serde(flatten)]
    pub decision: CallDecision,
}

/// A tool is about to run. The effect `Run` follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The call.
    pub call: CallId,
    /// Whether it changes nothing.
    pub harmless: bool,
}

/// A request: one entry before it is sent, another when it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum RequestRecord {
    /// The effect `Send` follows it.
    Sent(SentRequest),
    /// The answer ended or failed.
    Ended(EndedRequest),
}

/// A request that is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentRequest {
    /// The number.
    pub n: RequestNumber,
    /// Number of earlier attempts.
    pub retries: u32,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Size of the body's blocks, in bytes.
    pub bytes: u64,
    /// Number of blocks.
    pub blocks: usize,
    /// The blocks at whose ends the provider may read or write its cache.
    pub chain: Vec<ChainPoint>,
    /// The predicted use of the cache.
    pub predicted: CachePrediction,
    /// Whether it requests a summary for a compaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_summary: bool,
}

/// The end of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedRequest {
    /// The number.
    pub n: RequestNumber,
    /// Milliseconds until the first event; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<u64>,
    /// Milliseconds until the end.
    pub total_ms: u64,
    /// Its usage; `None` if the provider did not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<AnswerUsage>,
    /// Why fewer tokens were read from the cache than were available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<MissCause>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
}

/// The end of a turn; a turn is a task of the time machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskEnded {
    /// The outcome.
    pub outcome: TurnOutcome,
    /// The error, as text for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its duration without pauses, in milliseconds.
    pub ms: u64,
}

/// The process of the session ended. oh-my-pi's sessions have entries of the same type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnded {
    /// Its exit code.
    pub code: u8,
}

/// The limits were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSet {
    /// The limits.
    pub limits: SpendLimits,
    /// The user or program that set them.
    pub by: String,
}

/// A message that is queued or withdrawn. The message itself records that it landed: [`Sent`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum QueuedRecord {
    /// It waits.
    Queued {
        /// Its id.
        id: String,
        /// When it lands.
        kind: QueueKind,
        /// A string, or content blocks.
        content: Json,
        /// Who sent it.
        origin: MessageOrigin,
    },
    /// It was withdrawn.
    Withdrawn {
        /// Its id.
        id: String,
    },
}

/// A pause, or its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    /// The reason; `None` when the turn continues.
    pub why: Option<PauseReason>,
}

/// The session was reopened; lists the unfinished calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reopened {
    /// The version of the program.
    pub version: String,
    /// Calls that had not been started.
    pub not_run: Vec<CallId>,
    /// Calls that had been started.
    pub interrupted: Vec<CallId>,
}

/// The mode was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeSet {
    /// The mode.
    pub mode: SessionMode,
    /// The grant; `None` when a new process starts without grants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<ModeGrant>,
}

/// The `capture` object of a user message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// Its id.
    pub id: String,
    /// The sender.
    #[serde(flatten)]
    pub origin: MessageOrigin,
}

/// The `capture` object of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOrigin {
    /// The request it answers.
    pub request: RequestNumber,
}

/// The `details` of a note listing the background commands that no longer run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoppedNote {
    /// Their ids.
    pub(crate) stopped: Vec<String>,
}

/// The `capture` object of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultOrigin {
    /// The call.
    pub call: CallId,
    /// The identity of the call for the loop guard: a letter for its kind, and two hashes in hexadecimal digits,
    /// separated by a point; `None` if the turn ended before the call did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}
