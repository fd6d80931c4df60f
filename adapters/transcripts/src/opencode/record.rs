//! The rows of the event log, borrowed from the record's bytes. Only used fields are named.

pub(super) use agents::borrowed::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

/// One row.
#[derive(Debug, Deserialize)]
pub(super) struct LogRecord<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "aggregate_id")]
    pub(super) session: Text<'a>,
    /// The kind of the change and the version of its format: `message.updated.1`.
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    /// JSON in a string.
    #[serde(borrow)]
    pub(super) data: Text<'a>,
}

/// The data of a change.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Change<'a> {
    #[serde(borrow)]
    pub(super) info: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) part: Option<&'a RawValue>,
    pub(super) time: Option<i64>,
}

/// A session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionInfo<'a> {
    #[serde(borrow)]
    pub(super) directory: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) title: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) version: Option<Text<'a>>,
    #[serde(borrow, rename = "parentID")]
    pub(super) parent: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) agent: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<&'a RawValue>,
    pub(super) time: Times,
}

/// The model of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Model<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
}

/// A message, without its parts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageInfo<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow, rename = "modelID")]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) finish: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<MessageError<'a>>,
    /// `true` in a message that summarizes the previous ones; an object in a user's message.
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    pub(super) time: Times,
}

/// Why a message did not end normally.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageError<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) data: ErrorData<'a>,
}

/// The details of an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ErrorData<'a> {
    #[serde(borrow)]
    pub(super) message: Option<Text<'a>>,
    pub(super) status_code: Option<u16>,
}

/// Times, milliseconds since 1970.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Times {
    pub(super) created: Option<i64>,
    pub(super) completed: Option<i64>,
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, rename = "messageID")]
    pub(super) message: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    /// Inserted by the agent itself.
    pub(super) synthetic: bool,
    /// Not sent to the model.
    pub(super) ignored: bool,
    pub(super) time: Times,
    #[serde(borrow, rename = "callID")]
    pub(super) call: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tool: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) state: Option<ToolState<'a>>,
    pub(super) tokens: Option<Tokens>,
    /// US dollars; 0 for a model without a known price.
    pub(super) cost: Option<f64>,
    pub(super) auto: bool,
    #[serde(borrow)]
    pub(super) error: Option<MessageError<'a>>,
}

/// The state of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolState<'a> {
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    pub(super) time: Times,
}

/// A tool's data about a call besides its output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) exit: Option<i32>,
}

/// Tokens of one response. `output` does not include `reasoning`, `input` does not include `cache`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) reasoning: u64,
    pub(super) cache: CachedTokens,
}

/// Tokens read from and written to the cache.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CachedTokens {
    pub(super) read: u64,
    pub(super) write: u64,
}

/// Parses a field as a `T`; returns the default if the field has another form.
pub(super) fn shape<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// The text of a field, if it is not blank.
pub(super) fn words(text: Option<&Text<'_>>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty()).map(|text| text.to_string())
}
