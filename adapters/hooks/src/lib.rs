//! Our entries in the agents' settings: which events they cover, the command they run, and how a settings file is
//! changed safely.
//!
//! Owns the plan of a change ([`Plan`]) and what is there now ([`HookStatus`]), which events a version of an
//! agent accepts ([`accepted_events`]) and which version that is ([`ProgramSearch`]). What differs between agents
//! is stated in [`agents::hooks`]. An entry of ours is known by the mark at the end of its command
//! ([`command::MARK`]) and by nothing else.
//!
//! Never rewrites a file: `text` puts text into what is there and takes it out again, so that
//! everything else stays byte for byte. Never asks, prints or decides whether to go on. What the
//! agents then send to those commands is decoded elsewhere.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod backup;
pub mod command;
pub mod delivery;
mod file;
mod plan;
mod program;
mod settings;
mod status;
#[cfg(test)]
mod tests;
mod text;
mod versions;

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use agents::{Agent, hooks::Hooks};
use events::Provider;

pub use self::{
    command::{APPROVER, HookCommand, UnwritablePath},
    plan::{AppliedPlan, Plan, RequestedChange},
    program::{Installed, ProgramSearch, VersionUnknown},
    status::{EventState, HookStatus, InstallState},
    versions::{Fit, Unsupported, accepted_events},
};

/// The agents that run hooks.
pub static AGENTS: LazyLock<Vec<Provider>> = LazyLock::new(|| Agent::providers_with(|agent| agent.hooks.is_some()));

/// What is known of an agent's hooks; `None` for one without.
#[must_use]
pub fn facts(provider: Provider) -> Option<&'static Hooks> {
    Agent::of(provider)?.hooks.as_ref()
}

/// Largest settings file that is read or changed, bytes.
pub const LARGEST: u64 = 4 * 1024 * 1024;

/// The events for which something is installed.
#[must_use]
pub fn catalogue(provider: Provider) -> Vec<&'static str> {
    facts(provider).map_or_else(Vec::new, |hooks| hooks.versions.events.iter().map(|fact| fact.event).collect())
}

/// The settings file below an agent's home; `None` for one without hooks.
#[must_use]
pub fn place(provider: Provider, home: &Path) -> Option<PathBuf> {
    facts(provider).map(|hooks| home.join(hooks.settings_file))
}

/// Why a settings file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The agent that is on the PATH cannot have entries of ours.
    #[error(
        "{0}; nothing was changed, since an event that an agent does not know can make it ignore the user's settings \
         (`capture hooks install --force` installs anyway)"
    )]
    Unsupported(#[from] Unsupported),
    /// The agent runs no hooks.
    #[error("{0} has no hooks")]
    NoHooks(Provider),
    /// The content cannot be changed safely.
    #[error("{}:{line}:{column}: {what}; nothing was changed", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// What the path leads to is not for us to change.
    #[error("{}: {what}; nothing was changed", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// Somebody else wrote the file meanwhile.
    #[error("{} changed while it was looked at; nothing was changed, try again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The command cannot be written into a settings file.
    #[error(transparent)]
    Command(#[from] UnwritablePath),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

impl Error {
    fn refused(path: &Path, what: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), what: what.into() }
    }

    fn io(path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }

    fn content(path: &Path, problem: text::Problem) -> Self {
        Self::Content { path: path.to_owned(), line: problem.line, column: problem.column, what: problem.what }
    }
}
