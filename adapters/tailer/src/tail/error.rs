//! The reasons why a file is not read.

use std::{io, sync::Arc};

use super::disk::ReadRefusal;

/// The reason why a file was not read. The cursor does not move.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The file must not be read.
    #[error("{path} is not read: {reason}")]
    Refused {
        /// The file.
        path: Arc<str>,
        /// The reason.
        reason: ReadRefusal,
    },
    /// The file is too large to be read whole.
    #[error("{path} is not read: its {size} bytes exceed the limit of {cap} bytes for this kind of file")]
    TooLarge {
        /// The file.
        path: Arc<str>,
        /// Its size, bytes.
        size: u64,
        /// The size limit, bytes.
        cap: u64,
    },
    /// The file has been a malformed record for some time.
    #[error("cannot decode {path}: {error}")]
    Malformed {
        /// The file.
        path: Arc<str>,
        /// The error of the decoder.
        error: String,
    },
    /// The system refused.
    #[error("cannot read {path} at byte {offset}: {source}")]
    Io {
        /// The file.
        path: Arc<str>,
        /// The offset.
        offset: u64,
        /// The system error.
        source: io::Error,
    },
}

impl TailError {
    /// Whether another try may succeed although the file is unchanged.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Io { .. } => true,
            Self::Refused { .. } | Self::TooLarge { .. } | Self::Malformed { .. } => false,
        }
    }
}
