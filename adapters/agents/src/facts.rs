//! The facts about one agent, as plain data: a struct without defaults, so that a new agent does not compile until
//! every fact is stated.

use std::path::PathBuf;

use events::Provider;

use crate::{hooks::Hooks, telemetry::Telemetry};

/// An agent whose processes and files are observed.
#[derive(Debug)]
pub struct Agent {
    /// The provider.
    pub provider: Provider,
    /// The names of its program, the usual one first, and of its script if an interpreter runs it.
    pub programs: &'static [&'static str],
    /// A part of the path of its script, if an interpreter runs the script under another name.
    pub script_below: Option<&'static str>,
    /// The sources of its version.
    pub version: VersionSources,
    /// The subcommand that serves the sessions of other processes.
    pub daemon_word: Option<&'static str>,
    /// The options and subcommands that run one prompt, so that the user cannot type into it.
    pub headless: &'static [&'static str],
    /// Whether its files record that a session is headless, including changes.
    pub tells_headless: bool,
    /// The subcommands that hold a conversation.
    pub commands: Commands,
    /// Variables that it sets for the programs it runs: a process with one of them was started by the agent.
    pub descent_variables: &'static [&'static str],
    /// The directory of its files.
    pub home: Home,
    /// Its conversation files.
    pub transcripts: Transcripts,
    /// The words that resume a session, before its id; `None` if that does harm or is not known.
    pub resume: Option<&'static str>,
    /// The option that sets the model of a resumed session; `None` if the option expects other names than those in the
    /// agent's files.
    pub resume_model: Option<&'static str>,
    /// The harm that resuming a session does to it, if any.
    pub resume_harm: Option<&'static str>,
    /// The bytes of the key that interrupts its turn.
    pub interrupt_key: &'static [u8],
    /// The version ranges whose dialogs may be answered by keys: from the oldest tested version up to the next version
    /// that may change dialogs as a whole. Within a range, `terminal` answers only dialogs whose whole layout it knows.
    /// Empty if no dialog is answered by keys.
    pub tested_dialogs: &'static [&'static str],
    /// The location of the user's MCP servers; `None` if it is not known.
    pub mcp_settings: Option<McpSettings>,
    /// How it is driven over a protocol; `None` if it supports no known protocol.
    pub drive: Option<Drive>,
    /// Its hooks; `None` for an agent without hooks.
    pub hooks: Option<Hooks>,
    /// Its value of OpenTelemetry's `gen_ai.provider.name`; `None` if its models come from several providers.
    pub gen_ai_provider: Option<&'static str>,
    /// Its telemetry; `None` for an agent that sends none.
    pub telemetry: Option<Telemetry>,
}

/// The subcommands with which a program holds a conversation. Without a subcommand it always does.
#[derive(Debug)]
pub enum Commands {
    /// All subcommands except these, and except those that never hold a conversation: `login`, `update`.
    AllBut(&'static [&'static str]),
    /// Only these: other programs have the same name.
    Only(&'static [&'static str]),
}

/// The directory in which an agent keeps its files.
#[derive(Debug)]
pub struct Home {
    /// The variable that names the directory.
    pub variable: &'static str,
    /// The directory below the one that the variable names; empty for that directory itself.
    pub below_variable: &'static str,
    /// The directories below the user's home, if the variable is not set.
    pub usual: &'static [&'static str],
}

/// The location of the user's MCP servers in an agent's settings.
#[derive(Debug)]
pub struct McpSettings {
    /// The files, relative to the agent's home; their names determine JSON or TOML.
    pub files: &'static [&'static str],
    /// The key of the table that has one entry per server.
    pub servers: &'static str,
    /// The command that removes a server, before the server's name.
    pub remove: &'static str,
}

/// The location of an agent's conversations.
#[derive(Debug)]
pub struct Transcripts {
    /// The directories below its home that contain the transcripts.
    pub directories: &'static [&'static str],
    /// The common part of the paths of all transcripts, which no other file that is read has.
    pub path: TranscriptPath,
}

/// Distinguishes transcripts from the other files of an agent that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptPath {
    /// The end of the file name.
    EndsWith(&'static str),
    /// A part of the path, such as a directory between slashes.
    Contains(&'static str),
}

/// The sources of an agent's version.
#[derive(Debug)]
pub struct VersionSources {
    /// Its package on npm, whose `package.json` contains the version.
    pub package: Option<&'static str>,
    /// The end of a directory in which the name of the program's file is its version.
    pub directory: Option<&'static str>,
    /// The output of `--version`; `None` if that was not examined.
    pub printed: Option<PrintedVersion>,
}

/// The line in which an agent prints its version.
#[derive(Debug)]
pub struct PrintedVersion {
    /// Possible texts before the version.
    pub before: &'static [&'static str],
    /// The text after the version.
    pub behind: &'static str,
}

/// How an agent is driven over a protocol.
#[derive(Debug)]
pub struct Drive {
    /// The protocol.
    pub protocol: Protocol,
    /// The program and the words that start it with the protocol.
    pub command: &'static [&'static str],
    /// Whether a request for an edit names every file it changes, so that rules may decide about it.
    pub names_edits: bool,
    /// Whether a request for a command contains, from the agent, the directory in which it runs, so that rules may
    /// decide about it.
    pub names_directory: bool,
}

/// The protocols that drive agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Claude Code's protocol: lines of JSON on standard input and output.
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

    /// The command line that resumes a session, for the user to type.
    #[must_use]
    pub fn resume_command(&self, session: &str) -> Option<String> {
        let plain = !session.is_empty() && session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        self.resume.filter(|_| plain).map(|words| format!("{words} {session}"))
    }

    /// The subcommand or option that resumes a session.
    #[must_use]
    pub fn resume_word(&self) -> Option<&'static str> {
        self.resume?.split(' ').nth(1)
    }

    /// The session that a command line of this agent resumes, if it names one: the counterpart of
    /// [`Self::resume_command`]. A forked session is not resumed.
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

    /// Whether it runs one prompt and accepts no other, judged by the words after its name.
    pub fn is_headless<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> bool {
        let words = words.into_iter().take_while(|word| *word != "--");
        words.enumerate().any(|(at, word)| {
            let option = word.split_once('=').map_or(word, |(option, _)| option);
            self.headless.contains(&option) && (at == 0 || option.starts_with('-'))
        })
    }

    /// Like [`Self::resume_command`], as words, with the model if there is an option for it.
    #[must_use]
    pub fn resume_words(&self, session: &str, model: Option<&str>) -> Option<Vec<String>> {
        let mut words: Vec<String> = self.resume_command(session)?.split(' ').map(str::to_owned).collect();
        // A model whose name starts with a dash would be read as an option.
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
    /// The version in a line; `None` if the line has another form.
    #[must_use]
    pub fn in_line<'t>(&self, line: &'t str) -> Option<&'t str> {
        let rest = line.trim().strip_suffix(self.behind)?;
        self.before.iter().find_map(|before| rest.strip_prefix(before))
    }
}

impl Home {
    /// The directories according to an environment; empty if neither the variable nor HOME is set.
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
