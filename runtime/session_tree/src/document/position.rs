//! The position of a line in a session file.

/// The position of a line in a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePosition {
    /// The line number, from 1.
    pub line: usize,
    /// The offset of its first byte.
    pub offset: u64,
}
