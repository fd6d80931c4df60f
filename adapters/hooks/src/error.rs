//! Why a settings file is left as it is.

use std::path::{Path, PathBuf};

use events::Provider;

use crate::{command::UnwritablePath, versions::Unsupported};

/// Why a settings file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The agent that is on the PATH cannot have entries of ours.
    #[error("not installed: {0}. {advice}", advice = .0.advice())]
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
    /// The agent has no directory here.
    #[error("{} does not exist. Start {provider} once, then install again", directory.display())]
    NoDirectory {
        /// The agent.
        provider: Provider,
        /// Where its directory would be.
        directory: PathBuf,
    },
    /// Somebody else wrote the file meanwhile.
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
        /// What it said.
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
