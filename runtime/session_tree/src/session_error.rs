//! Errors of reading and writing a session.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{document::DocumentRefusal, tree::TreeError};

/// Why a session cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Reading or writing failed.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a session. It was not changed.
    #[error("{path} is not a session: {refusal}", path = path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The reason.
        refusal: DocumentRefusal,
    },
    /// Another program has the session open.
    #[error("{path} is open in another program", path = path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Another program has changed or replaced the file since it was read.
    #[error("{path} was changed by another program", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file was deleted or moved while it was open.
    #[error("{path} was deleted or moved by another program", path = path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The tree does not contain the entry, or does not allow the operation.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl SessionError {
    /// Whether the same write may succeed later: the system refused it, and no other program changed the file.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Io { .. } => true,
            Self::Refused { .. } | Self::Locked { .. } | Self::Changed { .. } | Self::Gone { .. } | Self::Tree(_) => {
                false
            }
        }
    }

    /// Adds to a system error the operation that failed and its file.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
