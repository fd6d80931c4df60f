//! Summarizes the branch that the conversation leaves, and adds the summary where it continues.
//!
//! Follows `collectEntriesForBranchSummary` and `prepareBranchEntries` of pi 0.87.1: everything from the old leaf back
//! to the deepest entry shared by both paths, including earlier summaries but not tool results; newest first, up to the
//! budget.

use std::borrow::Cow;

use crate::{
    compaction::{
        self, FileOperations, SYSTEM, SummaryAnswer, SummaryError, SummaryRequest, SummaryText, as_text, details,
        flatten, message_tokens,
    },
    context,
    entry::{Entry, EntryBody, EntryKind, NewBranchSummary},
    json::Object,
    tree::Tree,
};

/// Maximum length of a branch summary, in tokens.
const MAX_TOKENS: u64 = 4096;

/// The first lines of a branch summary.
const PREAMBLE: &str =
    "The user explored a different conversation branch before returning here.\nSummary of that exploration:\n\n";

const INSTRUCTIONS: &str = "The messages above are a branch of a conversation that the user leaves. Write a summary of it, \
for when the conversation goes on elsewhere. Use exactly this form:\n\n\
## Goal\n[What the user wanted in this branch]\n\n\
## Constraints & Preferences\n- [What the user asked for or ruled out, or \"(none)\"]\n\n\
## Progress\n### Done\n- [x] [What is finished]\n\n### In Progress\n- [ ] [What was begun]\n\n\
### Blocked\n- [What stands in the way, if anything]\n\n\
## Key Decisions\n- **[Decision]**: [Why, in short]\n\n\
## Next Steps\n1. [What would be done next]\n\n\
Keep each section short. Keep file paths, names of functions and error messages exactly as they are.";

/// A branch that the conversation leaves.
#[derive(Debug, Clone)]
pub struct AbandonedBranch<'a> {
    /// Its entries, oldest first.
    pub entries: Vec<&'a Entry>,
    /// The deepest entry that remains on the path.
    pub common_ancestor: Option<&'a Entry>,
}

impl<'a> AbandonedBranch<'a> {
    /// The branch left when the leaf moves from one entry to another; `None` is the position before all entries.
    #[must_use]
    pub fn of(tree: &'a Tree, from: Option<&'a Entry>, to: Option<&'a Entry>) -> Self {
        let common_ancestor = tree.common_ancestor(from, to);
        let mut entries = tree.path(from);
        if let Some(ancestor) = common_ancestor {
            let at = entries.iter().position(|entry| entry.key() == ancestor.key());
            entries.drain(..at.map_or(0, |at| at + 1));
        }
        Self { entries, common_ancestor }
    }

    /// Chooses the messages for the summarizer: the newest, up to this many tokens; 0 means no limit.
    #[must_use]
    pub fn plan(&self, budget_tokens: u64) -> BranchPlan<'a> {
        let mut files = FileOperations::default();
        for entry in &self.entries {
            if let EntryBody::BranchSummary(summary) = entry.body()
                && !summary.is_from_hook()
            {
                files.add_details(summary.details());
            }
        }
        let (mut messages, mut tokens) = (Vec::new(), 0);
        for entry in self.entries.iter().rev() {
            let Some(message) = message_of(entry) else { continue };
            files.add_message(&message);
            let more = message_tokens(&message);
            let is_full = budget_tokens > 0 && tokens + more > budget_tokens;
            // A summary may exceed the budget while a tenth of it is still free.
            let is_summary = matches!(entry.kind(), EntryKind::Compaction | EntryKind::BranchSummary);
            if !is_full || (is_summary && tokens.saturating_mul(10) < budget_tokens.saturating_mul(9)) {
                messages.push(message);
                tokens += more;
            }
            if is_full {
                break;
            }
        }
        messages.reverse();
        BranchPlan { messages, files, tokens }
    }
}

/// The part of a branch that is summarized.
#[derive(Debug, Clone)]
pub struct BranchPlan<'a> {
    /// The messages, oldest first.
    pub messages: Vec<Cow<'a, Object>>,
    /// The files of the branch, including messages that exceeded the budget.
    pub files: FileOperations,
    /// The estimated number of tokens in the messages.
    pub tokens: u64,
}

/// The user's wishes for the focus of a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Focus<'a> {
    /// No focus.
    #[default]
    Usual,
    /// The usual instructions, and this focus.
    Also(&'a str),
    /// Only this instruction.
    Only(&'a str),
}

impl BranchPlan<'_> {
    /// The request to the summarizer; `None` if there is nothing to summarize.
    #[must_use]
    pub fn request(&self, focus: Focus<'_>) -> Option<SummaryRequest> {
        if self.messages.is_empty() {
            return None;
        }
        let conversation = flatten(self.messages.iter().map(Cow::as_ref));
        let asked = match focus {
            Focus::Usual => INSTRUCTIONS.to_owned(),
            Focus::Also(focus) => format!("{INSTRUCTIONS}\n\nAdditional focus: {focus}"),
            Focus::Only(focus) => focus.to_owned(),
        };
        let prompt = format!("<conversation>\n{conversation}\n</conversation>\n\n{asked}");
        Some(SummaryRequest { system: SYSTEM, prompt, max_tokens: MAX_TOKENS })
    }

    /// Builds the summary from the answer.
    ///
    /// # Errors
    /// The answer is not a complete summary.
    pub fn assemble<E>(&self, answer: SummaryAnswer) -> Result<NewBranchSummary, SummaryError<E>> {
        let SummaryText { text, usage } = compaction::summary_text(answer)?;
        let (read, modified) = self.files.lists();
        let summary = format!("{PREAMBLE}{text}{}", as_text(&read, &modified));
        Ok(NewBranchSummary { summary, details: Some(details(&read, &modified)), usage, from_hook: false })
    }
}

/// The message for the summarizer, if the entry has one.
fn message_of(entry: &Entry) -> Option<Cow<'_, Object>> {
    match entry.body() {
        EntryBody::Message(message) => message.filter(|m| m.text("role") != Some("toolResult")).map(Cow::Borrowed),
        EntryBody::CustomMessage(message) => Some(Cow::Owned(context::custom(message.fields(), entry.at_ms()))),
        EntryBody::BranchSummary(summary) => Some(Cow::Owned(context::branch_summary(summary.fields(), entry.at_ms()))),
        EntryBody::Compaction(compaction) => Some(Cow::Owned(context::compaction_summary(&compaction, entry.at_ms()))),
        EntryBody::ThinkingLevelChange(_)
        | EntryBody::ModelChange(_)
        | EntryBody::Custom(_)
        | EntryBody::Label(_)
        | EntryBody::SessionInfo(_)
        | EntryBody::SessionInit(_)
        | EntryBody::TtsrInjection(_)
        | EntryBody::ContextEdit(_)
        | EntryBody::Usage(_)
        | EntryBody::Unknown(_) => None,
    }
}
