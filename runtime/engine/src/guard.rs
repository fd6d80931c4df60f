//! The loop guard: calls that are repeated with the same outcome.
//!
//! Two calls are the same when tool, arguments and result are, numbers and times in the result aside. What alternates
//! between up to three calls counts like one that is repeated. A command that waits, and looking at background
//! processes, may be repeated twice as often.

use std::collections::VecDeque;

use session_tree::{Json, Object};

/// At which repetition the model is told.
const NOTE: usize = 3;
/// At which repetition the turn is paused,
const PAUSE: usize = 5;
/// and at which when the call is one that waits for something.
const PAUSE_WAITING: usize = 10;
/// Longest cycle of calls that counts as a repetition.
const PERIOD: usize = 3;
/// Number of calls that are remembered: enough for the longest cycle.
const REMEMBERED: usize = PAUSE_WAITING * PERIOD;
/// Begins the identity of a call that waits for something.
const WAITING: char = '~';

/// The calls since the last message of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoopGuard {
    recent: VecDeque<String>,
}

/// What is to be done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopVerdict {
    /// Nothing.
    Fine,
    /// The model is told that this is the nth time.
    Note(usize),
    /// The turn is paused.
    Pause,
}

impl LoopGuard {
    /// Takes in a call that has ended.
    pub(crate) fn push(&mut self, identity: String) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(identity);
    }

    /// Forgets all calls.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
    }

    /// What is to be done once this call has been taken in.
    pub(crate) fn verdict_with(&self, identity: &str) -> LoopVerdict {
        let mut guard = self.clone();
        guard.push(identity.to_owned());
        guard.verdict()
    }

    /// What is to be done about the last call.
    pub(crate) fn verdict(&self) -> LoopVerdict {
        let repeated = (1..=PERIOD).map(|period| self.repetitions(period)).max().unwrap_or_default();
        let waits = self.recent.iter().rev().take(PERIOD).any(|identity| identity.starts_with(WAITING));
        if repeated >= if waits { PAUSE_WAITING } else { PAUSE } {
            LoopVerdict::Pause
        } else if repeated == NOTE {
            LoopVerdict::Note(repeated)
        } else {
            LoopVerdict::Fine
        }
    }

    /// How often the last `period` calls come in a row.
    fn repetitions(&self, period: usize) -> usize {
        let same = self.recent.iter().rev().zip(self.recent.iter().rev().skip(period)).take_while(|(a, b)| a == b);
        if self.recent.len() < period { 0 } else { same.count() / period + 1 }
    }
}

/// What makes two calls the same.
pub(crate) fn identity(tool: &str, arguments: &Object, content: &[Json]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tool.as_bytes());
    hasher.update(&[0]);
    hasher.update(canonical(&Json::Object(arguments.clone())).as_bytes());
    for block in content {
        hasher.update(&[0]);
        hasher.update(masked(&block.to_text()).as_bytes());
    }
    let hash = hasher.finalize().to_hex();
    let command = arguments.text("command").unwrap_or_default();
    let waits = tool == "process" || command.split(|c: char| !c.is_alphanumeric()).any(|word| word == "sleep");
    if waits { format!("{WAITING}{}", &hash[..16]) } else { hash[..16].to_owned() }
}

/// The text of a value with the keys of objects in order.
fn canonical(value: &Json) -> String {
    fn sorted(value: &Json) -> Json {
        match value {
            Json::Object(object) => {
                let mut pairs: Vec<_> = object.iter().map(|(key, value)| (key.to_owned(), sorted(value))).collect();
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                Json::Object(pairs.into_iter().collect())
            }
            Json::Array(items) => Json::Array(items.iter().map(sorted).collect()),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.clone(),
        }
    }
    sorted(value).to_text()
}

/// A text with each number, also of hexadecimal digits, as one sign.
fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let (word, end) = match word.char_indices().last() {
            Some((at, c)) if !c.is_ascii_alphanumeric() => word.split_at(at),
            Some(_) | None => (word, ""),
        };
        let is_hex = word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
        if is_hex {
            out.push('#');
        } else {
            let mut in_number = false;
            for c in word.chars() {
                if !c.is_ascii_digit() {
                    out.push(c);
                } else if !in_number {
                    out.push('#');
                }
                in_number = c.is_ascii_digit();
            }
        }
        out.push_str(end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(calls: &[&str]) -> Vec<LoopVerdict> {
        let mut guard = LoopGuard::default();
        let one = |call: &&str| {
            let told = guard.verdict_with(call);
            guard.push((*call).to_owned());
            assert_eq!(told, guard.verdict());
            told
        };
        calls.iter().map(one).collect()
    }

    #[test]
    fn the_third_is_noted_and_the_fifth_pauses() {
        use LoopVerdict::{Fine, Note, Pause};
        assert_eq!(verdicts(&["a"; 5]), [Fine, Fine, Note(3), Fine, Pause]);
        assert_eq!(verdicts(&["a", "a", "b", "a", "a"]), [Fine; 5]);
    }

    #[test]
    fn what_alternates_counts_alike() {
        let two: Vec<&str> = ["a", "b"].into_iter().cycle().take(10).collect();
        assert_eq!(verdicts(&two).iter().position(|v| *v == LoopVerdict::Note(3)), Some(5));
        assert_eq!(verdicts(&two).iter().position(|v| *v == LoopVerdict::Pause), Some(9));
        let three: Vec<&str> = ["a", "b", "c"].into_iter().cycle().take(15).collect();
        assert_eq!(verdicts(&three).iter().position(|v| *v == LoopVerdict::Pause), Some(14));
        let four: Vec<&str> = ["a", "b", "c", "d"].into_iter().cycle().take(30).collect();
        assert!(verdicts(&four).iter().all(|v| *v == LoopVerdict::Fine));
    }

    #[test]
    fn waiting_may_be_repeated_longer() {
        assert_eq!(verdicts(&["~a"; 10]).iter().position(|v| *v == LoopVerdict::Pause), Some(9));
    }

    #[test]
    fn the_order_of_arguments_numbers_and_addresses_do_not_count() {
        let content = |text: &str| vec![Json::from(text)];
        let ab = Object::new().with("a", "1").with("b", "2");
        let ba = Object::new().with("b", "2").with("a", "1");
        let of = |arguments: &Object, text: &str| identity("bash", arguments, &content(text));
        assert_eq!(of(&ab, "took 12.5 s at 0xdeadbeef01"), of(&ba, "took 3.25 s at 0xdeadbeef02"));
        assert_eq!(of(&ab, "commit 9f8e7d6c5b"), of(&ab, "commit 0123456789"));
        assert_ne!(of(&ab, "2 failed: one"), of(&ab, "2 failed: two"));
        assert_ne!(of(&ab, "x"), of(&Object::new().with("a", "1"), "x"));
        assert_ne!(identity("read", &ab, &[]), identity("grep", &ab, &[]));
        assert!(identity("bash", &Object::new().with("command", "sleep 5; curl x"), &[]).starts_with('~'));
        assert!(!identity("bash", &Object::new().with("command", "echo asleep"), &[]).starts_with('~'));
    }
}
