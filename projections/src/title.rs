//! Derives a session's title from its prompts, when it has no explicit one.

use crate::shorten::one_line;

/// Where a title comes from, weakest first; a title from a stronger source replaces one from a weaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// There is none.
    #[default]
    Nothing,
    /// A prompt that names no subject.
    Filler,
    /// What the agent did first.
    Activity,
    /// A prompt's intent.
    Intent,
    /// The agent's or user's name for it.
    Given,
}

/// Longest title, characters.
const CHARS: usize = 80;

/// What a prompt begins with that says nothing about its subject.
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

/// What a prompt is about, in one line: its first sentence without courtesies. `None` when it names no
/// subject, as `continue` does.
#[must_use]
pub fn intent(prompt: &str) -> Option<String> {
    let line = without_markup(prompt).lines().map(str::trim).find(|line| says_something(line))?;
    let mut rest = line.trim_start_matches(['#', '-', '*', '>', ' ']);
    while let Some(shorter) = COURTESIES.iter().find_map(|courtesy| without(rest, courtesy)) {
        rest = shorter;
    }
    let bare = first_sentence(rest).trim_end_matches(['.', '!', '?', ',', ';', ':']).trim();
    if bare.is_empty() || EMPTY.iter().any(|empty| bare.eq_ignore_ascii_case(empty)) {
        return None;
    }
    let mut letters = bare.chars();
    // A path or a name keeps its spelling.
    let first = letters.next()?;
    let plain = bare.split_whitespace().next().is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    let title = if plain { format!("{}{}", first.to_ascii_uppercase(), letters.as_str()) } else { bare.to_owned() };
    Some(one_line(&title, CHARS))
}

/// Behind what an agent or a shell puts before a prompt: `<context>…</context>`.
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

    #[track_caller]
    fn check(prompt: &str, title: Option<&str>) {
        assert_eq!(intent(prompt).as_deref(), title, "{prompt:?}");
    }

    #[test]
    fn the_first_sentence_without_courtesies() {
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
    fn prompts_that_name_no_subject() {
        for prompt in ["", "  \n", "continue", "Yes.", "ok", "please continue", "go ahead!", "...", "hi", "thanks!"] {
            check(prompt, None);
        }
    }

    #[test]
    fn long_ones_are_cut() {
        assert_eq!(intent(&"word ".repeat(100)).unwrap().chars().count(), CHARS);
        assert_eq!(intent(&format!("<a>{}", "x".repeat(10))), Some(format!("<a>{}", "x".repeat(10))));
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_is_one_line(prompt in "(?s).{0,200}") {
            if let Some(title) = intent(&prompt) {
                assert!(!title.contains('\n') && title.chars().count() <= CHARS && !title.is_empty(), "{title:?}");
            }
        }
    }
}
