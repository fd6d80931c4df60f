//! The prompt of a summarizer: the conversation as one text, so that the model does not continue it, and the
//! instructions.
//!
//! The form of the text and the sections of the summary are pi's (`serializeConversation` of 0.87.1).

use crate::{
    compaction::plan::CompactionPlan,
    context::messages::text_of,
    json::{Json, Object, utf16_len, utf16_prefix},
    llm::to_model,
};

/// Maximum length of a tool result shown to a summarizer, in UTF-16 units.
const RESULT_CHARS: usize = 2000;

/// The system prompt of every summary.
pub const SYSTEM: &str = "You are a context summarization assistant. You read a conversation between a user \
and an AI assistant and write a structured summary of it in the form you are asked for.\n\n\
Do NOT continue the conversation. Do NOT answer questions in it. Output ONLY the summary.";

/// The form of a summary.
pub const SECTIONS: &str = "## Goal\n[What the user wants; several items if there are several tasks.]\n\n\
## Constraints & Preferences\n- [What the user asked for or ruled out, or \"(none)\"]\n\n\
## Progress\n### Done\n- [x] [What is finished]\n\n### In Progress\n- [ ] [What is being worked on]\n\n\
### Blocked\n- [What stands in the way, if anything]\n\n\
## Key Decisions\n- **[Decision]**: [Why, in short]\n\n\
## Next Steps\n1. [What is to be done next, in order]\n\n\
## Critical Context\n- [Data, examples or references that are needed to go on, or \"(none)\"]\n\n\
Keep each section short. Keep file paths, names of functions and error messages exactly as they are.";

const FIRST: &str = "The messages above are a conversation. Write a summary from which another model can continue the \
work. Use exactly this form:";

const AGAIN: &str = "The messages above are new. Bring the summary in <previous-summary> up to date with them:\n\
- KEEP everything that it says; drop only what does not matter any more\n\
- ADD progress, decisions and context of the new messages\n\
- MOVE what is finished from \"In Progress\" to \"Done\"\n\
- RENEW \"Next Steps\"\n\nUse exactly this form:";

const PREFIX: &str = "The messages above are the beginning of a turn that goes on. What comes after them is kept \
elsewhere and is not to be reconstructed. Write a short summary that will stand before it:\n\n\
## Original Request\n[What the user asked for]\n\n\
## Progress So Far\n- [Decisions and work of these messages]\n\n\
## Context Needed to Continue\n- [What the later messages build on]\n\n\
Say only what is said above.";

/// A request to a summarizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The system prompt.
    pub system: &'static str,
    /// The only user message. The request has no tools.
    pub prompt: String,
    /// Maximum length of the answer; the model's own maximum may be lower.
    pub max_tokens: u64,
}

impl CompactionPlan<'_> {
    /// The requests to the summarizer: for the history, if there is any, and for the start of a turn that is cut.
    /// `focus` is the user's wish for the summary.
    #[must_use]
    pub fn requests(&self, focus: Option<&str>) -> (Option<SummaryRequest>, Option<SummaryRequest>) {
        let history = (!self.history.is_empty()).then(|| SummaryRequest {
            system: SYSTEM,
            prompt: self.history_prompt(focus.filter(|focus| !focus.is_empty())),
            max_tokens: self.settings.reserve_tokens.saturating_mul(4) / 5,
        });
        let prefix = (!self.turn_prefix.is_empty()).then(|| SummaryRequest {
            system: SYSTEM,
            prompt: format!(
                "# Conversation\n{}\n\n# Instructions\n{PREFIX}",
                flatten(self.turn_prefix.iter().map(std::convert::AsRef::as_ref))
            ),
            max_tokens: self.settings.reserve_tokens / 2,
        });
        (history, prefix)
    }

    fn history_prompt(&self, focus: Option<&str>) -> String {
        let conversation = flatten(self.history.iter().map(std::convert::AsRef::as_ref));
        let mut prompt = format!("<conversation>\n{conversation}\n</conversation>\n\n");
        let previous = self.previous_summary.filter(|summary| !summary.is_empty());
        if let Some(previous) = previous {
            prompt += &format!("<previous-summary>\n{previous}\n</previous-summary>\n\n");
        }
        prompt += if previous.is_some() { AGAIN } else { FIRST };
        prompt += "\n\n";
        prompt += SECTIONS;
        if let Some(focus) = focus {
            prompt += &format!("\n\nAdditional focus: {focus}");
        }
        prompt
    }
}

/// A conversation as one text.
#[must_use]
pub fn flatten<'a>(messages: impl IntoIterator<Item = &'a Object>) -> String {
    let mut parts = Vec::new();
    for message in to_model(messages) {
        let content = message.get("content");
        let text = |separator: &str| content.map(|c| text_of(c, separator)).unwrap_or_default();
        match message.text("role") {
            Some("user") => parts.extend(Some(text("")).filter(|t| !t.is_empty()).map(|t| format!("[User]: {t}"))),
            Some("assistant") => answer(content, &mut parts),
            Some("toolResult") => {
                parts.extend(Some(text("")).filter(|t| !t.is_empty()).map(|t| format!("[Tool result]: {}", cut(&t))));
            }
            Some(_) | None => {}
        }
    }
    parts.join("\n\n")
}

fn answer(content: Option<&Json>, parts: &mut Vec<String>) {
    let blocks: Vec<&Object> =
        content.and_then(Json::as_array).unwrap_or_default().iter().filter_map(Json::as_object).collect();
    let of = |kind: &'static str| blocks.iter().filter(move |block| block.text("type") == Some(kind));
    let thinking: Vec<&str> = of("thinking").map(|block| block.text("thinking").unwrap_or_default()).collect();
    let texts: Vec<&str> = of("text").map(|block| block.text("text").unwrap_or_default()).collect();
    let calls: Vec<String> = of("toolCall").map(|block| call(block)).collect();
    if !thinking.is_empty() {
        parts.push(format!("[Assistant thinking]: {}", thinking.join("\n")));
    }
    if !texts.is_empty() {
        parts.push(format!("[Assistant]: {}", texts.join("\n")));
    }
    if !calls.is_empty() {
        parts.push(format!("[Assistant tool calls]: {}", calls.join("; ")));
    }
}

fn call(block: &Object) -> String {
    let arguments = block.get("arguments").and_then(Json::as_object).into_iter().flat_map(Object::iter);
    let arguments: Vec<String> = arguments.map(|(name, value)| format!("{name}={}", value.to_text())).collect();
    format!("{}({})", block.text("name").unwrap_or_default(), arguments.join(", "))
}

fn cut(text: &str) -> String {
    let length = utf16_len(text);
    if length <= RESULT_CHARS {
        return text.to_owned();
    }
    let left = length - RESULT_CHARS;
    format!("{}\n\n[... {left} more characters truncated]", utf16_prefix(text, RESULT_CHARS))
}
