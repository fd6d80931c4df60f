//! A command line that was understood.

use serde::Serialize;

/// Longest command line that is analysed, bytes.
pub(crate) const MAX_BYTES: usize = 4096;

/// Maximum number of commands in a line that is analysed.
pub(crate) const MAX_COMMANDS: usize = 10;

/// A command line that was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// Its simple commands, in order.
    pub(crate) commands: Vec<SimpleCommand>,
    /// The shell around it, when it was the word of `bash -c`: its words before that one.
    pub(crate) wrapper: Option<Vec<ShellWord>>,
}

/// A simple command: words, a file to read, and redirections to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// At least one.
    pub(crate) words: Vec<ShellWord>,
    /// As they are written: `2>/dev/null`, `>/dev/null`, `2>&1`.
    pub(crate) redirects: Vec<&'static str>,
    /// The file that is its input: `< FILE`.
    pub(crate) input: Option<ShellWord>,
    /// What joins it to the next command.
    pub(crate) then: Separator,
}

/// A word as the program gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ShellWord {
    /// Without its quotes.
    pub(crate) text: String,
    /// Whether it was written without any quote or escape.
    pub(crate) bare: bool,
    /// Whether it has an unquoted `~` or `^`, which zsh may read as a pattern.
    pub(crate) zsh: bool,
    /// Whether it is a pattern of file names, in its last part: `src/*.rs`.
    pub(crate) glob: bool,
    /// The word as it is written, when it holds the exit status `$?`, of which nothing more is known than that it is
    /// a number.
    pub(crate) status: Option<String>,
}

impl ShellWord {
    /// Whether the program gets just this text.
    pub(crate) const fn is_exact(&self) -> bool {
        !self.glob && self.status.is_none()
    }
}

/// What joins a command to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// `|`
    Pipe,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`
    Next,
    /// It is the last one.
    End,
}

impl Separator {
    /// As it is written, with its blanks.
    pub(crate) const fn written(self) -> &'static str {
        match self {
            Self::Pipe => " | ",
            Self::And => " && ",
            Self::Or => " || ",
            Self::Next => "; ",
            Self::End => "",
        }
    }
}

impl SimpleCommand {
    /// The words' texts.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.words.iter().map(|word| word.text.as_str()).collect()
    }
}

impl CommandLine {
    /// The line rewritten. A command may be replaced by other words.
    pub(crate) fn render(&self, replaced: &[Option<Vec<String>>]) -> Option<String> {
        // A quoted pattern would be another word.
        let join = |words: &[ShellWord]| {
            let one = |word: &ShellWord| match (word.glob, &word.status) {
                (true, _) => Some(word.text.clone()),
                (false, Some(written)) => Some(written.clone()),
                (false, None) => shlex::try_quote(&word.text).ok().map(|text| text.into_owned()),
            };
            words.iter().map(one).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
        };
        let mut text = String::new();
        for (index, command) in self.commands.iter().enumerate() {
            let words = match replaced.get(index) {
                Some(Some(words)) => shlex::try_join(words.iter().map(String::as_str)).ok()?,
                Some(None) | None => join(&command.words)?,
            };
            text.push_str(&words);
            if let Some(input) = &command.input {
                text.push_str(" < ");
                text.push_str(&shlex::try_quote(&input.text).ok()?);
            }
            for redirect in &command.redirects {
                text.push(' ');
                text.push_str(redirect);
            }
            text.push_str(command.then.written());
        }
        match &self.wrapper {
            None => Some(text),
            Some(words) => shlex::try_join(words.iter().map(|word| word.text.as_str()).chain([text.as_str()])).ok(),
        }
    }
}
