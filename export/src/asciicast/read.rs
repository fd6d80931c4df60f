//! Reads one file of either version.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use crate::asciicast::{
    event::{CastEvent, CastVersion, EventCode},
    header::CastHeader,
};

/// Longest line of a recording, bytes; a longer one is an error.
const LINE_BYTES: u64 = 64 << 20;
/// Largest valid time of an event, seconds; a larger one is a damaged line.
const MOST_SECONDS: f64 = 1e9;

/// The reason why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The first line is not a header.
    #[error("{path} is not an asciicast recording (line 1 is not a header)")]
    NotACast {
        /// The file.
        path: PathBuf,
    },
    /// A line is invalid.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The reason.
        what: String,
    },
}

/// Reads one file, one event at a time.
///
/// A last line without a newline that is not an event was incomplete when the writer ended. It is left out, and
/// [`cut`](Self::cut) returns true.
#[derive(Debug)]
pub struct CastReader<R = BufReader<File>> {
    input: R,
    path: PathBuf,
    line: u64,
    buffer: Vec<u8>,
    version: CastVersion,
    header: CastHeader,
    at_us: u64,
    cut: bool,
}

impl CastReader {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// If it cannot be read, or is not an asciicast of version 2 or 3.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Io { path: path.to_path_buf(), source })?;
        Self::new(BufReader::new(file), path)
    }
}

impl<R: BufRead> CastReader<R> {
    /// Reads the header; errors contain `path`.
    ///
    /// # Errors
    /// The errors of [`CastReader::open`].
    pub fn new(input: R, path: &Path) -> Result<Self, ReadError> {
        let mut reader = Self {
            input,
            path: path.to_path_buf(),
            line: 0,
            buffer: Vec::new(),
            version: CastVersion::V2,
            header: CastHeader::default(),
            at_us: 0,
            cut: false,
        };
        if !reader.next_line()? {
            return Err(reader.wrong("the file is empty".into()));
        }
        let is_header = |line: &str| {
            serde_json::from_str::<serde_json::Value>(line).is_ok_and(|header| header.get("version").is_some())
        };
        if !reader.text().is_ok_and(is_header) {
            return Err(ReadError::NotACast { path: reader.path });
        }
        let parsed = reader.text().and_then(CastHeader::parse);
        (reader.version, reader.header) = parsed.map_err(|what| reader.wrong(what))?;
        Ok(reader)
    }

    /// Its first line.
    pub const fn header(&self) -> &CastHeader {
        &self.header
    }

    /// Whether the file ends in the middle of a line. Correct once everything was read.
    pub const fn cut(&self) -> bool {
        self.cut
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not an event; the error names the line.
    pub fn next_event(&mut self) -> Result<Option<CastEvent>, ReadError> {
        while self.next_line()? {
            let whole = self.buffer.last() == Some(&b'\n');
            match self.event() {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(_) if !whole => {
                    self.cut = true;
                    return Ok(None);
                }
                Err(what) => return Err(self.wrong(what)),
            }
        }
        Ok(None)
    }

    /// The event in the current line; `None` for an empty line or a comment.
    fn event(&mut self) -> Result<Option<CastEvent>, String> {
        let line = self.text()?;
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (seconds, code, data): (f64, String, String) =
            serde_json::from_str(line).map_err(|error| format!("expected an event `[time, code, data]`: {error}"))?;
        if !(0.0..MOST_SECONDS).contains(&seconds) {
            return Err(format!("{seconds} is not a valid time"));
        }
        let code = EventCode::from(code.as_str());
        // Between 0 and 1e15, so the conversion is exact.
        let us = (seconds * 1e6).round() as u64;
        self.at_us = match self.version {
            CastVersion::V2 => us.max(self.at_us),
            CastVersion::V3 => self.at_us.saturating_add(us),
        };
        Ok(Some(CastEvent { at_us: self.at_us, code, data }))
    }

    fn text(&self) -> Result<&str, String> {
        let line = std::str::from_utf8(&self.buffer).map_err(|error| format!("the line is not UTF-8: {error}"))?;
        Ok(line.trim_end_matches(['\n', '\r']))
    }

    /// Reads a line into the buffer; returns whether there was one.
    fn next_line(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES);
        let length = limited
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
        self.line += 1;
        if length as u64 == LINE_BYTES && self.buffer.last() != Some(&b'\n') {
            return Err(self.wrong(format!("the line is longer than {} MiB", LINE_BYTES >> 20)));
        }
        Ok(length > 0)
    }

    fn wrong(&self, what: String) -> ReadError {
        ReadError::Line { path: self.path.clone(), line: self.line, what }
    }
}
