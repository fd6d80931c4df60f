//! The entries of ours in a session file: `custom` entries that pi keeps and shows to no model.
//!
//! Each type is the `data` of one, named by [`RuntimeEntry::TYPE`]; keys are in camelCase. Beside them stand pi's own
//! entries: the system prompt and the tools are a `system` message, the session context is a `custom_message`
//! of type [`CONTEXT_TYPE`], a remark of ours to the model one of type [`NOTE_TYPE`]. Messages of ours carry an object
//! `capture`: an answer `{request}`, a message of a user [`Sent`], a result [`ResultOrigin`].

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
/// Type of the `custom_message` by which the machine says something to the model.
pub const NOTE_TYPE: &str = "capture.note";
/// Key of the object of ours in messages.
pub const OWN_KEY: &str = "capture";

/// The data of a `custom` entry of ours.
pub trait RuntimeEntry: Serialize + DeserializeOwned {
    /// The entry's `customType`.
    const TYPE: &str;

    /// The entry to append.
    fn to_entry(&self) -> NewEntry {
        NewEntry::Custom { custom_type: Self::TYPE.to_owned(), data: Some(to_json(self)) }
    }

    /// Reads an entry; nothing when it is another one, or damaged.
    #[must_use]
    fn of(entry: &Entry) -> Option<Self> {
        let EntryBody::Custom(custom) = entry.body() else { return None };
        if custom.custom_type() != Some(Self::TYPE) {
            return None;
        }
        from_json(custom.data()?)
    }
}

/// What is written as JSON in the order of its keys.
pub(crate) fn to_json(value: &impl Serialize) -> Json {
    // What is serialized here are structs of ours: strings as keys, and numbers that are finite.
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
}

/// What the prefix of every request is. It follows the `system` message that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frozen {
    /// The version of the program that made it.
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
    /// What the call would do.
    #[serde(flatten)]
    pub facts: CallFacts,
    /// The mode.
    pub mode: SessionMode,
}

/// A decision.
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

/// A request: one entry before it is sent, one when it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum RequestRecord {
    /// The effect `Send` follows it.
    Sent(SentRequest),
    /// The answer ended or failed.
    Ended(EndedRequest),
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentRequest {
    /// The number.
    pub n: RequestNumber,
    /// How often it was tried before.
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
    /// What is expected of the cache.
    pub predicted: CachePrediction,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedRequest {
    /// The number.
    pub n: RequestNumber,
    /// Milliseconds to the first event; nothing when none came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<u64>,
    /// Milliseconds to the end.
    pub total_ms: u64,
    /// What it used; nothing when the provider did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<AnswerUsage>,
    /// Why less was read from the cache than there was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<MissCause>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
}

/// The end of a turn, which is a task of the time machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskEnded {
    /// How it ended.
    pub outcome: TurnOutcome,
    /// What to show a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took without pauses, in milliseconds.
    pub ms: u64,
}

/// Other limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSet {
    /// The limits.
    pub limits: SpendLimits,
    /// Who set them.
    pub by: String,
}

/// A message that waits, or is taken back. That it landed is said by the message: [`Sent`].
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
    /// It was taken back.
    Withdrawn {
        /// Its id.
        id: String,
    },
}

/// A pause, or its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    /// Why; nothing when the turn goes on.
    pub why: Option<PauseReason>,
}

/// The session was opened again, and what was found unfinished.
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

/// Another mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeSet {
    /// The mode.
    pub mode: SessionMode,
    /// Who granted it; nothing when a new process begins without grants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<ModeGrant>,
}

/// What a message of a user says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// Its id.
    pub id: String,
    /// Who sent it.
    #[serde(flatten)]
    pub origin: MessageOrigin,
}

/// What an answer says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOrigin {
    /// To which request.
    pub request: RequestNumber,
}

/// The `details` of a remark that says which background commands do not run any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoppedNote {
    /// Their ids.
    pub(crate) stopped: Vec<String>,
}

/// What a result says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultOrigin {
    /// Of which call.
    pub call: CallId,
    /// What makes two calls the same for the loop guard: a letter for the kind of the call, and two hashes in hexadecimal
    /// digits with a point between them; nothing when the turn ended before the call did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}
