//! Prompts that capture types for rules of the user, recognized when the agent records them: in an agent's file they
//! look like the user's own.

use events::{Event, Payload, PromptId, PromptOrigin, QueuedBy, QueuedState, Timestamp};
use serde::{Deserialize, Serialize};

use super::SessionState;
use crate::shorten::verbatim_line;

/// Number of prompts remembered per session.
const REMEMBERED: usize = 8;
/// How long an agent may take to record a prompt that was typed, ms: it may be in a long turn.
const RECORDED_WITHIN_MS: i64 = 3_600_000;
/// How far the clocks of an agent's file and of capture may differ, ms.
const CLOCKS_DIFFER_MS: i64 = 60_000;
/// Number of characters by which a prompt is recognized.
const COMPARED_CHARS: usize = 400;
/// Minimum length of a typed text that is recognized at the beginning or the end of a longer prompt, characters: agents
/// join prompts, and add context to them.
const FOUND_INSIDE_CHARS: usize = 20;

/// A prompt that was typed for a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TypedPrompt {
    id: PromptId,
    /// The beginning of its text, in one line.
    text: String,
    at: Timestamp,
}

impl TypedPrompt {
    fn is_in(&self, prompt: &str) -> bool {
        let is_long = self.text.chars().nth(FOUND_INSIDE_CHARS).is_some();
        let is_at_an_end = || prompt.starts_with(&self.text) || prompt.ends_with(&self.text);
        prompt == self.text || is_long && is_at_an_end()
    }
}

impl SessionState {
    /// Remembers a prompt that capture is about to type for a rule. `event` is a derived event; other kinds of events
    /// change nothing.
    pub fn note_typed(&mut self, event: &Event) {
        let Payload::QueuedPrompt(queued) = &event.payload else { return };
        let is_typed = match (queued.by, queued.state) {
            (QueuedBy::Person, _) => return,
            (QueuedBy::Monitor, QueuedState::Delivering) => true,
            // Nothing was typed: the run did not accept it.
            (QueuedBy::Monitor, QueuedState::Queued | QueuedState::Cancelled) => false,
            (QueuedBy::Monitor, QueuedState::Delivered | QueuedState::Unclear) => return,
        };
        self.typed.retain(|typed| typed.id != queued.prompt_id);
        if !is_typed {
            return;
        }
        if self.typed.len() == REMEMBERED {
            self.typed.pop_front();
        }
        let text =
            verbatim_line(event.text.as_deref().unwrap_or_default(), usize::MAX).chars().take(COMPARED_CHARS).collect();
        self.typed.push_back(TypedPrompt { id: queued.prompt_id, text, at: event.created_at });
    }

    /// Whether capture typed this prompt for a rule; `whole` reads the prompt's text if the event contains only parts
    /// of it. A prompt observed without its text counts if a rule's prompt is expected.
    #[must_use]
    pub fn is_typed_for_rule(&self, event: &Event, whole: impl FnOnce() -> Option<String>) -> bool {
        let Payload::UserPrompt(prompt) = &event.payload else { return false };
        let may_be = match prompt.origin {
            PromptOrigin::Human | PromptOrigin::Steering => true,
            PromptOrigin::Wakeup | PromptOrigin::Agent | PromptOrigin::Command | PromptOrigin::Monitor => false,
        };
        if !may_be || self.typed.is_empty() {
            return false;
        }
        let whole = whole();
        self.place_of(event, whole.as_deref().or(event.text.as_deref())).is_some()
    }

    /// Forgets the oldest remembered prompt that this event records.
    pub(super) fn forget_typed(&mut self, event: &Event) {
        if !self.typed.is_empty()
            && let Some(place) = self.place_of(event, event.text.as_deref())
        {
            self.typed.remove(place);
        }
    }

    fn place_of(&self, event: &Event, text: Option<&str>) -> Option<usize> {
        let text = text.map(|text| verbatim_line(text, usize::MAX));
        self.typed.iter().position(|typed| {
            let after_ms = event.created_at.since_ms(typed.at);
            (-CLOCKS_DIFFER_MS..=RECORDED_WITHIN_MS).contains(&after_ms)
                && text.as_deref().is_none_or(|text| typed.is_in(text))
        })
    }
}
