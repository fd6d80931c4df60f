//! The file beside the database that names the last row of the audit record. It allows detecting rows removed at the
//! end.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use atomic_file::Durability;

use super::AuditHead;

/// Name of the file beside the database that contains the end of the chain.
pub const HEAD_FILE: &str = "audit.head";

/// Why the saved end of the chain cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file has other content.
    #[error("{path} does not name the last row of the audit record: {detail}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error in its content.
        detail: String,
    },
}

/// Saves the end of the chain beside the database in `directory`; the file is replaced atomically.
///
/// Call this after the commit of the row, so that the file may be behind the database but never ahead.
///
/// # Errors
/// When the file cannot be written.
pub fn write_head(directory: &Path, head: AuditHead) -> io::Result<()> {
    let path = directory.join(HEAD_FILE);
    atomic_file::replace(&path, &serde_json::to_vec(&head)?, Durability::Unsynced)
}

/// The end of the chain saved beside the database in `directory`; `None` without a file.
///
/// # Errors
/// When the file cannot be read, or has other content.
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
