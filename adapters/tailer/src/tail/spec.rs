//! How a file is read, and the limits for it.

use std::{path::Path, time::Duration};

use events::Timestamp;

use crate::decode::Decoder;

/// How a file is written by its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Lines are appended.
    Lines,
    /// It holds lines, is compressed as a whole with zstd, and does not grow.
    Compressed,
    /// It is one record and rewritten whole.
    Whole,
    /// It is an SQLite database, and rows are appended to one of its tables.
    Rows(&'static RowTable),
}

/// A table of an SQLite database that is a log: rows are only appended to it.
#[derive(Debug, PartialEq, Eq)]
pub struct RowTable {
    /// Its name.
    pub name: &'static str,
    /// The column whose value is another one in each row that ever was; tells a row from one that took its number.
    pub id: &'static str,
    /// The columns a record is made of: a JSON object of their names and values.
    pub columns: &'static [&'static str],
}

impl FileFormat {
    /// Bytes that are there and were not read. What a database holds beyond its log is not known.
    pub(crate) fn lag(self, size: u64, offset: u64) -> u64 {
        match self {
            Self::Lines | Self::Whole => size.saturating_sub(offset),
            // What a compressed file holds beyond the decoded bytes is not known either.
            Self::Compressed | Self::Rows(_) => 0,
        }
    }
}

/// Makes the decoder of a file: from its path, and from [`Decoder::state`] to go on from there.
pub type MakeDecoder = fn(&Path, Option<&str>) -> Box<dyn Decoder>;

/// How a file is to be read.
#[derive(Debug, Clone, Copy)]
pub struct FileSpec {
    /// How it is written.
    pub format: FileFormat,
    /// Makes its decoder.
    pub make: MakeDecoder,
    /// It tells the state of a session that runs: looked at first and always as a hot file.
    pub live: bool,
}

/// Bounds of reading.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// Longer lines are not held but become a stub, bytes.
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
    /// Wall clock: stamps events and is compared with times of files, nothing else.
    pub wall: Timestamp,
    /// A clock that never jumps, since any fixed moment: all waiting goes by it.
    pub steady: Duration,
}
