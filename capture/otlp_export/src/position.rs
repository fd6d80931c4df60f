//! The file with the position up to which the log was sent: a restart continues there.

use std::{fs, io, path::PathBuf};

use atomic_file::Durability;
use events::Timestamp;
use serde::{Deserialize, Serialize};

/// Name of the file in the data directory.
const FILE: &str = "otlp-position.json";
/// Maximum size of the file, bytes.
const BYTES: u64 = 4_096;

/// The position up to which a log was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentPosition {
    /// The id of the log.
    pub(crate) log: String,
    /// The endpoint: another endpoint only gets data from then on.
    pub(crate) endpoint: String,
    /// Everything up to this position was sent or dropped.
    pub(crate) position: u64,
    /// Items that ended before this time are not sent.
    pub(crate) since: Timestamp,
}

/// The file.
#[derive(Debug)]
pub(crate) struct PositionFile(PathBuf);

impl PositionFile {
    pub(crate) fn in_directory(data: &std::path::Path) -> Self {
        Self(data.join(FILE))
    }

    /// The saved position; `None` if there is none, or the file is invalid.
    pub(crate) fn read(&self) -> Option<SentPosition> {
        if fs::metadata(&self.0).ok()?.len() > BYTES {
            return None;
        }
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    pub(crate) fn write(&self, sent: &SentPosition) -> io::Result<()> {
        // After a power failure a few spans are sent again, with the same ids.
        atomic_file::replace(&self.0, &serde_json::to_vec(sent)?, Durability::Unsynced)
    }
}
