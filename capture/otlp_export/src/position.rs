//! How far the log was sent, in a file: a restart goes on there.

use std::{fs, io, path::PathBuf};

use atomic_file::Durability;
use events::Timestamp;
use serde::{Deserialize, Serialize};

/// The file in the data directory.
const FILE: &str = "otlp-position.json";
/// Longest file that is read, bytes.
const BYTES: u64 = 4_096;

/// How far the log was sent, and of which log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentPosition {
    /// Names the log.
    pub(crate) log: String,
    /// Names the endpoint: another one gets what happens from then on.
    pub(crate) endpoint: String,
    /// Everything up to this position was sent or dropped.
    pub(crate) position: u64,
    /// What ended before this time is not sent.
    pub(crate) since: Timestamp,
}

/// The file.
#[derive(Debug)]
pub(crate) struct PositionFile(PathBuf);

impl PositionFile {
    pub(crate) fn in_directory(data: &std::path::Path) -> Self {
        Self(data.join(FILE))
    }

    /// What it says; `None` when there is none, or nothing of use in it.
    pub(crate) fn read(&self) -> Option<SentPosition> {
        if fs::metadata(&self.0).ok()?.len() > BYTES {
            return None;
        }
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    pub(crate) fn write(&self, sent: &SentPosition) -> io::Result<()> {
        // After a power cut a few spans are sent again, with the ids they had.
        atomic_file::replace(&self.0, &serde_json::to_vec(sent)?, Durability::Unsynced)
    }
}
