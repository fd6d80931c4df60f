//! A parsed command line.

use std::sync::Arc;

use crate::{
    search::SearchScope,
    shell::possible::{PossibleCommand, PossibleCommands},
};

/// Longest command line that is analysed, bytes.
pub(crate) const MAX_BYTES: usize = 4096;

/// Maximum number of commands in a line that is analysed.
pub(crate) const MAX_COMMANDS: usize = 10;

/// A command line that was parsed.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    /// Its simple commands, in order; commands of a substitution precede the command that contains it.
    pub(crate) commands: Vec<SimpleCommand>,
    /// How the commands are combined.
    pub(crate) tree: LineNode,
    /// The shell around the line, if the line was the argument of `bash -c`: the words before that argument.
    pub(crate) wrapper: Option<Vec<ShellWord>>,
}

/// How the commands of a line are combined.
#[derive(Debug, Clone)]
pub(crate) enum LineNode {
    /// One of [`CommandLine::commands`].
    Command(usize),
    /// The text between commands, as written.
    Text(String),
    /// Commands that run in sequence.
    List(Vec<(LineNode, Separator)>),
    /// Commands that run in parallel, each in a separate shell.
    Pipe(Vec<LineNode>),
    /// A loop, a condition or a group: texts and lists.
    Group {
        parts: Vec<LineNode>,
        /// Whether its changes end with it.
        subshell: bool,
        /// Whether it may run more than once.
        loops: bool,
    },
}

impl LineNode {
    fn holds(&self, index: usize) -> bool {
        match self {
            Self::Command(at) => *at == index,
            Self::Text(_) => false,
            Self::List(all) => all.iter().any(|(node, _)| node.holds(index)),
            Self::Pipe(all) | Self::Group { parts: all, .. } => all.iter().any(|node| node.holds(index)),
        }
    }
}

/// Programs that treat any input only as data.
const FILTERS: [&str; 22] = [
    "base64",
    "cat",
    "column",
    "comm",
    "cut",
    "egrep",
    "fgrep",
    "fold",
    "grep",
    "head",
    "jq",
    "less",
    "md5sum",
    "nl",
    "od",
    "rg",
    "rev",
    "sha256sum",
    "sort",
    "tail",
    "tr",
    "wc",
];

/// A simple command: its words, inputs and redirections.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimpleCommand {
    /// Its words; empty for a command that only assigns.
    pub(crate) words: Vec<ShellWord>,
    /// `NAME=value` before the command.
    pub(crate) assignments: Vec<Assignment>,
    /// Redirections to `/dev/null` or from one stream to the other, as written: `2>/dev/null`, `2>&1`.
    pub(crate) redirects: Vec<&'static str>,
    /// The file that is its input: `< FILE`.
    pub(crate) input: Option<ShellWord>,
    /// The files that it writes.
    pub(crate) outputs: Vec<Output>,
    /// Whether its input is a here-document or here-string; the line then cannot be rewritten.
    pub(crate) document: bool,
    /// The commands before it in its pipe; `None` if they are more than simple commands.
    pub(crate) piped: Option<Vec<usize>>,
    /// The separator after it.
    pub(crate) then: Separator,
    /// The commands it may run, for rules that deny or ask.
    pub(crate) possible: Possible,
}

/// A value assigned to a variable.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: ShellWord,
}

/// A file that is written.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// The operator: `>`, `2>>`, `&>`.
    pub(crate) operator: &'static str,
    pub(crate) file: ShellWord,
}

/// The commands that a command may run, as indices into the commands of its line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Possible {
    pub(crate) line: Arc<PossibleCommands>,
    pub(crate) own: Vec<usize>,
}

impl Possible {
    /// All commands of a line.
    pub(crate) fn all(line: PossibleCommands) -> Self {
        Self { own: (0..line.all.len()).collect(), line: Arc::new(line) }
    }

    /// The commands that it may run.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &PossibleCommand> {
        self.own.iter().filter_map(|index| self.line.all.get(*index))
    }
}

/// A word as the program receives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellWord {
    /// The text without quotes.
    pub(crate) text: String,
    /// The text as written.
    pub(crate) raw: String,
    /// Whether it was written without quotes and escapes.
    pub(crate) bare: bool,
    /// Whether it contains an unquoted `~` or `^`, which zsh may interpret as a pattern.
    pub(crate) zsh: bool,
    /// Whether it is a pattern of file names in its last part: `src/*.rs`.
    pub(crate) glob: bool,
    /// Its parts, if it consists of more than text.
    pub(crate) parts: Vec<WordPart>,
    /// Whether its text is unknown; `text` is then the word as written.
    pub(crate) unknown: bool,
    /// Set if it stands for file names that other commands of the line print.
    pub(crate) listed: Option<Arc<Listed>>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WordPart {
    Text(String),
    Value { value: Value, quoted: bool },
}

/// The value of a variable or a substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing is known about it.
    Unknown,
    /// The home directory.
    Home,
    /// The current directory.
    Directory,
    /// The top of the repository.
    Toplevel,
    /// One of these words, one after the other.
    OneOf(Vec<ShellWord>),
    /// The output of these commands: each line, or each word.
    Printed(Vec<usize>),
    /// A line read from the output of these commands.
    Line(Vec<usize>),
}

/// The directories in which other commands search for the file names they print.
pub(crate) type Listed = Vec<SearchScope>;

impl ShellWord {
    /// A word with exactly this text, written without quotes.
    pub(crate) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), raw: text.to_owned(), bare: true, ..Self::default() }
    }

    /// Whether the program receives exactly this text.
    pub(crate) fn is_exact(&self) -> bool {
        !self.glob && self.parts.is_empty() && !self.unknown && self.listed.is_none()
    }
}

/// The separator between a command and the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Separator {
    /// `|`
    Pipe,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`
    Next,
    /// The command is the last one.
    #[default]
    End,
}

impl Separator {
    /// The separator as written, with its blanks.
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
    /// The texts of the words.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.words.iter().map(|word| word.text.as_str()).collect()
    }

    /// Whether it has no input from a pipe, or treats that input only as data. Other programs may run their input
    /// (`sh`, `xargs`, `psql`) or write it to a file (`tee`), which their words do not show.
    pub(crate) fn takes_pipe_for_data(&self) -> bool {
        let reads_none = self.piped.as_ref().is_some_and(Vec::is_empty);
        reads_none || self.words.first().is_some_and(|word| FILTERS.contains(&word.text.as_str()))
    }

    /// Whether it consists only of words, each of which is a plain text.
    pub(crate) fn is_plain(&self) -> bool {
        self.input.is_none()
            && !self.document
            && self.assignments.is_empty()
            && self.outputs.is_empty()
            && !self.words.is_empty()
            && self.words.iter().all(ShellWord::is_exact)
    }

    fn render(&self, replaced: Option<&Vec<String>>) -> Option<String> {
        if self.document {
            return None;
        }
        let mut all: Vec<String> =
            self.assignments.iter().map(|assigned| format!("{}={}", assigned.name, assigned.value.raw)).collect();
        match replaced {
            Some(words) => all.push(shlex::try_join(words.iter().map(String::as_str)).ok()?),
            None => all.extend(self.words.iter().map(|word| word.raw.clone())),
        }
        all.extend(self.input.iter().map(|input| format!("< {}", input.raw)));
        all.extend(self.outputs.iter().map(|output| format!("{} {}", output.operator, output.file.raw)));
        all.extend(self.redirects.iter().map(|redirect| (*redirect).to_owned()));
        Some(all.join(" "))
    }
}

impl CommandLine {
    /// The rewritten line. Each command may be replaced by other words.
    pub(crate) fn render(&self, replaced: &[Option<Vec<String>>]) -> Option<String> {
        // A command in a substitution is a part of a word.
        let apart = |index: usize| !self.tree.holds(index);
        if replaced.iter().enumerate().any(|(index, words)| words.is_some() && apart(index)) {
            return None;
        }
        let text = self.node(&self.tree, replaced)?;
        match &self.wrapper {
            None => Some(text),
            Some(words) => shlex::try_join(words.iter().map(|word| word.text.as_str()).chain([text.as_str()])).ok(),
        }
    }

    fn node(&self, node: &LineNode, replaced: &[Option<Vec<String>>]) -> Option<String> {
        match node {
            LineNode::Command(index) => {
                self.commands.get(*index)?.render(replaced.get(*index).and_then(Option::as_ref))
            }
            LineNode::Text(text) => Some(text.clone()),
            LineNode::List(all) => {
                let one = |(node, then): &(LineNode, Separator)| Some(self.node(node, replaced)? + then.written());
                all.iter().map(one).collect()
            }
            LineNode::Pipe(all) => {
                Some(all.iter().map(|node| self.node(node, replaced)).collect::<Option<Vec<_>>>()?.join(" | "))
            }
            LineNode::Group { parts, .. } => parts.iter().map(|node| self.node(node, replaced)).collect(),
        }
    }
}
