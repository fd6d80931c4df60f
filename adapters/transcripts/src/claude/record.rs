//! The types of Claude Code's transcript lines, limited to the fields that are used. They borrow from the line; fields
//! not named here (copies of requests, duplicated tool results, system prompts) are skipped without parsing.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use agents::borrowed::Text;

/// The class of a line, determined from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineClass {
    /// Known and not needed.
    Skip,
    /// Must be parsed.
    Read,
}

/// The beginning of a text that reports an interrupt by the user.
pub(super) const INTERRUPTED: &str = "[Request interrupted by user";

/// Types of lines without a uuid whose content is not needed.
const SKIPPED: &[&[u8]] = &[
    b"api-request\"",
    b"api-request-shape\"",
    b"api-request-blob\"",
    b"file-history-snapshot\"",
    b"file-history-delta\"",
    b"atis-latch\"",
    b"tools-used\"",
    b"agent-name\"",
    b"mode\"",
];

/// Determines from the first bytes whether a line must be parsed.
pub(super) fn classify(line: &[u8]) -> LineClass {
    if let Some(kind) = line.strip_prefix(b"{\"type\":\"") {
        return if SKIPPED.iter().any(|s| kind.starts_with(s)) { LineClass::Skip } else { LineClass::Read };
    }
    // {"parentUuid":…,"isSidechain":…,["agentId":…,]"attachment":{…
    let head = &line[..line.len().min(160)];
    if memchr::memmem::find(head, b",\"attachment\":{").is_some() { LineClass::Skip } else { LineClass::Read }
}

/// One line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClaudeLine<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub subtype: Option<Text<'a>>,
    #[serde(borrow)]
    pub entrypoint: Option<Text<'a>>,
    #[serde(borrow)]
    pub uuid: Option<Text<'a>>,
    /// The uuid of the line before it.
    #[serde(borrow)]
    pub parent_uuid: Option<Text<'a>>,
    /// Whether the line belongs to a sub-agent.
    #[serde(default)]
    pub is_sidechain: Option<bool>,
    /// The session the line was written for; a sub-agent's lines name their parent's.
    #[serde(borrow)]
    pub session_id: Option<Text<'a>>,
    /// The session in which the process that wrote the line started.
    #[serde(borrow, rename = "session_id")]
    pub first_session_id: Option<Text<'a>>,
    /// Marks a copy made by `/branch`.
    #[serde(borrow)]
    pub forked_from: Option<ForkedFrom<'a>>,
    #[serde(borrow)]
    pub timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub cwd: Option<Text<'a>>,
    #[serde(borrow)]
    pub git_branch: Option<Text<'a>>,
    #[serde(borrow)]
    pub version: Option<Text<'a>>,
    #[serde(default)]
    pub is_meta: Option<bool>,
    #[serde(default)]
    pub is_compact_summary: Option<bool>,
    #[serde(borrow)]
    pub origin: Option<PromptSource<'a>>,
    #[serde(borrow)]
    pub permission_mode: Option<Text<'a>>,
    #[serde(borrow)]
    pub message: Option<ClaudeMessage<'a>>,
    /// The cost of the message, US dollars; written up to version 1.0.
    #[serde(rename = "costUSD")]
    pub cost_usd: Option<f64>,
    #[serde(default)]
    pub is_api_error_message: bool,
    #[serde(default)]
    pub is_aborted_mid_stream: bool,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub api_error_status: Option<&'a RawValue>,
    #[serde(borrow)]
    pub tool_denial_kind: Option<Text<'a>>,
    #[serde(default)]
    pub tool_denial_before_run: bool,
    #[serde(borrow)]
    pub interrupted_message_id: Option<Text<'a>>,
    #[serde(borrow, rename = "sourceToolAssistantUUID")]
    pub source_tool_assistant_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    pub content: Option<MessageContent<'a>>,
    pub pending_background_agent_count: Option<u32>,
    #[serde(borrow)]
    pub compact_metadata: Option<CompactMetadata<'a>>,
    #[serde(borrow)]
    pub operation: Option<Text<'a>>,
    #[serde(borrow)]
    pub custom_title: Option<Text<'a>>,
    #[serde(borrow)]
    pub summary: Option<Text<'a>>,
    #[serde(borrow)]
    pub leaf_uuid: Option<Text<'a>>,
    #[serde(default)]
    pub explicit: bool,
}

impl ClaudeLine<'_> {
    /// Whether the line is the result of a tool call.
    pub(super) fn is_result(&self) -> bool {
        let content = self.message.as_ref().map(|message| &message.content);
        matches!(content, Some(MessageContent::Blocks(blocks)) if blocks.iter().any(|b| *b.kind == *"tool_result"))
    }

    /// Whether the line reports that the user interrupted the turn.
    pub(super) fn is_interrupt(&self) -> bool {
        let text = match self.message.as_ref().map(|message| &message.content) {
            Some(MessageContent::Text(text)) => Some(&**text),
            Some(MessageContent::Blocks(blocks)) => blocks.first().and_then(|block| block.text.as_deref()),
            Some(MessageContent::Empty) | None => None,
        };
        text.is_some_and(|text| text.trim_start().starts_with(INTERRUPTED))
    }

    /// The session that a marked copy was copied from.
    pub(super) fn copied_from(&self) -> Option<&str> {
        self.forked_from.as_ref().map(|from| &*from.session_id)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ForkedFrom<'a> {
    #[serde(borrow, default)]
    pub session_id: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PromptSource<'a> {
    #[serde(borrow)]
    pub kind: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompactMetadata<'a> {
    #[serde(borrow)]
    pub trigger: Option<Text<'a>>,
    pub pre_tokens: Option<u64>,
    pub post_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ClaudeMessage<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub content: MessageContent<'a>,
    #[serde(borrow)]
    pub usage: Option<ClaudeTokens<'a>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ClaudeTokens<'a> {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_input_tokens: Option<u64>,
    pub cache_creation_input_tokens: Option<u64>,
    pub cache_creation: Option<CacheCreation>,
    pub output_tokens_details: Option<OutputDetails>,
    /// `fast` or `standard`.
    #[serde(borrow)]
    pub speed: Option<&'a RawValue>,
    pub server_tool_use: Option<ServerTools>,
    /// The API calls made for the answer. Calls of another type than `message` are not included in the sums above.
    #[serde(borrow)]
    pub iterations: Option<&'a RawValue>,
}

/// The API's price of a web search: 10 dollars per thousand (Anthropic's pricing, 2026-11).
const SEARCH_NANO_USD: u64 = 10_000_000;

/// The type and model of an API call made for an answer.
#[derive(Debug, Deserialize)]
pub(super) struct FurtherCall<'a> {
    #[serde(borrow, rename = "type", default)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
}

/// Tokens written to a cache, by lifetime.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct CacheCreation {
    pub ephemeral_1h_input_tokens: Option<u64>,
}

/// Server-side tools that the API bills in addition to tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ServerTools {
    pub web_search_requests: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct OutputDetails {
    pub thinking_tokens: Option<u64>,
}

impl<'a> ClaudeTokens<'a> {
    /// The calls that are not included in the sums, with their indexes in the list: those of an advisor or a
    /// compaction.
    pub(super) fn further_calls(self) -> Vec<(usize, FurtherCall<'a>, ClaudeTokens<'a>)> {
        let calls = self.iterations.and_then(|calls| serde_json::from_str::<Vec<&'a RawValue>>(calls.get()).ok());
        let call = |(index, call): (usize, &'a RawValue)| {
            let named = serde_json::from_str::<FurtherCall<'a>>(call.get()).ok()?;
            let is_further = !named.kind.is_empty() && &*named.kind != "message";
            is_further.then(|| Some((index, named, serde_json::from_str(call.get()).ok()?))).flatten()
        };
        calls.unwrap_or_default().into_iter().enumerate().filter_map(call).collect()
    }

    /// The cost of its web searches, if any.
    pub(super) fn searches_nano_usd(self) -> Option<u64> {
        let searches = self.server_tool_use?.web_search_requests.filter(|searches| *searches > 0)?;
        Some(searches.saturating_mul(SEARCH_NANO_USD))
    }

    /// The model name under which the tokens are counted: fast processing has its own price.
    pub(super) fn counted_as(self, model: Option<String>) -> Option<String> {
        let is_fast = self.speed.is_some_and(|speed| speed.get() == r#""fast""#);
        model.map(|model| if is_fast { format!("{model}-fast") } else { model })
    }

    /// Input, output, cache read, cache write.
    pub(super) fn counts(self) -> [u64; 4] {
        [self.input_tokens, self.output_tokens, self.cache_read_input_tokens, self.cache_creation_input_tokens]
            .map(Option::unwrap_or_default)
    }

    /// Tokens written to a cache for an hour, and tokens spent on thinking.
    pub(super) fn details(self) -> [u64; 2] {
        let hour = self.cache_creation.and_then(|written| written.ephemeral_1h_input_tokens);
        let thinking = self.output_tokens_details.and_then(|output| output.thinking_tokens);
        [hour, thinking].map(Option::unwrap_or_default)
    }
}

/// `content`: a string, or a list of blocks.
#[derive(Debug, Default)]
pub(super) enum MessageContent<'a> {
    #[default]
    Empty,
    Text(Text<'a>),
    Blocks(Vec<MessageBlock<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for MessageContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = MessageContent<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<MessageContent<'de>, E> {
                Ok(MessageContent::Text(Text(text.into())))
            }
            fn visit_str<E>(self, text: &str) -> Result<MessageContent<'de>, E> {
                Ok(MessageContent::Text(Text(text.to_owned().into())))
            }
            fn visit_unit<E>(self) -> Result<MessageContent<'de>, E> {
                Ok(MessageContent::Empty)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<MessageContent<'de>, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(MessageContent::Blocks(blocks))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MessageContent<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(MessageContent::Empty)
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl MessageContent<'_> {
    /// Whether the content is exactly this text.
    pub(super) fn is_text(&self, text: &str) -> bool {
        match self {
            MessageContent::Empty => false,
            MessageContent::Text(all) => **all == *text,
            MessageContent::Blocks(blocks) => matches!(blocks.as_slice(), [only] if only.text.as_deref() == Some(text)),
        }
    }

    /// The readable text: all text blocks, concatenated.
    pub(super) fn text(self) -> Option<String> {
        match self {
            MessageContent::Empty => None,
            MessageContent::Text(text) => Some(text.into_string()),
            MessageContent::Blocks(blocks) => {
                let mut all: Option<String> = None;
                for block in blocks {
                    let Some(text) = block.text else { continue };
                    match &mut all {
                        None => all = Some(text.into_string()),
                        Some(all) => {
                            all.push('\n');
                            all.push_str(&text);
                        }
                    }
                }
                all
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageBlock<'a> {
    #[serde(borrow, rename = "type", default)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub content: MessageContent<'a>,
    pub is_error: Option<bool>,
}

/// The fields of a tool's input that can serve as a one-line title.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolInput<'a> {
    #[serde(borrow)]
    pub command: Option<Text<'a>>,
    #[serde(borrow)]
    pub file_path: Option<Text<'a>>,
    #[serde(borrow)]
    pub notebook_path: Option<Text<'a>>,
    #[serde(borrow)]
    pub path: Option<Text<'a>>,
    #[serde(borrow)]
    pub pattern: Option<Text<'a>>,
    #[serde(borrow)]
    pub url: Option<Text<'a>>,
    #[serde(borrow)]
    pub query: Option<Text<'a>>,
    #[serde(borrow)]
    pub description: Option<Text<'a>>,
    #[serde(borrow)]
    pub skill: Option<Text<'a>>,
    pub run_in_background: Option<bool>,
    #[serde(borrow)]
    pub questions: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfferedQuestion<'a> {
    #[serde(borrow)]
    pub question: Text<'a>,
    #[serde(borrow, default)]
    pub options: Vec<QuestionChoice<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct QuestionChoice<'a> {
    #[serde(borrow)]
    pub label: Text<'a>,
}
