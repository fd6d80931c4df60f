//! Detects that a file was replaced, even by one with the same name and inode: compares its first bytes and the bytes
//! before the offset with what they were when they were read.

use std::io;

use events::Cursor;

use super::disk::Source;

/// Bytes at the start of a file that are compared to notice a change.
pub(super) const HEAD_BYTES: u64 = 4096;
/// Bytes before the offset that are compared to notice a change.
pub(super) const BEFORE_BYTES: u64 = 64;

/// The hash in cursors: the first 8 bytes of BLAKE3.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut first = [0_u8; 8];
    first.copy_from_slice(&blake3::hash(bytes).as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// The first (up to 4096) and the last (up to 64) of the consumed bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marks {
    head: Vec<u8>,
    before: Vec<u8>,
    offset: u64,
}

impl Marks {
    /// Reads the windows of `cursor`; `None` if their bytes changed.
    pub(super) fn of(source: &dyn Source, cursor: &Cursor) -> io::Result<Option<Self>> {
        let length = u64::from(cursor.head_length).min(HEAD_BYTES).min(cursor.offset);
        let head = window(source, 0, length)?;
        let before = window(source, cursor.offset - cursor.offset.min(BEFORE_BYTES), cursor.offset.min(BEFORE_BYTES))?;
        let same = hash(&head) == cursor.head_hash && hash(&before) == cursor.tail_hash;
        // A cursor at offset 0 has nothing to compare.
        Ok((same || cursor.offset == 0).then_some(Self { head, before, offset: cursor.offset }))
    }

    /// Adds consumed bytes, directly after the previous ones.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.extend_head(bytes);
        self.remember_last(bytes);
        self.offset += bytes.len() as u64;
    }

    /// Adds a run of consumed bytes of which only the ends were kept.
    pub(super) fn append(&mut self, run: &Self) {
        self.extend_head(&run.head);
        self.remember_last(&run.before);
        self.offset += run.offset;
    }

    fn extend_head(&mut self, bytes: &[u8]) {
        let room = (HEAD_BYTES as usize).saturating_sub(self.head.len());
        if self.head.len() as u64 == self.offset {
            self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
    }

    fn remember_last(&mut self, bytes: &[u8]) {
        let most = BEFORE_BYTES as usize;
        let bytes = &bytes[bytes.len().saturating_sub(most)..];
        let drop = (self.before.len() + bytes.len()).saturating_sub(most);
        self.before.drain(..drop);
        self.before.extend_from_slice(bytes);
    }

    /// The bytes before the offset alone, for comparing them with the file after the marks moved on.
    pub(super) fn before(&self) -> Self {
        Self { head: Vec::new(), before: self.before.clone(), offset: self.offset }
    }

    /// Number of consumed bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the file still has these bytes at these offsets.
    pub(super) fn still_match(&self, source: &dyn Source) -> io::Result<bool> {
        let before = self.offset - self.before.len() as u64;
        Ok(matches(source, &self.head, 0)? && matches(source, &self.before, before)?)
    }

    /// Stores the marks in a cursor.
    pub(super) fn store(&self, cursor: &mut Cursor) {
        cursor.offset = self.offset;
        if cursor.head_length as usize != self.head.len() || cursor.head_length == 0 {
            cursor.head_length = self.head.len() as u32;
            cursor.head_hash = hash(&self.head);
        }
        cursor.tail_hash = hash(&self.before);
    }
}

fn matches(source: &dyn Source, expected: &[u8], offset: u64) -> io::Result<bool> {
    Ok(window(source, offset, expected.len() as u64)? == expected)
}

/// Up to `length` bytes at `offset`, fewer if the file ends earlier.
fn window(source: &dyn Source, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read_at(&mut bytes[filled..], offset + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
