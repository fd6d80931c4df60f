//! Cursors: how far a file was read. A cursor is written in the same transaction as the events it covers.

use serde::{Deserialize, Serialize};

/// Tells a file from another one at the same path, by device and inode. Reuse is detected by hashes
/// of its content (inode numbers are given out again at once on ext4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FileKey {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

/// The resume point of one transcript.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cursor {
    /// Absolute path.
    pub path: String,
    /// The file that had this path.
    pub key: FileKey,
    /// Counts the files that had this path: truncated, rewritten or replaced means one more.
    pub generation: u32,
    /// Bytes of whole lines read; the next line starts here.
    pub offset: u64,
    /// Bytes covered by `head_hash`: at most 4096, and never more than `offset`.
    pub head_length: u32,
    /// Hash of the first `head_length` bytes.
    pub head_hash: u64,
    /// Hash of the (up to) 64 bytes before `offset`.
    pub tail_hash: u64,
    /// Size when last looked at, bytes.
    pub size: u64,
    /// Last change of content or inode when last looked at, nanoseconds since 1970 (ctime).
    pub changed_ns: i64,
    /// Whether this generation was read to its end once. Until then its records may be copies of
    /// ones read before, and a restart reads it again.
    pub caught_up: bool,
    /// Lines that could not be understood.
    pub issues: u64,
    /// The session its lines belong to (the provider's id), once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_session_id: Option<String>,
    /// What the decoder needs to go on from `offset`, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder_state: Option<String>,
}

/// What of a cursor says whether its file has changed, and where the next read begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct CursorSummary {
    /// The file that had the path.
    pub key: FileKey,
    /// Bytes of whole lines read.
    pub offset: u64,
    /// Size when last looked at, bytes.
    pub size: u64,
    /// Last change of content or inode when last looked at, nanoseconds since 1970 (ctime).
    pub changed_ns: i64,
    /// Whether this generation was read to its end once.
    pub caught_up: bool,
}

impl From<&Cursor> for CursorSummary {
    fn from(cursor: &Cursor) -> Self {
        let Cursor { key, offset, size, changed_ns, caught_up, .. } = *cursor;
        Self { key, offset, size, changed_ns, caught_up }
    }
}
