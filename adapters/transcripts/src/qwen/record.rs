//! The records of a chat file, borrowed from the file's bytes. Only used fields are named.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::gemini::record::{Output, ToolCall, Truth};
pub(super) use agents::borrowed::Text;

/// One line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QwenLine<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) subtype: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) uuid: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) parent_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) cwd: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) git_branch: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) version: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<QwenMessage<'a>>,
    #[serde(borrow)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_call_result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) system_payload: Option<&'a RawValue>,
}

/// A line of which only the kind can be parsed.
#[derive(Debug, Deserialize)]
pub(super) struct UnknownQwenLine<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
}

/// A message of Gemini's API.
#[derive(Debug, Deserialize)]
pub(super) struct QwenMessage<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<&'a RawValue>,
}

/// A part of a message, limited to the fields that `gemini::content` does not parse.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QwenPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) thought: Truth,
    #[serde(borrow)]
    pub(super) function_call: Option<ToolCall<'a>>,
    #[serde(borrow)]
    pub(super) function_response: Option<ToolResponse<'a>>,
}

/// A tool's output to the model.
#[derive(Debug, Deserialize)]
pub(super) struct ToolResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) response: Output<'a>,
}

/// The end of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CallResult<'a> {
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) execution_status: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) error_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) result_display: Option<&'a RawValue>,
}

/// The displayed result of a command.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ShellResult {
    pub(super) exit_code: Option<i32>,
}

/// Tokens of one response. `prompt` includes `cached`; `candidates` includes `thoughts`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct QwenTokens {
    #[serde(rename = "promptTokenCount")]
    pub(super) prompt: u64,
    #[serde(rename = "candidatesTokenCount")]
    pub(super) candidates: u64,
    #[serde(rename = "cachedContentTokenCount")]
    pub(super) cached: u64,
    #[serde(rename = "thoughtsTokenCount")]
    pub(super) thoughts: u64,
}

/// The payload of a `system` record of any subtype.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SystemPayload<'a> {
    #[serde(borrow)]
    pub(super) ui_event: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) display_text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) custom_title: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) raw_command: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) info: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) state: Option<Text<'a>>,
}

/// An event of the agent's own telemetry.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UiEvent<'a> {
    #[serde(borrow, rename = "event.name")]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) subagent_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) error_message: Option<Text<'a>>,
    pub(super) status_code: Option<u16>,
}

/// The result of a compaction.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Compression {
    pub(super) original_token_count: Option<u64>,
    pub(super) new_token_count: Option<u64>,
}

/// Parses a field as a `T`; returns the default if the field has another form.
pub(super) fn shape<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
