//! Errors of reading and writing the store.

use rusqlite::ErrorCode;

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// SQLite failed.
    #[error("cannot read {what} from the database: {source}")]
    Sqlite {
        /// What was asked for.
        what: &'static str,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// A row does not hold what it should.
    #[error("damaged {what} in the database at {place}: {detail}")]
    Damaged {
        /// What was asked for.
        what: &'static str,
        /// Position or id of the row.
        place: String,
        /// What is wrong.
        detail: String,
    },
}

/// Sorts of failed reads, by what helps against them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFailure {
    /// Another program holds the database: try again.
    Locked,
    /// The system did not let it be opened, read or written.
    Io,
    /// The disk is full.
    Full,
    /// It may be read but not written.
    ReadOnly,
    /// What is stored is damaged.
    Damaged,
    /// Something else.
    Other,
}

impl ReadError {
    /// The sort of failure.
    #[must_use]
    pub fn failure(&self) -> ReadFailure {
        let source = match self {
            Self::Sqlite { source, .. } => source,
            Self::Damaged { .. } => return ReadFailure::Damaged,
        };
        ReadFailure::of(source)
    }
}

impl ReadFailure {
    /// The sort of an error of SQLite.
    pub(crate) fn of(source: &rusqlite::Error) -> Self {
        let Some(code) = source.sqlite_error_code() else { return Self::Other };
        if matches!(code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) {
            Self::Locked
        } else if matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) {
            Self::Damaged
        } else if code == ErrorCode::DiskFull {
            Self::Full
        } else if code == ErrorCode::ReadOnly {
            Self::ReadOnly
        } else if matches!(code, ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) {
            Self::Io
        } else {
            Self::Other
        }
    }
}

/// Why a transaction failed. Nothing of it is in the store; it may be tried again.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {what} to the database: {source}")]
pub struct CommitError {
    /// What was being written.
    pub what: &'static str,
    /// SQLite's reason.
    pub source: rusqlite::Error,
}

impl CommitError {
    /// The sort of failure.
    #[must_use]
    pub fn failure(&self) -> ReadFailure {
        ReadFailure::of(&self.source)
    }
}

/// An error of SQLite while this was being written.
pub(crate) fn failed(what: &'static str) -> impl Fn(rusqlite::Error) -> CommitError {
    move |source| CommitError { what, source }
}
