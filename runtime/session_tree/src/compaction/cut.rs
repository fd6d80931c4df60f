//! Chooses where a context is cut: `findProjectedCutPoint` of pi 0.87.1.
//!
//! Searches back from the newest entry until the kept part has enough tokens. Never cuts at a tool result, which
//! belongs to its call, or at a compaction. Entries that no model sees stay with the entry they precede.

use std::collections::HashSet;

use super::tokens::message_tokens;
use crate::{
    context::messages::{ContextEntry, messages_of},
    entry::{EntryBody, EntryKey, EntryKind},
    json::{Json, Object},
};

/// A cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContextCut {
    /// The first entry that is kept.
    pub(super) first_kept: usize,
    /// The start of the turn that is cut; `None` if the cut is between turns.
    pub(super) turn_start: Option<usize>,
}

/// Finds the cut among the entries starting at `start`.
pub(super) fn find(entries: &[ContextEntry<'_>], start: usize, keep_tokens: u64) -> ContextCut {
    let candidates: Vec<usize> = (start..entries.len()).filter(|index| may_cut(&entries[*index])).collect();
    let (Some(first), Some(last)) = (candidates.first(), candidates.last()) else {
        return ContextCut { first_kept: start, turn_start: None };
    };
    let mut cut = *first;
    if let Some(reached) = budget_end(entries, start, keep_tokens) {
        // If tool results alone exceed the limit, the call before them is kept.
        cut = candidates.iter().copied().find(|candidate| *candidate >= reached).unwrap_or(*last);
        if is_omitted_attempt(&entries[cut + 1..]) {
            cut += 1;
        }
    }
    while cut > start {
        let before = &entries[cut - 1];
        if before.entry.kind() == EntryKind::Compaction || !before.messages.is_empty() {
            break;
        }
        cut -= 1;
    }
    let starts_turn = |index: &usize| begins_turn(&entries[*index]);
    let turn_start = if starts_turn(&cut) { None } else { (start..cut).rev().find(starts_turn) };
    ContextCut { first_kept: cut, turn_start }
}

/// The entry at which the newest entries have enough tokens.
fn budget_end(entries: &[ContextEntry<'_>], start: usize, keep_tokens: u64) -> Option<usize> {
    let mut sum = 0;
    (start..entries.len()).rev().find(|index| {
        let tokens: u64 = entries[*index].messages.iter().map(|message| message_tokens(message)).sum();
        sum += tokens;
        tokens > 0 && sum >= keep_tokens
    })
}

fn may_cut(entry: &ContextEntry<'_>) -> bool {
    entry.entry.kind() != EntryKind::Compaction
        && entry.messages.iter().any(|message| is_user(message) || is_answer(message))
}

fn begins_turn(entry: &ContextEntry<'_>) -> bool {
    entry.entry.kind() != EntryKind::Compaction && entry.messages.iter().any(|message| is_user(message))
}

fn is_answer(message: &Object) -> bool {
    message.text("role") == Some("assistant")
}

/// Whether the model sees a message as one of the user.
fn is_user(message: &Object) -> bool {
    matches!(message.text("role"), Some("user" | "bashExecution" | "custom" | "branchSummary" | "compactionSummary"))
}

/// Whether the only visible entries after the cut are a failed attempt that edits removed: then the cut moves after the
/// message before it, which would otherwise be summarized and never answered.
fn is_omitted_attempt(after: &[ContextEntry<'_>]) -> bool {
    let seen_by_itself =
        |entry: &ContextEntry<'_>| entry.entry.kind() != EntryKind::ContextEdit && !messages_of(entry.entry).is_empty();
    let is_omitted = |entry: &ContextEntry<'_>| seen_by_itself(entry) && entry.messages.is_empty();
    let omitted: HashSet<&EntryKey> = after.iter().filter(|e| is_omitted(e)).map(|e| e.entry.key()).collect();
    let replaces_other = after.iter().any(|entry| match entry.entry.body() {
        EntryBody::ContextEdit(edit) => edit.replacement != Some(&Json::Null) && !omitted.contains(&edit.target),
        EntryBody::Message(_)
        | EntryBody::ThinkingLevelChange(_)
        | EntryBody::ModelChange(_)
        | EntryBody::Compaction(_)
        | EntryBody::BranchSummary(_)
        | EntryBody::Custom(_)
        | EntryBody::CustomMessage(_)
        | EntryBody::Label(_)
        | EntryBody::SessionInfo(_)
        | EntryBody::SessionInit(_)
        | EntryBody::TtsrInjection(_)
        | EntryBody::Usage(_)
        | EntryBody::Unknown(_) => false,
    });
    !replaces_other
        && after.iter().any(|entry| entry.entry.role() == Some("assistant") && is_omitted(entry))
        && after.iter().all(|e| e.entry.kind() != EntryKind::Compaction && (!seen_by_itself(e) || is_omitted(e)))
}
