//! The reasons for leaving a settings file unchanged.

use std::path::{Path, PathBuf};

use events::Provider;

use crate::{command::UnwritablePath, versions::Unsupported};

/// The reason for leaving a settings file unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Our entries cannot be installed for the agent on the PATH.
    #[error("hooks are not installed: {0}. {advice}", advice = .0.advice())]
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
        /// The problem at that position.
        what: String,
    },
    /// The target of the path must not be changed by us.
    #[error("{}: {what}; nothing was changed", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The agent has no directory here.
    #[error("{} does not exist. Start {provider} once, then install again", directory.display())]
    NoDirectory {
        /// The agent.
        provider: Provider,
        /// The expected path of its directory.
        directory: PathBuf,
    },
    /// Another program wrote the file in the meantime.
    #[error("another program changed {} meanwhile, so capture did not write it; try again", path.display())]
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
        /// The error of the system.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn refused(path: &Path, what: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn io(path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn content(path: &Path, problem: crate::text::Problem) -> Self {
        Self::Content { path: path.to_owned(), line: problem.line, column: problem.column, what: problem.what }
    }
}
