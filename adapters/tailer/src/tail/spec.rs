//! How a file is read, and the limits for it.

use std::{path::Path, time::Duration};

use events::Timestamp;

use crate::decode::Decoder;

/// How an agent writes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// It appends lines.
    Lines,
    /// Lines, compressed as a whole with zstd; the file does not grow.
    Compressed,
    /// A single record that is rewritten as a whole.
    Whole,
    /// An SQLite database with a table to which rows are appended.
    Rows(&'static RowTable),
}

/// A table of an SQLite database that is a log: rows are only appended to it.
#[derive(Debug, PartialEq, Eq)]
pub struct RowTable {
    /// Its name.
    pub name: &'static str,
    /// The column that is unique for every row there ever was; it distinguishes a row from a later one with the same
    /// number.
    pub id: &'static str,
    /// The columns of a record: a JSON object of their names and values.
    pub columns: &'static [&'static str],
}

impl FileFormat {
    /// Number of unread bytes. For a database it is not known.
    pub(crate) fn lag(self, size: u64, offset: u64) -> u64 {
        match self {
            Self::Lines | Self::Whole => size.saturating_sub(offset),
            // For a compressed file it is not known either.
            Self::Compressed | Self::Rows(_) => 0,
        }
    }
}

/// Creates the decoder of a file: from its path, and from [`Decoder::state`] to continue there.
pub type MakeDecoder = fn(&Path, Option<&str>) -> Box<dyn Decoder>;

/// How a file is to be read.
#[derive(Debug, Clone, Copy)]
pub struct FileSpec {
    /// How the agent writes it.
    pub format: FileFormat,
    /// Creates its decoder.
    pub make: MakeDecoder,
    /// Whether it reports the state of a running session: it is checked first and always as a hot file.
    pub live: bool,
}

/// Limits of reading.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// Longer lines are not stored but become a stub, bytes.
    pub line_bytes: u64,
    /// Larger files of [`FileFormat::Whole`] are refused, bytes.
    pub whole_bytes: u64,
    /// Approximate bytes of lines in one [`TailRead`](super::TailRead).
    pub batch_bytes: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { line_bytes: 16 << 20, whole_bytes: 64 << 20, batch_bytes: 1 << 20 }
    }
}

/// The two clocks, read at one moment by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Wall clock: only for the times of events and for comparison with file times.
    pub wall: Timestamp,
    /// A clock that never jumps, since any fixed moment; used for all delays.
    pub steady: Duration,
}
