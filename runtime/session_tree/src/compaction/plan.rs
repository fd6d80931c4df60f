//! Plans what a compaction keeps and what it summarizes.

use std::borrow::Cow;

use crate::{
    compaction::{files::FileOperations, tokens::context_tokens},
    context::messages::{Context, ContextEntry},
    entry::{Entry, EntryBody, EntryKind},
    json::{Json, Object},
};

/// The plan of a compaction.
#[derive(Debug, Clone)]
pub struct CompactionPlan<'a> {
    /// The first entry that is kept.
    pub first_kept: &'a str,
    /// The messages that are summarized.
    pub history: Vec<Cow<'a, Object>>,
    /// The start of the turn that is cut, which gets a separate summary.
    pub turn_prefix: Vec<Cow<'a, Object>>,
    /// Whether a turn is cut.
    pub is_split_turn: bool,
    /// The estimated number of tokens in the context.
    pub tokens_before: u64,
    /// The summary of the previous compaction, which the new one continues.
    pub previous_summary: Option<&'a str>,
    /// The files of the summarized part and of the previous compaction.
    pub files: FileOperations,
    /// The settings.
    pub settings: CompactionSettings,
}

impl<'a> CompactionPlan<'a> {
    /// Plans the compaction of a path that starts at the root. `None` if there is nothing to summarize.
    #[must_use]
    pub fn of(path: &[&'a Entry], settings: CompactionSettings) -> Option<Self> {
        if path.last()?.kind() == EntryKind::Compaction {
            return None;
        }
        let context = Context::of_path(path);
        let tokens_before = context_tokens(&context, path).tokens;
        let entries = context.entries;
        let previous = entries.iter().position(|e| e.entry.kind() == EntryKind::Compaction && !e.messages.is_empty());
        let start = previous.map_or(0, |previous| previous + 1);
        let cut = super::cut::find(&entries, start, settings.keep_recent_tokens);
        let first_kept = entries.get(cut.first_kept)?.entry.id().filter(|id| !id.is_empty())?;
        let history_end = cut.turn_start.unwrap_or(cut.first_kept);
        let history = said(&entries[start.min(history_end)..history_end]);
        let turn_prefix = cut.turn_start.map(|turn| said(&entries[turn..cut.first_kept])).unwrap_or_default();
        if history.is_empty() && turn_prefix.is_empty() {
            return None;
        }
        let mut files = FileOperations::default();
        let mut previous_summary = None;
        if let Some(EntryBody::Compaction(compaction)) = previous.map(|previous| entries[previous].entry.body()) {
            previous_summary = compaction.summary();
            if !compaction.is_from_hook() {
                files.add_details(compaction.details());
            }
        }
        for message in history.iter().chain(&turn_prefix) {
            files.add_message(message);
        }
        let is_split_turn = cut.turn_start.is_some();
        Some(Self { first_kept, history, turn_prefix, is_split_turn, tokens_before, previous_summary, files, settings })
    }
}

/// The conversation messages of some entries.
pub(crate) fn said<'a>(entries: &[ContextEntry<'a>]) -> Vec<Cow<'a, Object>> {
    let conversation = entries.iter().filter(|entry| entry.entry.kind() != EntryKind::Compaction);
    let messages = conversation.flat_map(|entry| entry.messages.iter());
    messages.filter(|message| message.text("role") != Some("system")).cloned().collect()
}

/// `readFiles` and `modifiedFiles`.
#[must_use]
pub fn details(read: &[String], modified: &[String]) -> Json {
    let list = |files: &[String]| Json::Array(files.iter().map(|file| Json::String(file.clone())).collect());
    Object::new().with("readFiles", list(read)).with("modifiedFiles", list(modified)).into()
}

/// When a context is compacted, and how much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether it happens automatically.
    pub enabled: bool,
    /// Tokens reserved for the prompt and the answer.
    pub reserve_tokens: u64,
    /// Approximate number of tokens kept unchanged.
    pub keep_recent_tokens: u64,
}

impl Default for CompactionSettings {
    /// The defaults of pi.
    fn default() -> Self {
        Self { enabled: true, reserve_tokens: 16_384, keep_recent_tokens: 20_000 }
    }
}

impl CompactionSettings {
    /// Whether a context of `context_tokens` tokens should be compacted.
    #[must_use]
    pub fn is_due(&self, context_tokens: u64, context_window: u64) -> bool {
        // Compared as a sum, so that a reserve larger than the window does not underflow.
        self.enabled && context_tokens.saturating_add(self.reserve_tokens) > context_window
    }
}
