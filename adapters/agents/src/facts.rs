//! What is known of one agent, as plain data: a struct without defaults, so that a new agent does not compile until
//! every fact of it is stated.

use std::path::PathBuf;

use events::Provider;

use crate::{hooks::Hooks, telemetry::Telemetry};

/// An agent whose processes and files are observed.
#[derive(Debug)]
pub struct Agent {
    /// Which one.
    pub provider: Provider,
    /// The names of its program, the usual one first, and of its script where an interpreter runs it.
    pub programs: &'static [&'static str],
    /// A part of the path of its script, where an interpreter runs it under another name.
    pub script_below: Option<&'static str>,
    /// Where its version is found.
    pub version: VersionSources,
    /// The word behind its name with which it serves the sessions of other processes.
    pub daemon_word: Option<&'static str>,
    /// The options, and the words behind its name, with which it does one prompt and nobody can type into it.
    pub headless: &'static [&'static str],
    /// Whether its files tell that, and tell when it changes.
    pub tells_headless: bool,
    /// The words behind its name with which it holds a conversation.
    pub commands: Commands,
    /// Variables that it sets for what it runs: whoever has one was started by it.
    pub descent_variables: &'static [&'static str],
    /// Where it keeps its files.
    pub home: Home,
    /// Its files of conversations.
    pub transcripts: Transcripts,
    /// The words that take a session up again, before its id; `None` where that does harm or is not known.
    pub resume: Option<&'static str>,
    /// The option that names the model with it, where the names are those of its files.
    pub resume_model: Option<&'static str>,
    /// What taking a session up again does to it, where that does harm.
    pub resume_harm: Option<&'static str>,
    /// The bytes of the key that interrupts its turn.
    pub interrupt_key: &'static [u8],
    /// The versions, as ranges, whose dialogs may be answered by keys: from the oldest with which that was tested up to
    /// the next version that may change dialogs as a whole. Within a range, `terminal` answers only dialogs whose whole
    /// layout it knows. None where no dialog is answered by keys.
    pub tested_dialogs: &'static [&'static str],
    /// Where it keeps the MCP servers of the user; `None` where that is not known here.
    pub mcp_settings: Option<McpSettings>,
    /// How it is driven over a protocol; `None` where it speaks none that is known here.
    pub drive: Option<Drive>,
    /// Its hooks; `None` for an agent without.
    pub hooks: Option<Hooks>,
    /// The value of OpenTelemetry's `gen_ai.provider.name` for it; `None` where its models are of several providers.
    pub gen_ai_provider: Option<&'static str>,
    /// Its telemetry; `None` for an agent that sends none.
    pub telemetry: Option<Telemetry>,
}

/// With which words behind its name a program holds a conversation. Without a word it does.
#[derive(Debug)]
pub enum Commands {
    /// With all but these, and those that no agent talks with: `login`, `update`.
    AllBut(&'static [&'static str]),
    /// With these only: other programs have its name.
    Only(&'static [&'static str]),
}

/// Where an agent keeps its files.
#[derive(Debug)]
pub struct Home {
    /// The variable that names the directory.
    pub variable: &'static str,
    /// The directory below what the variable names; empty for that itself.
    pub below_variable: &'static str,
    /// The directories below the user's home, when the variable is not set.
    pub usual: &'static [&'static str],
}

/// Where an agent keeps the MCP servers of the user.
#[derive(Debug)]
pub struct McpSettings {
    /// The files, relative to its home, as JSON or TOML by their names.
    pub files: &'static [&'static str],
    /// The key of the table with an entry for each server.
    pub servers: &'static str,
    /// The command that removes one, before its name.
    pub remove: &'static str,
}

/// Where an agent keeps its conversations.
#[derive(Debug)]
pub struct Transcripts {
    /// The directories below its home that hold them.
    pub directories: &'static [&'static str],
    /// What is common to the paths of all transcripts, and of no other file that is read.
    pub path: TranscriptPath,
}

/// What tells a transcript from the other files of an agent that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptPath {
    /// The end of its name.
    EndsWith(&'static str),
    /// A part of its path, such as a directory between slashes.
    Contains(&'static str),
}

/// Where an agent's version is found.
#[derive(Debug)]
pub struct VersionSources {
    /// Its package on npm, whose `package.json` has the version.
    pub package: Option<&'static str>,
    /// The end of a directory in which the program's file name is its version.
    pub directory: Option<&'static str>,
    /// What it prints for `--version`; `None` where that was not looked at.
    pub printed: Option<PrintedVersion>,
}

/// The line in which an agent prints its version.
#[derive(Debug)]
pub struct PrintedVersion {
    /// What stands before it, one of these.
    pub before: &'static [&'static str],
    /// What stands behind it.
    pub behind: &'static str,
}

/// How an agent is driven over a protocol.
#[derive(Debug)]
pub struct Drive {
    /// The protocol.
    pub protocol: Protocol,
    /// Its program and the words that make it speak the protocol.
    pub command: &'static [&'static str],
    /// Whether a request for an edit names every file it changes, so that rules may decide about it.
    pub names_edits: bool,
    /// Whether a request for a command tells in the agent's own words in which directory it runs, so that rules may decide
    /// about it.
    pub names_directory: bool,
}

/// The protocols by which agents are driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Lines of JSON on standard input and output, Claude Code's.
    StreamJson,
    /// The app server of Codex: JSON-RPC without a version.
    AppServer,
    /// The Agent Client Protocol.
    Acp,
}

impl Agent {
    /// Whether its conversations are read from its files.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        !self.transcripts.directories.is_empty()
    }

    /// The command line that takes a session up again, for a person to type.
    #[must_use]
    pub fn resume_command(&self, session: &str) -> Option<String> {
        let plain = !session.is_empty() && session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        self.resume.filter(|_| plain).map(|words| format!("{words} {session}"))
    }

    /// The word behind its name that takes a session up again.
    #[must_use]
    pub fn resume_word(&self) -> Option<&'static str> {
        self.resume?.split(' ').nth(1)
    }

    /// The session that a command line of this agent takes up again, if it names one: the counterpart of
    /// [`Self::resume_command`]. One that is to be forked is not taken up.
    #[must_use]
    pub fn resumed<'a>(&self, command: &'a [String]) -> Option<&'a str> {
        let (program, option) = (self.resume?.split(' ').next()?, self.resume_word()?);
        let (first, words) = command.split_first()?;
        let forks = words.iter().any(|word| word.starts_with("--fork"));
        if forks || std::path::Path::new(first).file_name()? != program {
            return None;
        }
        let id = words.iter().enumerate().find_map(|(at, word)| {
            let attached = word.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
            attached.or_else(|| words.get(at + 1).filter(|_| word == option).map(String::as_str))
        })?;
        self.resume_command(id).filter(|_| !id.starts_with('-')).map(|_| id)
    }

    /// Whether it does one prompt and takes no other, by the words behind its name.
    pub fn is_headless<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> bool {
        let words = words.into_iter().take_while(|word| *word != "--");
        words.enumerate().any(|(at, word)| {
            let option = word.split_once('=').map_or(word, |(option, _)| option);
            self.headless.contains(&option) && (at == 0 || option.starts_with('-'))
        })
    }

    /// The same as words, with the model where there is an option for it.
    #[must_use]
    pub fn resume_words(&self, session: &str, model: Option<&str>) -> Option<Vec<String>> {
        let mut words: Vec<String> = self.resume_command(session)?.split(' ').map(str::to_owned).collect();
        // A name that begins like an option would be one.
        if let (Some(option), Some(model)) = (self.resume_model, model.filter(|model| !model.starts_with('-'))) {
            words.extend([option.to_owned(), model.to_owned()]);
        }
        Some(words)
    }
}

impl Commands {
    /// Whether a program called with this word holds a conversation.
    #[must_use]
    pub fn converse(&self, word: &str) -> bool {
        match self {
            Self::AllBut(others) => !others.contains(&word),
            Self::Only(these) => word.starts_with('-') || these.contains(&word),
        }
    }
}

impl TranscriptPath {
    /// Whether this is the path of a transcript.
    #[must_use]
    pub fn matches(self, path: &str) -> bool {
        match self {
            Self::EndsWith(end) => path.ends_with(end),
            Self::Contains(part) => path.contains(part),
        }
    }
}

impl PrintedVersion {
    /// The version in a line; `None` when the line is another one.
    #[must_use]
    pub fn in_line<'t>(&self, line: &'t str) -> Option<&'t str> {
        let rest = line.trim().strip_suffix(self.behind)?;
        self.before.iter().find_map(|before| rest.strip_prefix(before))
    }
}

impl Home {
    /// The directories in an environment; none when neither the variable nor HOME is set.
    pub fn directories(&self, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
        match variable(self.variable) {
            Some(dir) if self.below_variable.is_empty() => vec![dir],
            Some(dir) => vec![dir.join(self.below_variable)],
            None => {
                let home = variable("HOME");
                self.usual.iter().filter_map(|below| Some(home.as_ref()?.join(below))).collect()
            }
        }
    }
}
