//! Detects rewinds: a prompt that follows an earlier record where another prompt followed before.
//!
//! Agents that store a conversation as a tree record for each entry which one it follows. If two prompts follow the
//! same record, only the later one is still part of the conversation: the other, and everything after it, was taken
//! back.

use std::collections::VecDeque;

use events::{Identity, TurnId};
use serde::{Deserialize, Serialize};

/// Maximum number of prompts remembered: as many turns as a session's view can still mark.
const PROMPTS: usize = 10;

/// The last prompts of a conversation, and the record each of them follows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PromptPlaces(VecDeque<PromptPlace>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PromptPlace {
    /// The id of the record the prompt follows.
    follows: String,
    /// The turn that the prompt started, if it started one.
    turn: TurnId,
}

impl PromptPlaces {
    /// Records a prompt that follows the record `follows`. Returns the first turn that it takes back.
    pub(crate) fn put(&mut self, follows: &str, prompt: Identity) -> Option<TurnId> {
        let taken_back = self.go_back(follows);
        if self.0.len() == PROMPTS {
            self.0.pop_front();
        }
        self.0.push_back(PromptPlace { follows: follows.to_owned(), turn: prompt.event_id().into() });
        taken_back
    }

    /// Continues the conversation from this record. Returns the first turn that this takes back.
    pub(crate) fn go_back(&mut self, record: &str) -> Option<TurnId> {
        let at = self.0.iter().position(|place| place.follows == record)?;
        self.0.drain(at..).next().map(|place| place.turn)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use events::Provider;

    use super::*;

    fn prompt(name: &str) -> Identity {
        Identity::record(Provider::Claude, name, 0)
    }

    #[test]
    fn a_second_prompt_after_a_record_undoes_the_first_and_all_that_follow() {
        let mut places = PromptPlaces::default();
        assert_eq!(places.put("start", prompt("a")), None);
        assert_eq!(places.put("answer a", prompt("b")), None);
        assert_eq!(places.put("answer b", prompt("c")), None);
        assert_eq!(places.put("answer a", prompt("d")), Some(prompt("b").event_id().into()));
        // Turns that were taken back are dropped, so nothing is taken back twice.
        assert_eq!(places.put("answer b", prompt("e")), None);
        assert_eq!(places.go_back("start"), Some(prompt("a").event_id().into()));
        assert!(places.is_empty());
    }

    #[test]
    fn only_the_most_recent_prompts_are_remembered() {
        let mut places = PromptPlaces::default();
        for n in 0..PROMPTS + 2 {
            assert_eq!(places.put(&format!("record {n}"), prompt(&n.to_string())), None);
        }
        assert_eq!(places.go_back("record 1"), None);
        assert_eq!(places.go_back("record 2"), Some(prompt("2").event_id().into()));
    }
}
