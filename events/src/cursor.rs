//! Cursors: the position up to which a file was read. A cursor is written in the same transaction as the events it
//! covers.

use serde::{Deserialize, Serialize};

/// Identifies a file among others at the same path, by device and inode. Reuse of an inode number, which ext4 does
/// immediately, is detected by hashes of the content.
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
    /// Number of the generation at this path; it increases when the file is truncated, rewritten or replaced.
    pub generation: u32,
    /// Number of bytes of complete lines that were read; the next line starts here.
    pub offset: u64,
    /// Bytes covered by `head_hash`: at most 4096, and never more than `offset`.
    pub head_length: u32,
    /// Hash of the first `head_length` bytes.
    pub head_hash: u64,
    /// Hash of the (up to) 64 bytes before `offset`.
    pub tail_hash: u64,
    /// Size at the last check, bytes.
    pub size: u64,
    /// Time of the last change of content or inode at the last check, nanoseconds since 1970 (ctime).
    pub changed_ns: i64,
    /// Whether this generation was read to its end once. Before that, its records may be copies of earlier ones, and a
    /// restart reads it again.
    pub caught_up: bool,
    /// Number of lines that could not be decoded.
    pub issues: u64,
    /// The session its lines belong to (the provider's id), once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_session_id: Option<String>,
    /// The state that the decoder needs to continue from `offset`, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder_state: Option<String>,
}

/// The part of a cursor that shows whether its file has changed, and where the next read begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct CursorSummary {
    /// The file that had the path.
    pub key: FileKey,
    /// Number of bytes of complete lines that were read.
    pub offset: u64,
    /// Size at the last check, bytes.
    pub size: u64,
    /// Time of the last change of content or inode at the last check, nanoseconds since 1970 (ctime).
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
