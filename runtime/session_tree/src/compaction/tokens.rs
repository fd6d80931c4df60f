//! Estimates token counts: four characters per token, in UTF-16 units.

use crate::{
    context::{messages::Context, system_message},
    entry::{Entry, EntryKind, whole},
    json::{Json, Object, utf16_len},
};

/// The number of characters an image counts for.
const IMAGE_CHARS: usize = 4800;

/// The estimated number of tokens in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenEstimate {
    /// The total.
    pub tokens: u64,
    /// Tokens the provider reported with its last answer.
    pub told: u64,
}

/// The estimated number of tokens in a message.
#[must_use]
pub fn message_tokens(message: &Object) -> u64 {
    let length = |key: &str| message.text(key).map_or(0, utf16_len);
    let content = message.get("content").map_or(0, content_chars);
    let chars = match message.text("role") {
        Some("system") => content + system_chars(message),
        Some("user" | "custom" | "toolResult") => content,
        Some("assistant") => {
            let blocks = message.get("content").and_then(Json::as_array).unwrap_or_default();
            blocks.iter().filter_map(Json::as_object).map(answer_chars).sum()
        }
        Some("bashExecution") => length("command") + length("output"),
        Some("branchSummary" | "compactionSummary") => length("summary"),
        Some(_) | None => 0,
    };
    chars.div_ceil(4) as u64
}

/// The tokens of the whole context as reported with an answer. `None` if the answer failed or has no usage.
#[must_use]
pub fn usage_tokens(message: &Object) -> Option<u64> {
    if message.text("role") != Some("assistant") || matches!(message.text("stopReason"), Some("aborted" | "error")) {
        return None;
    }
    let usage = message.get("usage")?.as_object()?;
    let count = |key: &str| usage.get(key).and_then(Json::as_f64);
    let total = match count("totalTokens").filter(|total| *total != 0.0) {
        Some(total) => total,
        None => count("input")? + count("output")? + count("cacheRead")? + count("cacheWrite")?,
    };
    whole(total).filter(|total| *total > 0)
}

/// The number of tokens in some messages: the usage reported with the last valid answer, and an estimate for the
/// messages after it.
#[must_use]
pub fn estimate<'a>(messages: impl IntoIterator<Item = &'a Object>) -> TokenEstimate {
    estimate_at(messages).0
}

/// The estimate, and the index of the message that reported usage.
fn estimate_at<'a>(messages: impl IntoIterator<Item = &'a Object>) -> (TokenEstimate, Option<usize>) {
    let (mut told, mut trailing, mut at) = (0, 0, None);
    for (index, message) in messages.into_iter().enumerate() {
        match usage_tokens(message) {
            Some(tokens) => (told, trailing, at) = (tokens, 0, Some(index)),
            None => trailing += message_tokens(message),
        }
    }
    (TokenEstimate { tokens: told + trailing, told }, at)
}

/// The number of tokens in a context. Usage reported before a later edit or compaction on the path does not count.
#[must_use]
pub fn context_tokens(context: &Context<'_>, path: &[&Entry]) -> TokenEstimate {
    let (estimate, told_at) = estimate_at(context.messages());
    if let Some(told_at) = told_at {
        let mut entries = context.entries.iter().flat_map(|e| e.messages.iter().map(|_| e.entry));
        let told_by = entries.nth(told_at).and_then(|told| path.iter().position(|entry| entry.key() == told.key()));
        let changed = path.iter().rposition(|e| matches!(e.kind(), EntryKind::ContextEdit | EntryKind::Compaction));
        if told_by > changed {
            return estimate;
        }
    }
    let system = system_message(context).map_or(0, |message| message_tokens(&message));
    let others = context.messages().filter(|message| message.text("role") != Some("system"));
    TokenEstimate { tokens: system + others.map(message_tokens).sum::<u64>(), told: 0 }
}

fn content_chars(content: &Json) -> usize {
    match content {
        Json::String(text) => utf16_len(text),
        Json::Array(blocks) => blocks.iter().filter_map(Json::as_object).map(block_chars).sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => 0,
    }
}

fn block_chars(block: &Object) -> usize {
    match block.text("type") {
        Some("text") => block.text("text").map_or(0, utf16_len),
        Some("image") => IMAGE_CHARS,
        Some(_) | None => 0,
    }
}

fn answer_chars(block: &Object) -> usize {
    let length = |key: &str| block.text(key).map_or(0, utf16_len);
    match block.text("type") {
        Some("text") => length("text"),
        Some("thinking") => length("thinking"),
        Some("toolCall") => length("name") + block.get("arguments").map_or(0, |a| utf16_len(&a.to_text())),
        Some(_) | None => 0,
    }
}

fn system_chars(message: &Object) -> usize {
    let sections = message.get("sections").and_then(Json::as_object).into_iter().flat_map(Object::iter);
    let tools = message.get("toolsAdded").filter(|tools| tools.is_truthy());
    sections.filter_map(|(_, text)| text.as_str()).map(utf16_len).sum::<usize>()
        + tools.map_or(0, |tools| utf16_len(&tools.to_text()))
}
