//! Derives a session's title from its prompts, if it has no explicit one.
//!
//! The first prompt that names a subject ([`intent`]) becomes the title. A later prompt replaces it if it is a separate
//! task ([`task`]), because the session then has a new subject. A prompt that continues the current task (`yes`,
//! `make it blue`, `run the tests`) does not change the title.

use crate::shorten::{Shown, verbatim_line};

/// The source of a title, weakest first; a title from a stronger source replaces one from a weaker source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// No title.
    #[default]
    Nothing,
    /// A prompt that names no subject.
    Filler,
    /// The first activity of the agent.
    Activity,
    /// A prompt's intent.
    Intent,
    /// The name set by the agent or the user.
    Given,
}

/// Longest title, characters.
const CHARS: usize = 80;

/// Beginnings of prompts that do not describe the subject.
const COURTESIES: &[&str] = &[
    "please",
    "pls",
    "hi",
    "hello",
    "hey",
    "ok",
    "okay",
    "so",
    "now",
    "then",
    "and",
    "also",
    "just",
    "thanks",
    "can you",
    "could you",
    "would you",
    "will you",
    "can we",
    "could we",
    "i want you to",
    "i'd like you to",
    "i would like you to",
    "i need you to",
    "i want to",
    "i need to",
    "let's",
    "lets",
    "let us",
    "go ahead and",
];

/// Prompts that name no subject.
const EMPTY: &[&str] = &[
    "yes",
    "y",
    "no",
    "ok",
    "okay",
    "sure",
    "go",
    "go on",
    "go ahead",
    "continue",
    "proceed",
    "do it",
    "do that",
    "try again",
    "again",
    "retry",
    "next",
    "more",
    "thanks",
    "thank you",
    "hi",
    "hello",
    "hey",
    "test",
    "stop",
    "wait",
    "good",
    "great",
    "perfect",
    "fix it",
    "fix this",
    "fix that",
    "keep going",
    "carry on",
    "resume",
];

/// First words of prompts that process existing work.
const CHORES: &[&str] = &[
    "build",
    "check",
    "commit",
    "explain",
    "format",
    "lint",
    "list",
    "merge",
    "print",
    "push",
    "re-run",
    "rebase",
    "rebuild",
    "rerun",
    "retry",
    "revert",
    "run",
    "show",
    "summarise",
    "summarize",
    "test",
    "undo",
    "verify",
];

/// Words that refer to earlier messages if they occur near the beginning.
const BACKWARD: &[&str] = &[
    "above", "again", "both", "it", "it's", "its", "one", "previous", "same", "that", "that's", "their", "them",
    "these", "they", "this", "those",
];
/// Number of words at the beginning of a prompt in which such a word refers to earlier messages. Later in the prompt it
/// refers to the prompt itself, as in `add a flag that prints JSON`.
const BEGINNING: usize = 3;

/// Words that name nothing.
const FUNCTION_WORDS: &[&str] = &[
    "a", "actually", "all", "am", "an", "and", "any", "are", "as", "at", "be", "better", "but", "by", "can", "could",
    "did", "do", "does", "don't", "else", "even", "for", "from", "get", "good", "great", "had", "has", "have", "he",
    "here", "how", "i", "if", "in", "instead", "into", "is", "just", "let", "like", "looks", "make", "may", "me",
    "more", "much", "my", "need", "no", "not", "now", "of", "off", "ok", "okay", "on", "only", "or", "other", "our",
    "out", "please", "really", "should", "so", "some", "still", "than", "the", "then", "there", "to", "too", "up",
    "us", "use", "very", "want", "was", "way", "we", "were", "what", "when", "where", "which", "who", "why", "will",
    "with", "would", "yes", "yet", "you", "your",
];
/// Minimum number of meaningful words in a prompt that names its subject.
const SUBJECT_WORDS: usize = 3;

/// The subject of a prompt, in one line: its first sentence without courtesies. `None` if it names no subject, like
/// `continue`.
#[must_use]
pub fn intent(prompt: &Shown<'_>) -> Option<String> {
    subject(prompt.as_str()).and_then(titled)
}

/// The intent of a prompt, if the prompt is a separate task and can be understood without the earlier conversation.
#[must_use]
pub fn task(prompt: &Shown<'_>) -> Option<String> {
    subject(prompt.as_str()).filter(|line| stands_alone(line)).and_then(titled)
}

/// Whether a line names its subject: it does not refer to earlier messages, requests no chore, and contains a file
/// name, an identifier, or enough meaningful words.
fn stands_alone(line: &str) -> bool {
    let words = line
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '_' | '`')).to_lowercase());
    let is_backward = |word: &String| BACKWARD.contains(&word.as_str());
    if words.clone().next().is_none_or(|first| CHORES.contains(&first.as_str()))
        || words.clone().take(BEGINNING).any(|word| is_backward(&word))
        || words.clone().next_back().is_some_and(|last| matches!(last.as_str(), "again" | "too" | "instead"))
    {
        return false;
    }
    let names_thing = |word: &str| {
        let inner = word.trim_matches('`');
        word.starts_with('`') || inner.contains(['/', '_', '.']) || inner.contains("::")
    };
    if words.clone().any(|word| names_thing(&word)) {
        return true;
    }
    let meanings: usize = words
        .filter(|word| !word.is_empty() && !FUNCTION_WORDS.contains(&word.as_str()) && !is_backward(word))
        // In a script without spaces, two characters are about one word.
        .map(|word| if word.is_ascii() { 1 } else { word.chars().count().div_ceil(2) })
        .sum();
    meanings >= SUBJECT_WORDS
}

/// The first sentence of a prompt, without courtesies, unless it names no subject.
fn subject(prompt: &str) -> Option<&str> {
    let line = without_markup(prompt).lines().map(str::trim).find(|line| says_something(line))?;
    let mut rest = line.trim_start_matches(['#', '-', '*', '>', ' ']);
    while let Some(shorter) = COURTESIES.iter().find_map(|courtesy| without(rest, courtesy)) {
        rest = shorter;
    }
    let bare = first_sentence(rest).trim_end_matches(['.', '!', '?', ',', ';', ':']).trim();
    let is_empty = bare.is_empty() || EMPTY.iter().any(|empty| bare.eq_ignore_ascii_case(empty));
    (!is_empty).then_some(bare)
}

/// A line as a title.
fn titled(bare: &str) -> Option<String> {
    let mut letters = bare.chars();
    // A path or a name keeps its spelling.
    let first = letters.next()?;
    let plain = bare.split_whitespace().next().is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    let title = if plain { format!("{}{}", first.to_ascii_uppercase(), letters.as_str()) } else { bare.to_owned() };
    Some(verbatim_line(&title, CHARS))
}

/// Skips the markup that an agent or a shell puts before a prompt: `<context>…</context>`.
fn without_markup(prompt: &str) -> &str {
    let mut rest = prompt.trim_start();
    while let Some(after) = rest.strip_prefix('<') {
        let Some(name) = after.split(['>', ' ', '\n']).next().filter(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        }) else {
            break;
        };
        let Some((_, behind)) = after.split_once(&format!("</{name}>")) else { break };
        rest = behind.trim_start();
    }
    rest
}

fn says_something(line: &str) -> bool {
    !line.starts_with("```") && line.chars().any(char::is_alphanumeric)
}

fn first_sentence(line: &str) -> &str {
    let end = [". ", "! ", "? "].iter().filter_map(|stop| line.find(stop)).min();
    match end {
        // `e.g. ` and the like are not sentences.
        Some(end) if end >= 12 => line.get(..end).unwrap_or(line),
        Some(_) | None => line,
    }
}

fn without<'a>(text: &'a str, courtesy: &str) -> Option<&'a str> {
    let head = text.get(..courtesy.len())?;
    let rest = text.get(courtesy.len()..)?;
    let apart = rest.starts_with([' ', ',', '!', '.', ':']);
    (head.eq_ignore_ascii_case(courtesy) && apart).then(|| rest.trim_start_matches([' ', ',', '!', '.', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(prompt: &str) -> Option<String> {
        super::intent(&Shown::of(prompt))
    }

    fn task(prompt: &str) -> Option<String> {
        super::task(&Shown::of(prompt))
    }

    #[track_caller]
    fn check(prompt: &str, title: Option<&str>) {
        assert_eq!(intent(prompt).as_deref(), title, "{prompt:?}");
    }

    #[test]
    fn a_title_is_the_first_sentence_without_courtesies() {
        check("fix the login bug", Some("Fix the login bug"));
        check("Hi! Could you please fix the login bug? It is urgent.", Some("Fix the login bug"));
        check("ok, now let's add tests for the parser. Then run them.", Some("Add tests for the parser"));
        check("I'd like you to refactor src/main.rs", Some("Refactor src/main.rs"));
        check("src/main.rs panics on empty input", Some("src/main.rs panics on empty input"));
        check("# Add dark mode\n\nDetails follow", Some("Add dark mode"));
        check("<system-reminder>be nice</system-reminder>\nrun the tests", Some("Run the tests"));
        check("日本語のテストを書いて", Some("日本語のテストを書いて"));
        check("```\ncode\n```\nexplain this", Some("Code"));
    }

    #[test]
    fn prompts_without_a_subject_have_no_title() {
        for prompt in ["", "  \n", "continue", "Yes.", "ok", "please continue", "go ahead!", "...", "hi", "thanks!"] {
            check(prompt, None);
        }
    }

    #[test]
    fn a_prompt_that_continues_another_task_is_not_a_new_task() {
        for prompt in [
            "Now add dark mode to the settings page",
            "fix the login bug",
            "refactor src/main.rs",
            "Rename `Foo` please",
            "add a flag that prints JSON",
            "why does the parser drop comments?",
            "ok, let's write the release notes for 2.0",
            "日本語のテストを書いて",
        ] {
            assert_eq!(task(prompt), intent(prompt), "{prompt}");
            assert!(task(prompt).is_some(), "{prompt}");
        }
        for prompt in [
            "",
            "yes",
            "continue",
            "thanks!",
            "go ahead and do it",
            "make it blue",
            "fix that bug in src/main.rs",
            "this fails with an error on line 12",
            "do the same for the parser module",
            "run the whole test suite again",
            "commit all changes and push to origin",
            "Looks good, thanks",
            "why?",
            "what do you think",
            "use tabs instead",
            "はい",
            "<context>src/main.rs</context>\nyes",
        ] {
            assert_eq!(task(prompt), None, "{prompt}");
        }
    }

    #[test]
    fn long_titles_are_truncated() {
        assert_eq!(intent(&"word ".repeat(100)).unwrap().chars().count(), CHARS);
        assert_eq!(intent(&format!("<a>{}", "x".repeat(10))), Some(format!("<a>{}", "x".repeat(10))));
    }

    proptest::proptest! {
        #[test]
        fn any_prompt_gives_a_bounded_one_line_title_or_none(prompt in "(?s).{0,200}") {
            if let Some(title) = intent(&prompt) {
                assert!(!title.contains('\n') && title.chars().count() <= CHARS && !title.is_empty(), "{title:?}");
            }
            if let Some(title) = task(&prompt) {
                assert_eq!(Some(title), intent(&prompt), "a task is an intent");
            }
        }
    }
}
