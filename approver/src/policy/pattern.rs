//! The words of a command in a rule.
//!
//! A rule that allows matches exactly these words. A rule that denies or asks matches every command with the same
//! effect, in any spelling (`programs`), among the commands that the line may run (`shell`).

use crate::{
    programs::{Invocation, base_name},
    shell::PossibleCommand,
};

/// The words of a command in a rule.
#[derive(Debug, Clone)]
pub(super) struct CommandPattern {
    words: Vec<PatternWord>,
    /// Whether any number of plain words may follow.
    open: bool,
}

#[derive(Debug, Clone)]
enum PatternWord {
    Exactly(String),
    /// Any plain word that is not an option.
    Any,
}

impl CommandPattern {
    /// # Errors
    /// If it has no first word, or `...` anywhere but at the end.
    pub(super) fn new(words: &[String]) -> Result<Self, String> {
        let (open, words) = match words.split_last() {
            Some((last, rest)) if last == "..." => (true, rest),
            Some(_) | None => (false, words),
        };
        match words.first().map(String::as_str) {
            None | Some("*" | "...") => return Err("`command` must begin with the name of a program".into()),
            Some(_) => {}
        }
        if words.iter().any(|word| word == "...") {
            return Err("`...` is only allowed as the last word of `command`".into());
        }
        let word = |word: &String| if word == "*" { PatternWord::Any } else { PatternWord::Exactly(word.clone()) };
        Ok(Self { words: words.iter().map(word).collect(), open })
    }

    /// The words as in a rule.
    pub(super) fn text(&self) -> String {
        let words = self.words.iter().map(|word| word.exactly().unwrap_or("*"));
        words.chain(self.open.then_some("...")).collect::<Vec<_>>().join(" ")
    }

    /// Whether the words match exactly.
    pub(super) fn allows(&self, words: &[&str]) -> bool {
        let enough = if self.open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        enough
            && self.words.iter().zip(words).all(|(pattern, word)| match pattern {
                PatternWord::Exactly(text) => text == word,
                PatternWord::Any => is_plain(word) && !word.starts_with('-'),
            })
            && words[self.words.len()..].iter().all(|word| is_plain(word))
    }

    /// Whether a command that a line may run has the effect of these words.
    pub(super) fn shows(&self, command: &PossibleCommand) -> bool {
        let named: Vec<&str> = self.words.iter().filter_map(PatternWord::exactly).collect();
        let Some((first, rest)) = named.split_first() else { return false };
        let (program, words) = (base_name(first), command.texts());
        let starts = (0..words.len()).filter(|at| *at == 0 || !command.certain);
        starts.filter(|at| is_program(words[*at], &program)).any(|at| {
            let given = Invocation::parse(&program, &words[at + 1..]);
            if given.may_be_alias(&program) {
                let mut later = words[at + 1..].iter();
                return rest.iter().all(|named| later.any(|word| word == named));
            }
            given.includes(&Invocation::parse(&program, rest))
        })
    }
}

/// Whether a word is the name of a program, or a pattern of file names that may match it.
fn is_program(word: &str, program: &str) -> bool {
    let name = base_name(word);
    let pattern = name.contains(['*', '?', '[']);
    name == program || pattern && globset::Glob::new(&name).is_ok_and(|glob| glob.compile_matcher().is_match(program))
}

impl PatternWord {
    fn exactly(&self) -> Option<&str> {
        match self {
            Self::Exactly(text) => Some(text),
            Self::Any => None,
        }
    }
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_./:,=+@%-".contains(c))
}
