//! Records the output of a terminal to files as it arrives.
//!
//! A [`Recorder`] owns the file that is being written. It reads no clock: the caller passes the time and calls
//! [`Recorder::advance`] at [`Recorder::next_deadline`]. An error ends the recording, is reported once, and leaves
//! complete lines in the file.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use events::Timestamp;
use rustix::fs::{Mode, OFlags};

use super::text::Utf8Decoder;
use crate::asciicast::{
    encode::Encoder,
    event::{CastEvent, CastVersion, EventCode},
    header::{CastHeader, RecordingPart},
    parts::part_path,
};

/// Longest time written events stay in memory before they are flushed, ms.
const FLUSH_MS: i64 = 1000;
/// Size of the written events in memory at which they are flushed, bytes.
const FLUSH_BYTES: usize = 64 << 10;

/// The only environment variables that are recorded.
const ENV: [&str; 2] = ["TERM", "SHELL"];

/// The settings of a recording.
#[derive(Debug, Clone)]
pub struct RecordSettings {
    /// The first file; the next parts are named after it ([`part_path`]).
    pub path: PathBuf,
    /// The version of the format.
    pub version: CastVersion,
    /// Maximum size of a part, bytes; the next part begins before it is exceeded. An event that is larger gets a
    /// separate file.
    pub max_bytes: u64,
    /// Number of parts to keep, at least one; the oldest is removed.
    pub keep: u32,
}

/// The reason why a recording ended early.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}; recording stops")]
pub struct RecordError {
    /// The file.
    pub path: PathBuf,
    /// The error.
    pub source: std::io::Error,
}

/// Returns the bytes that draw the current screen.
pub type Repaint = Box<dyn FnMut() -> Option<Vec<u8>> + Send>;

/// A recording that is being written. Dropping it writes the buffered data; only [`finish`](Self::finish) reports
/// errors in doing so.
pub struct Recorder {
    settings: RecordSettings,
    header: CastHeader,
    repaint: Option<Repaint>,
    text: Utf8Decoder,
    part: u32,
    /// `None` once an error ended the recording.
    open: Option<OpenPart>,
    /// The latest time that was passed in; earlier times do not change it.
    now: Timestamp,
}

/// The part that is being written.
struct OpenPart {
    file: File,
    path: PathBuf,
    encoder: Encoder,
    started_at: Timestamp,
    buffer: String,
    /// Since when the buffer contains data.
    waits_since: Option<Timestamp>,
    /// Bytes in the file and in the buffer.
    bytes: u64,
    written: u64,
    /// Whether it contains events besides the beginning.
    has_events: bool,
}

impl Recorder {
    /// Creates the first file and writes its header. Only TERM and SHELL of `header.env` are kept, and its time is
    /// `now`.
    ///
    /// # Errors
    /// If the file cannot be created, or already exists.
    pub fn create(settings: RecordSettings, header: CastHeader, now: Timestamp) -> Result<Self, RecordError> {
        let env: BTreeMap<_, _> = header.env.into_iter().filter(|(name, _)| ENV.contains(&name.as_str())).collect();
        let mut recorder = Self {
            settings,
            header: CastHeader { env, ..header },
            repaint: None,
            text: Utf8Decoder::default(),
            part: 1,
            open: None,
            now,
        };
        recorder.begin_part(1)?;
        Ok(recorder)
    }

    /// Sets the function that draws the current screen. It is called at the beginning of each further part, which then
    /// begins with that screen.
    #[must_use]
    pub fn repainting(mut self, repaint: Repaint) -> Self {
        self.repaint = Some(repaint);
        self
    }

    /// Whether the recording is still active.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Records bytes that were sent to the terminal.
    ///
    /// # Errors
    /// If the file cannot be written. This ends the recording, and later calls do nothing.
    pub fn output(&mut self, at: Timestamp, bytes: &[u8]) -> Result<(), RecordError> {
        if self.open.is_none() {
            return Ok(());
        }
        let text = self.text.decode(bytes);
        if text.is_empty() { self.advance(at) } else { self.event(at, EventCode::Output, text) }
    }

    /// Records a new size of the terminal.
    ///
    /// # Errors
    /// The errors of [`output`](Self::output).
    pub fn resize(&mut self, at: Timestamp, columns: u16, rows: u16) -> Result<(), RecordError> {
        (self.header.columns, self.header.rows) = (columns, rows);
        self.event(at, EventCode::Resize, format!("{}x{}", columns.max(1), rows.max(1)))
    }

    /// Records a marker that the user may want to find again.
    ///
    /// # Errors
    /// The errors of [`output`](Self::output).
    pub fn mark(&mut self, at: Timestamp, label: &str) -> Result<(), RecordError> {
        self.event(at, EventCode::Marker, label.to_owned())
    }

    /// Records the end of the program, with its status if known, and writes all buffered data.
    ///
    /// # Errors
    /// The errors of [`output`](Self::output).
    pub fn finish(mut self, at: Timestamp, status: Option<i32>) -> Result<(), RecordError> {
        self.end_text(at)?;
        if let Some(status) = status {
            self.event(at, EventCode::Exit, status.to_string())?;
        }
        self.flush()
    }

    /// Writes the held-back bytes of an incomplete character.
    fn end_text(&mut self, at: Timestamp) -> Result<(), RecordError> {
        let rest = self.text.end();
        if rest.is_empty() { Ok(()) } else { self.event(at, EventCode::Output, rest) }
    }

    /// Advances the time: data that was buffered long enough is written.
    ///
    /// # Errors
    /// The errors of [`output`](Self::output).
    pub fn advance(&mut self, now: Timestamp) -> Result<(), RecordError> {
        self.now = self.now.max(now);
        if self.next_deadline().is_some_and(|due| due <= self.now) { self.flush() } else { Ok(()) }
    }

    /// The next time at which [`advance`](Self::advance) must be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        Some(self.open.as_ref()?.waits_since?.plus_ms(FLUSH_MS))
    }

    fn event(&mut self, at: Timestamp, code: EventCode, data: String) -> Result<(), RecordError> {
        self.now = self.now.max(at);
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let event = CastEvent { at_us: open.elapsed_us(self.now), code, data };
        // Encoded with a copy of the encoder, because the same event has another time in the next part.
        let mut encoder = open.encoder.clone();
        let line = encoder.event(&event);
        if open.has_events && open.bytes + line.len() as u64 > self.settings.max_bytes {
            self.flush()?;
            self.begin_part(self.part.saturating_add(1))?;
            self.remove_oldest();
            let Some(open) = &mut self.open else {
                return Ok(());
            };
            let line = open.encoder.event(&CastEvent { at_us: open.elapsed_us(self.now), ..event });
            open.push(&line, self.now);
            open.has_events = true;
        } else {
            open.encoder = encoder;
            open.push(&line, self.now);
            open.has_events = true;
        }
        let full = self.open.as_ref().is_some_and(|open| open.buffer.len() >= FLUSH_BYTES);
        if full { self.flush() } else { self.advance(at) }
    }

    /// Creates the file of a part and writes its beginning.
    fn begin_part(&mut self, part: u32) -> Result<(), RecordError> {
        let repaint = if part > 1 { self.repaint.as_mut().and_then(|repaint| repaint()) } else { None };
        let repaint = repaint.filter(|bytes| !bytes.is_empty());
        let path = part_path(&self.settings.path, part);
        self.open = None;
        let file = create(&path).map_err(|source| RecordError { path: path.clone(), source })?;
        let started_at_ms = self.now.as_millisecond();
        self.part = part;
        self.header.timestamp = u64::try_from(started_at_ms / 1000).ok();
        self.header.part = Some(RecordingPart { part, started_at_ms, repainted: repaint.is_some() });
        let encoder = Encoder::new(self.settings.version);
        let mut open = OpenPart {
            file,
            path,
            started_at: self.now,
            buffer: String::new(),
            waits_since: None,
            bytes: 0,
            written: 0,
            has_events: false,
            encoder,
        };
        let header = open.encoder.header(&self.header);
        open.push(&header, self.now);
        if let Some(bytes) = repaint {
            let data = String::from_utf8_lossy(&bytes).into_owned();
            let line = open.encoder.event(&CastEvent { at_us: 0, code: EventCode::Output, data });
            open.push(&line, self.now);
        }
        self.open = Some(open);
        // Written immediately, so that a full disk is noticed here, and an existing file is readable.
        self.flush()
    }

    fn remove_oldest(&self) {
        if let Some(old) = self.part.checked_sub(self.settings.keep.max(1)).filter(|part| *part > 0) {
            // It is not an error if a part was already removed.
            std::fs::remove_file(part_path(&self.settings.path, old)).ok();
        }
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let Err(source) = open.flush() else {
            return Ok(());
        };
        // Leaves only complete lines; if even that fails, readers accept an incomplete last line.
        open.file.set_len(open.written).ok();
        let path = std::mem::take(&mut open.path);
        self.open = None;
        Err(RecordError { path, source })
    }
}

impl OpenPart {
    fn elapsed_us(&self, now: Timestamp) -> u64 {
        u64::try_from(now.since_ms(self.started_at)).unwrap_or(0).saturating_mul(1000)
    }

    fn push(&mut self, line: &str, now: Timestamp) {
        self.buffer.push_str(line);
        self.bytes += line.len() as u64;
        self.waits_since.get_or_insert(now);
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.write_all(self.buffer.as_bytes())?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.waits_since = None;
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end_text(self.now).and_then(|()| self.flush()).ok();
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("settings", &self.settings).field("part", &self.part).finish_non_exhaustive()
    }
}

/// Creates a new file, accessible only to its owner, and never through a link.
fn create(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}
