//! Errors of reading and writing the store.

use rusqlite::ErrorCode;

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// SQLite failed.
    #[error("cannot read {what} from the database: {source}")]
    Sqlite {
        /// The requested data.
        what: &'static str,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// A row has invalid content.
    #[error("damaged {what} in the database at {place}: {detail}")]
    Damaged {
        /// The requested data.
        what: &'static str,
        /// Position or id of the row.
        place: String,
        /// The error in its content.
        detail: String,
    },
}

/// Kinds of failures, by their remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFailure {
    /// Another program has locked the database: retry.
    Locked,
    /// The system could not open, read or write the database.
    Io,
    /// The disk is full.
    Full,
    /// The database is read-only.
    ReadOnly,
    /// The stored data is damaged.
    Damaged,
    /// Any other failure.
    Other,
}

impl ReadError {
    /// The kind of failure.
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
    /// The kind of a SQLite error.
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

/// Why a transaction failed. It has no effect on the store and can be retried.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {what} to the database: {source}")]
pub struct CommitError {
    /// The data being written.
    pub what: &'static str,
    /// The error of SQLite.
    pub source: rusqlite::Error,
}

impl CommitError {
    /// The kind of failure.
    #[must_use]
    pub fn failure(&self) -> ReadFailure {
        ReadFailure::of(&self.source)
    }
}

/// Wraps a SQLite error that occurred while `what` was written.
pub(crate) fn failed(what: &'static str) -> impl Fn(rusqlite::Error) -> CommitError {
    move |source| CommitError { what, source }
}
