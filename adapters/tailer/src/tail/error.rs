//! The reasons why a file is not read.

use std::{io, sync::Arc};

use super::disk::ReadRefusal;

/// Why a file was not read. The cursor stays where it is.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// It must not be read.
    #[error("{path} is not read: {reason}")]
    Refused {
        /// The file.
        path: Arc<str>,
        /// Why.
        reason: ReadRefusal,
    },
    /// It is too large to be read whole.
    #[error("{path} is not read: {size} bytes is over the limit of {cap} bytes for this kind of file")]
    TooLarge {
        /// The file.
        path: Arc<str>,
        /// Its size, bytes.
        size: u64,
        /// The most it may have, bytes.
        cap: u64,
    },
    /// It stays a record that cannot be understood.
    #[error("cannot decode {path}: {error}")]
    Malformed {
        /// The file.
        path: Arc<str>,
        /// What the decoder said.
        error: String,
    },
    /// The system refused.
    #[error("cannot read {path} at byte {offset}: {source}")]
    Io {
        /// The file.
        path: Arc<str>,
        /// Where.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
}

impl TailError {
    /// Whether trying again can help while the file stays as it is.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Io { .. } => true,
            Self::Refused { .. } | Self::TooLarge { .. } | Self::Malformed { .. } => false,
        }
    }
}
