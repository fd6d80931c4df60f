//! Reads the records of one file, through appends, truncation, replacement and rewriting.
//!
//! A [`Tail`] owns the state of one path: its [`Cursor`], the open file, the decoder. Each [`Tail::read`] returns a
//! bounded [`TailRead`]: events and the cursor after them, to be committed together. It only reads files;
//! [`crate::collect`] decides when.
//!
//! A file that only grows is read from the offset on, in whole lines. Before the bytes of a read are used, the file is
//! compared with earlier reads: (device, inode), the first 4096 bytes, and the 64 bytes before two offsets: the one
//! where the read began and the one where it ended. If they differ, the path has a new generation and is read from 0;
//! repeated records are harmless, because events have identities. A change in place outside both windows that does not
//! shorten the file is not noticed: only reading everything again could detect it.
//!
//! See [`disk`] for how files are opened, `lines` for lines of any length, `whole` for files that are rewritten instead
//! of appended to, `rows` for databases.

mod broken;
mod compressed;
pub mod disk;
mod error;
mod lines;
mod marks;
mod occurrence;
mod rows;
mod spec;
#[cfg(test)]
pub(crate) mod tests;
mod whole;

use std::{io, path::Path, sync::Arc, time::Duration};

use events::{Cursor, NewEvent, Provider, Timestamp};

use crate::decode::{self, Decoded, Decoder, Record, Stub};
use disk::{Disk, OpenError, RootedPath, Source, Stat, System};
pub use error::TailError;
use lines::{Buffer, Half, SplitLine};
use marks::Marks;
use occurrence::Occurrences;
pub use spec::{FileFormat, FileSpec, MakeDecoder, Now, ReadLimits, RowTable};

/// The result of one read.
#[derive(Debug, Default)]
pub struct TailRead {
    /// The events, in the order of the file.
    pub events: Vec<NewEvent>,
    /// Whether the cursor moved: offset, generation, issues or the session changed.
    pub moved: bool,
    /// Whether there is more to read now.
    pub more: bool,
    /// Whether the file disappeared. Reported once.
    pub vanished: bool,
    /// The file's modification time.
    pub modified_at: Option<Timestamp>,
    /// Whether to check again soon even without a change: the file was half written, or changed so recently that its
    /// times might not show another change.
    pub unsettled: bool,
}

/// A change within this time before a check may leave the file's times unchanged.
const RACY: Duration = Duration::from_secs(2);
/// How often a read is repeated while the file changes, before the next round reads it.
const TRIES: usize = 3;

/// The resources of a thread for reading, used for one file after another.
pub struct TailReader {
    limits: ReadLimits,
    buffer: Buffer,
    disk: Box<dyn Disk>,
}

impl std::fmt::Debug for TailReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl TailReader {
    /// Creates a reader for the real disk.
    #[must_use]
    pub fn new(limits: ReadLimits) -> Self {
        Self::on(limits, Box::new(System))
    }

    /// Sets whether it reads one file after another without a pause: it then keeps its memory for the next file.
    pub(crate) fn set_busy(&mut self, busy: bool) {
        self.buffer.set_busy(busy);
    }

    pub(crate) fn on(limits: ReadLimits, disk: Box<dyn Disk>) -> Self {
        Self { limits, buffer: Buffer::new(), disk }
    }
}

/// The state of one path and of its reading.
pub struct Tail {
    place: RootedPath,
    provider: Provider,
    spec: FileSpec,
    cursor: Cursor,
    marks: Marks,
    half: Half,
    open: Option<OpenFile>,
    stream: Option<compressed::OpenStream>,
    decoder: Option<Box<dyn Decoder>>,
    /// Numbers the records without ids of a generation that is read from its start. A file may be written in several
    /// steps after it was truncated, or while it is copied, so copies may follow after its current end.
    occurrences: Option<Occurrences>,
    gone: bool,
    broken: Option<broken::Broken>,
    /// Hash of a whole file when it was last decoded.
    decoded: Option<blake3::Hash>,
}

struct OpenFile {
    source: Box<dyn Source>,
    key: events::FileKey,
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Tail {
    /// Starts at `cursor`, or at the start of a new file. A generation that was not read to its end is read again from
    /// its start, because the numbers of its records without ids are lost.
    #[must_use]
    pub fn new(place: RootedPath, provider: Provider, spec: FileSpec, cursor: Option<Cursor>) -> Self {
        let mut cursor = cursor.unwrap_or_default();
        cursor.path = place.path().to_string();
        let mut tail = Self {
            place,
            provider,
            spec,
            cursor,
            marks: Marks::default(),
            half: Half::Unknown,
            open: None,
            stream: None,
            decoder: None,
            occurrences: None,
            gone: false,
            broken: None,
            decoded: None,
        };
        if !tail.cursor.caught_up || tail.cursor.offset == 0 {
            tail.start_over();
        }
        tail
    }

    /// The current cursor.
    #[must_use]
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Returns the cursor and drops the rest.
    #[must_use]
    pub fn into_cursor(self) -> Cursor {
        self.cursor
    }

    /// The path.
    #[must_use]
    pub fn place(&self) -> &RootedPath {
        &self.place
    }

    /// The agent.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// Whether a first pass is incomplete; it would have to start over if this were dropped.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        !self.cursor.caught_up && self.cursor.offset > 0
    }

    /// Whether the file was gone at the last check.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Reads about [`ReadLimits::batch_bytes`] more.
    ///
    /// # Errors
    /// If the file must not or cannot be read. Nothing is lost, because the cursor has not moved.
    pub fn read(&mut self, reader: &mut TailReader, now: Now) -> Result<TailRead, TailError> {
        match self.spec.format {
            FileFormat::Lines => self.read_lines(reader, now),
            FileFormat::Compressed => self.read_compressed(reader, now),
            FileFormat::Whole => self.read_whole(reader, now),
            FileFormat::Rows(table) => self.read_rows(table, reader, now),
        }
    }

    fn read_lines(&mut self, reader: &mut TailReader, now: Now) -> Result<TailRead, TailError> {
        let there = reader.disk.stat(&self.place).map_err(|e| self.io(e))?;
        let before = (self.cursor.offset, self.cursor.generation, self.cursor.issues);
        for _ in 0..TRIES {
            if self.open.is_none() && !self.open(reader, there)? {
                return Ok(self.vanish(now));
            }
            let Some(open) = &self.open else { break };
            let left = there.is_none_or(|there| there.key != open.key);
            let Some((mut look, at_end)) = self.read_next(reader, now)? else {
                self.renew();
                continue;
            };
            look.more = !at_end;
            if left && at_end {
                // The old file with this name is read to its end; continue with the new one.
                self.open = None;
                look.more = true;
            }
            look.moved = before != (self.cursor.offset, self.cursor.generation, self.cursor.issues);
            return Ok(look);
        }
        Ok(TailRead { more: true, unsettled: true, ..TailRead::default() })
    }

    /// Opens the file and checks whether it is the one of the cursor. Returns `false` if it is gone.
    fn open(&mut self, reader: &TailReader, there: Option<Stat>) -> Result<bool, TailError> {
        let Some(source) = self.open_source(reader, there)? else {
            return Ok(false);
        };
        let stat = source.stat().map_err(|e| self.io(e))?;
        let marks = if self.cursor.generation > 0 && stat.key == self.cursor.key && stat.size >= self.cursor.offset {
            Marks::of(&*source, &self.cursor).map_err(|e| self.io(e))?
        } else {
            None
        };
        match marks {
            Some(marks) => self.marks = marks,
            None => self.renew(),
        }
        self.half = Half::Unknown;
        self.gone = false;
        self.cursor.key = stat.key;
        self.open = Some(OpenFile { source, key: stat.key });
        Ok(true)
    }

    /// Opens the file described by `there`; `None` if it is gone.
    fn open_source(&self, reader: &TailReader, there: Option<Stat>) -> Result<Option<Box<dyn Source>>, TailError> {
        let Some(there) = there else { return Ok(None) };
        match disk::admit(&there).and_then(|()| reader.disk.open(&self.place)) {
            Ok(source) => Ok(Some(source)),
            Err(OpenError::Gone) => Ok(None),
            Err(OpenError::Refused(reason)) => Err(TailError::Refused { path: Arc::clone(self.place.path()), reason }),
            Err(OpenError::Io(source)) => Err(self.io(source)),
        }
    }

    /// Reads a batch from the open file. `None` if the file was replaced.
    fn read_next(&mut self, reader: &mut TailReader, now: Now) -> Result<Option<(TailRead, bool)>, TailError> {
        let Some(open) = &self.open else {
            return Ok(None);
        };
        let stat = match open.source.stat() {
            Ok(stat) => stat,
            Err(error) => return Err(self.fail(error)),
        };
        if stat.size < self.cursor.offset {
            return Ok(None);
        }
        let decoder = self.decoder.get_or_insert_with(|| {
            (self.spec.make)(Path::new(&**self.place.path()), self.cursor.decoder_state.as_deref())
        });
        let mut out = Decoded::new(self.provider, Arc::clone(self.place.path()), self.cursor.generation);
        let old = self.marks.before();
        let mut each = |line: SplitLine<'_>| feed(&mut **decoder, line, now.wall, &mut out);
        let progress = lines::split(
            &*open.source,
            &mut reader.buffer,
            &mut self.half,
            &mut self.marks,
            stat.size,
            &reader.limits,
            &mut each,
        );
        match old.still_match(&*open.source).and_then(|held| Ok(held && self.marks.still_match(&*open.source)?)) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(self.fail(error)),
        }
        let stuck = self.marks.offset() == self.cursor.offset;
        if let Some(error) = progress.error
            && stuck
        {
            return Err(self.fail(error));
        }
        if self.cursor.caught_up || progress.at_end {
            guarded(&mut out, |out| decoder.pause(out));
        }
        self.settle(&stat, progress.at_end);
        let unsettled = is_racy(&stat, now);
        let events = self.emit(out);
        Ok(Some((
            TailRead { events, unsettled, modified_at: modified_at(&stat), ..TailRead::default() },
            progress.at_end,
        )))
    }

    /// Moves the cursor after the decoded bytes.
    fn settle(&mut self, stat: &Stat, at_end: bool) {
        self.marks.store(&mut self.cursor);
        self.cursor.size = stat.size.max(self.cursor.offset);
        // A cursor that is not at the end must never equal the cursor of an unchanged file.
        self.cursor.changed_ns = if at_end { stat.changed_ns } else { 0 };
        self.cursor.caught_up |= at_end;
    }

    /// Numbers the events of a generation that is read from its start, and copies the decoder's state into the cursor.
    fn emit(&mut self, out: Decoded) -> Vec<NewEvent> {
        let Decoded { mut events, issues, .. } = out;
        if let Some(seen) = &mut self.occurrences {
            seen.number(&mut events);
        }
        self.cursor.issues += issues;
        if let Some(decoder) = &self.decoder {
            self.cursor.decoder_state = decoder.state();
            if let Some(session) = decoder.session()
                && self.cursor.provider_session_id.as_deref() != Some(&**session)
            {
                self.cursor.provider_session_id = Some(session.to_string());
            }
        }
        events
    }

    /// Starts a new generation, because the path has another file.
    fn renew(&mut self) {
        self.cursor.generation += 1;
        self.start_over();
    }

    /// Reads the generation from its start.
    fn start_over(&mut self) {
        self.cursor.caught_up = false;
        self.cursor.issues = 0;
        self.cursor.decoder_state = None;
        self.cursor.provider_session_id = None;
        self.decoder = None;
        self.marks = Marks::default();
        self.marks.store(&mut self.cursor);
        self.half = Half::Unknown;
        self.occurrences = Some(Occurrences::default());
    }

    /// Handles a file that is neither at its path nor open.
    fn vanish(&mut self, now: Now) -> TailRead {
        if self.gone || self.cursor.generation == 0 {
            self.gone = true;
            return TailRead::default();
        }
        self.gone = true;
        let mut decoder = self
            .decoder
            .take()
            .unwrap_or_else(|| (self.spec.make)(Path::new(&**self.place.path()), self.cursor.decoder_state.as_deref()));
        let mut out = Decoded::new(self.provider, Arc::clone(self.place.path()), self.cursor.generation);
        guarded(&mut out, |out| decoder.removed(now.wall, out));
        guarded(&mut out, |out| decoder.pause(out));
        self.decoder = Some(decoder);
        let events = self.emit(out);
        self.decoder = None;
        self.broken = None;
        self.decoded = None;
        if self.spec.format == FileFormat::Whole {
            self.cursor.decoder_state = None;
            self.cursor.caught_up = false;
        }
        TailRead { events, moved: true, vanished: true, ..TailRead::default() }
    }

    /// After an error, drops the decoder, which may be ahead of the cursor, and the open file.
    fn fail(&mut self, source: io::Error) -> TailError {
        let error = self.io(source);
        self.open = None;
        self.stream = None;
        self.decoder = None;
        self.half = Half::Unknown;
        if !self.cursor.caught_up {
            self.start_over();
        }
        error
    }

    fn io(&self, source: io::Error) -> TailError {
        TailError::Io { path: Arc::clone(self.place.path()), offset: self.cursor.offset, source }
    }
}

fn modified_at(stat: &Stat) -> Option<Timestamp> {
    Some(Timestamp::from_millisecond(stat.modified_ns / 1_000_000))
}

fn is_racy(stat: &Stat, now: Now) -> bool {
    let age_ms = now.wall.as_millisecond() - stat.changed_ns / 1_000_000;
    age_ms.unsigned_abs() < RACY.as_millis() as u64
}

/// Runs a decoder; its output is discarded if it panics. Returns whether it succeeded.
fn guarded(out: &mut Decoded, decode: impl FnOnce(&mut Decoded)) -> bool {
    let had = out.events.len();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| decode(out))).is_ok();
    if !done {
        out.events.truncate(had);
    }
    done
}

/// Passes a line to the decoder. A line on which it panics becomes a stub, so that a bug does not end the reading of
/// the file.
fn feed(decoder: &mut dyn Decoder, line: SplitLine<'_>, observed_at: Timestamp, out: &mut Decoded) {
    let (offset, length, hash, raw_kind, issue) = match line {
        SplitLine::Oversized { offset, length, hash } => {
            (offset, length, hash, "oversized", "the line is longer than the limit")
        }
        SplitLine::Whole { offset, bytes } => {
            let record = Record { bytes, offset, observed_at };
            if guarded(out, |out| decode::feed(decoder, record, out)) {
                return;
            }
            (offset, bytes.len() as u64, *blake3::hash(bytes).as_bytes(), "damaged", "the decoder panicked")
        }
    };
    let session = decoder.session().cloned().unwrap_or_else(|| Arc::from(""));
    out.stub(&Stub { raw_kind, issue, offset, length, hash }, observed_at, &session);
}
