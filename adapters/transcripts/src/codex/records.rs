//! The types of rollout records, borrowed from the line. The types declare only the fields that capture uses. Fields
//! are [`RawField`]: a value of an unexpected type counts as absent, because Codex has changed the types of fields
//! before, and one unexpected field must not invalidate the record.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use super::text;

/// A JSON value that was not parsed yet.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(super) struct RawField<'a>(#[serde(borrow)] &'a RawValue);

impl<'a> RawField<'a> {
    /// The JSON, verbatim.
    pub(super) fn json(self) -> &'a str {
        self.0.get()
    }

    fn quoted(self) -> Option<&'a str> {
        self.json().strip_prefix('"')?.strip_suffix('"')
    }

    /// The text, if the value is a string.
    pub(super) fn text(self) -> Option<String> {
        self.quoted().map(text::unescape)
    }

    /// Like `text`, but borrowed if it has no escapes: for ids and names.
    pub(super) fn name(self) -> Option<Cow<'a, str>> {
        let inner = self.quoted()?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        self.text().map(Cow::Owned)
    }

    /// The value as a `T`, if it has that type.
    pub(super) fn parse<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.json()).ok()
    }

    /// Whether it is `true`.
    pub(super) fn is_true(self) -> bool {
        self.json() == "true"
    }
}

/// Accessors for optional fields.
pub(super) trait Field<'a> {
    /// The text, if the field is a string.
    fn text(&self) -> Option<String>;
    /// The text, borrowed if possible, if the field is a non-empty string.
    fn name(&self) -> Option<Cow<'a, str>>;
    /// The value, if the field has that type.
    fn parse<T: Deserialize<'a>>(&self) -> Option<T>;
    /// Whether the field is present and `true`.
    fn is_true(&self) -> bool;
}

impl<'a> Field<'a> for Option<RawField<'a>> {
    fn text(&self) -> Option<String> {
        (*self)?.text()
    }
    fn name(&self) -> Option<Cow<'a, str>> {
        (*self)?.name().filter(|name| !name.is_empty())
    }
    fn parse<T: Deserialize<'a>>(&self) -> Option<T> {
        (*self)?.parse()
    }
    fn is_true(&self) -> bool {
        self.is_some_and(RawField::is_true)
    }
}

macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, Deserialize)]
        pub(super) struct $name<'a> {
            $($(#[$attr])* #[serde(borrow, default)] pub(super) $field: Option<RawField<'a>>,)*
        }
    };
}

record! {
    /// `session_meta`: the session the file belongs to.
    SessionMeta {
        id, session_id, cwd, cli_version, source, thread_source, parent_thread_id, agent_path,
        forked_from_id, forked_from_ordinal_exclusive, history_base, git,
    }
}
record! {
    /// `session_meta.source` when it is an object, and its inner objects.
    Helper { subagent, thread_spawn, parent_thread_id, agent_path, agent_role, other }
}
record! {
    /// `session_meta.git`.
    Git { branch }
}
record! {
    /// `session_meta.history_base`: where the history before this file ends.
    HistoryBase { thread_id, end_ordinal_exclusive }
}
record! {
    /// `turn_context`, and `thread_settings_applied.thread_settings`.
    Settings { cwd, model, approval_policy, collaboration_mode }
}
record! {
    /// `collaboration_mode`.
    Mode { mode }
}
record! {
    /// `thread_settings_applied`.
    SettingsApplied { thread_settings }
}
record! {
    /// `thread_rolled_back` (read), `thread_name_updated` (read).
    ThreadChange { num_turns, thread_name }
}
record! {
    /// `task_started`, `task_complete`, `turn_aborted`.
    Turn { turn_id, turn_attribution, trace_id, error, reason }
}
record! {
    /// `task_started.turn_attribution`.
    Attribution { turn_trigger, initiating_agent_path }
}
record! {
    /// `task_complete.error`, `error` (read), `stream_error` (read).
    Failure { message, codex_error_info }
}
record! {
    /// The details of an HTTP error.
    HttpFailure { http_status_code }
}
record! {
    /// `compacted`.
    Compacted { message, window_id }
}
record! {
    /// `user_message` and `agent_message` of the older form.
    OlderMessage { message, phase, images, local_images }
}
record! {
    /// `message` of the bare form.
    BareMessage { id, role, content }
}
record! {
    /// `response_item/message`.
    Role { role }
}
record! {
    /// A part of a message, an output or a summary.
    Part { #[serde(rename = "type")] kind, text, encrypted_content }
}
record! {
    /// `response_item/reasoning`.
    Reasoning { id, summary }
}
record! {
    /// `response_item/agent_message`: mail between agents.
    Mail { id, content }
}
record! {
    /// `inter_agent_communication_metadata`.
    MailAhead { trigger_turn }
}
record! {
    /// The calls of tools, in all their forms.
    Call { id, call_id, name, namespace, arguments, input, action, status }
}
record! {
    /// The arguments of the tools whose calls get a title.
    Arguments {
        cmd, command, sandbox_permissions, with_escalated_permissions, questions, task_name,
        message, path, query, url, pattern, chars, input,
    }
}
record! {
    /// A question of `request_user_input`, and one of the offered answers.
    Question { question, options, label }
}
/// The outputs of tools.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CodexOutput<'a> {
    #[serde(borrow, default)]
    pub(super) call_id: Option<RawField<'a>>,
    #[serde(borrow, default)]
    pub(super) id: Option<RawField<'a>>,
    /// The tool's output.
    #[serde(default)]
    pub(super) output: OutputText,
}

/// The text of an output: a string, a list of parts, or an object (older). Most of a rollout's bytes are outputs, so it
/// is parsed in one pass and not through [`RawField`].
#[derive(Debug, Default, PartialEq)]
pub(super) struct OutputText {
    /// The text.
    pub(super) text: String,
    /// Whether it was a string and not a list of parts.
    pub(super) plain: bool,
    /// Whether an object reported that the call failed.
    pub(super) failed: bool,
}

impl<'de> Deserialize<'de> for OutputText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CodexOutputVisitor)
    }
}

struct CodexOutputVisitor;

impl<'de> Visitor<'de> for CodexOutputVisitor {
    type Value = OutputText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an output")
    }

    fn visit_str<E>(self, text: &str) -> Result<OutputText, E> {
        Ok(OutputText { text: text.to_owned(), plain: true, failed: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<OutputText, A::Error> {
        let mut text = String::new();
        while let Some(part) = parts.next_element::<RawField<'de>>()? {
            if let Some(piece) = part.parse::<Part<'de>>().and_then(|part| part.text.text()) {
                text.push_str(&piece);
            }
        }
        Ok(OutputText { text, ..OutputText::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<OutputText, A::Error> {
        let object = OutputObject::deserialize(MapAccessDeserializer::new(fields))?;
        Ok(OutputText {
            text: object.content.text().or_else(|| object.output.text()).unwrap_or_default(),
            failed: object.success.is_some_and(|success| success.json() == "false"),
            plain: false,
        })
    }

    fn visit_unit<E>(self) -> Result<OutputText, E> {
        Ok(OutputText::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<OutputText, E> {
        Ok(OutputText::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<OutputText, E> {
        Ok(OutputText::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<OutputText, E> {
        Ok(OutputText::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<OutputText, E> {
        Ok(OutputText::default())
    }
}

record! {
    /// An output that is an object (older).
    OutputObject { content, success, output, metadata }
}
record! {
    /// `metadata` of an output that is JSON in a string (older).
    OutputMetadata { exit_code, duration_seconds }
}
record! {
    /// `retained_context/verified_answer`.
    VerifiedAnswer { call_id, questions }
}
record! {
    /// A question with the given answer.
    Answered { answer }
}
record! {
    /// `exec_command_end`, `patch_apply_end`, `mcp_tool_call_end` (read).
    OlderEnd { call_id, turn_id, exit_code, success, status, aggregated_output, stdout, duration, result }
}
record! {
    /// A duration.
    Duration { secs, nanos }
}
record! {
    /// The result of an MCP call in the older form: one of the two fields is set.
    McpResult {
        #[serde(rename = "Ok")] ok,
        #[serde(rename = "Err")] err,
    }
}
record! {
    /// `token_usage_record`.
    UsageRecord { response_id, usage }
}
record! {
    /// `token_count`.
    TokenCount { info, rate_limits }
}
record! {
    /// `token_count.rate_limits`.
    RateLimits { primary, secondary }
}
record! {
    /// `token_count.info`.
    TokenInfo { total_token_usage, last_token_usage }
}

/// `item_completed`.
#[derive(Debug, Deserialize)]
pub(super) struct ItemCompleted<'a> {
    /// The turn it belongs to, which may have ended.
    #[serde(borrow, default)]
    pub(super) turn_id: Option<RawField<'a>>,
    /// When the item began, milliseconds since 1970.
    #[serde(borrow, default)]
    pub(super) started_at_ms: Option<RawField<'a>>,
    /// The completed item.
    #[serde(borrow)]
    pub(super) item: Item<'a>,
}

record! {
    /// An item of any kind.
    Item {
        #[serde(rename = "type")] kind,
        id, content, phase, text, command, status, exit_code, aggregated_output, duration,
    }
}

/// Token counts of one response or of all responses so far. `input_tokens` includes the cached ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct CodexTokens {
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: u64,
    pub(super) cache_write_input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Part of `output_tokens`.
    pub(super) reasoning_output_tokens: u64,
    pub(super) total_tokens: u64,
}

/// A quota of `token_count.rate_limits`. Older versions record the seconds until its reset.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimit {
    pub(super) used_percent: Option<f64>,
    pub(super) window_minutes: Option<u32>,
    pub(super) resets_at: Option<i64>,
    pub(super) resets_in_seconds: Option<i64>,
}

/// The parts of a list; elements of other types are ignored.
pub(super) fn parts(list: Option<RawField<'_>>) -> Vec<Part<'_>> {
    let list: Vec<RawField<'_>> = list.parse().unwrap_or_default();
    list.into_iter().filter_map(RawField::parse).collect()
}

/// The texts of a list of parts, joined; parts without a text are ignored.
pub(super) fn join_parts(list: Option<RawField<'_>>, between: &str) -> String {
    let mut text = String::new();
    for part in parts(list) {
        let Some(piece) = part.text.text() else {
            continue;
        };
        if !text.is_empty() && !piece.is_empty() {
            text.push_str(between);
        }
        text.push_str(&piece);
    }
    text
}
