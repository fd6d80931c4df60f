//! The file that names the last row of the audit record, next to the database. With it, rows that were removed
//! at the end are detected too.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use atomic_file::Durability;

use super::AuditHead;

/// Name of the file that keeps the end of the chain, beside the database.
pub const HEAD_FILE: &str = "audit.head";

/// Why the kept end of the chain cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{path} does not name the last row of the audit record: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

/// Keeps the end of the chain beside the database in `directory`; the file is replaced whole.
///
/// Call it after the commit of the row: the file may then be behind the database, but never ahead of it.
///
/// # Errors
/// When the file cannot be written.
pub fn write_head(directory: &Path, head: AuditHead) -> io::Result<()> {
    let path = directory.join(HEAD_FILE);
    atomic_file::replace(&path, &serde_json::to_vec(&head)?, Durability::Unsynced)
}

/// The end of the chain as it was kept beside the database in `directory`; `None` without a file.
///
/// # Errors
/// When the file cannot be read, or holds something else.
pub fn read_head(directory: &Path) -> Result<Option<AuditHead>, HeadError> {
    let path = directory.join(HEAD_FILE);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| HeadError::Damaged { path, detail: error.to_string() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(HeadError::Read { path, source }),
    }
}
