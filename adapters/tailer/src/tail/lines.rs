//! Splits bytes into whole lines, in memory that does not grow with the file or its lines.
//!
//! A line without its newline is not read yet. A line above the limit is not stored but streamed through a hasher, and
//! becomes [`SplitLine::Oversized`].

use std::io;

use super::{disk::Source, marks::Marks};
use crate::tail::spec::ReadLimits;

/// Size of one read and of an unused buffer, bytes.
const CHUNK: usize = 256 * 1024;
/// An incomplete line longer than this is not read again from its start to find its newline.
const LONG_HALF: u64 = 256 * 1024;
/// Maximum amount of an oversized line hashed in one call, in batches.
const STREAM_BATCHES: u64 = 16;

/// Size of a buffer that is used again soon, bytes: few files need a larger one.
const KEPT: usize = 1 << 20;

/// A read buffer. A thread owns it and uses it for one file after another.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// Size to which it is shrunk after a long line, bytes.
    keeps: usize,
}

impl Buffer {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; CHUNK], keeps: CHUNK }
    }

    /// Sets whether it is used again soon: it then keeps the memory of a long line for the next one.
    pub(super) fn set_busy(&mut self, busy: bool) {
        self.keeps = if busy { KEPT } else { CHUNK };
        self.rest();
    }

    /// Doubles the size, up to `most`.
    pub(super) fn grow(&mut self, most: usize) {
        let room = (self.bytes.len() * 2).min(most).max(CHUNK);
        self.bytes.resize(room, 0);
    }

    /// Frees the memory of a long line.
    pub(super) fn rest(&mut self) {
        if self.bytes.len() > self.keeps {
            self.bytes.truncate(self.keeps);
            self.bytes.shrink_to_fit();
        }
    }
}

/// A piece of a file.
#[derive(Debug)]
pub(super) enum SplitLine<'a> {
    /// A line, without its newline.
    Whole { offset: u64, bytes: &'a [u8] },
    /// A line above the limit.
    Oversized { offset: u64, length: u64, hash: [u8; 32] },
}

/// The state of a line without a newline.
#[derive(Debug, Default)]
pub(super) enum Half {
    /// Nothing is known: it is read again from its start.
    #[default]
    Unknown,
    /// There is no newline before this offset in the file.
    Searched(u64),
    /// It is already above the limit.
    Giant(Box<Giant>),
}

/// A line above the limit, with the hash of the bytes read so far.
#[derive(Debug)]
pub(super) struct Giant {
    hasher: blake3::Hasher,
    length: u64,
    ends: Marks,
}

impl Giant {
    fn new() -> Box<Self> {
        Box::new(Self { hasher: blake3::Hasher::new(), length: 0, ends: Marks::default() })
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.ends.pass(bytes);
        self.length += bytes.len() as u64;
    }
}

/// The progress of a call.
#[derive(Debug)]
pub(super) struct SplitProgress {
    /// Whether the end of the file was reached.
    pub(super) at_end: bool,
    /// The error that stopped it. The lines before it are valid.
    pub(super) error: Option<io::Error>,
}

/// The outcome of the search for the end of a line.
enum NewlineSearch {
    Found,
    AtEnd,
    Enough,
}

/// Reads whole lines from `marks.offset()` on and moves the marks after them. `half` is the state of the incomplete
/// line there; `size` is the current size of the file.
pub(super) fn split(
    source: &dyn Source,
    buffer: &mut Buffer,
    half: &mut Half,
    marks: &mut Marks,
    size: u64,
    limits: &ReadLimits,
    each: &mut dyn FnMut(SplitLine<'_>),
) -> SplitProgress {
    let known = match half {
        Half::Unknown => marks.offset(),
        Half::Searched(to) => *to,
        Half::Giant(giant) => marks.offset() + giant.length,
    };
    if size < known {
        // The searched bytes are gone.
        *half = Half::Unknown;
    }
    let mut pass = Pass { source, buffer, half, marks, size, limits };
    let result = pass.run(each);
    buffer.rest();
    match result {
        Ok(at_end) => SplitProgress { at_end, error: None },
        Err(error) => SplitProgress { at_end: false, error: Some(error) },
    }
}

struct Pass<'a> {
    source: &'a dyn Source,
    buffer: &'a mut Buffer,
    half: &'a mut Half,
    marks: &'a mut Marks,
    size: u64,
    limits: &'a ReadLimits,
}

impl Pass<'_> {
    fn run(&mut self, each: &mut dyn FnMut(SplitLine<'_>)) -> io::Result<bool> {
        let start = self.marks.offset();
        while self.marks.offset() - start < self.limits.batch_bytes {
            let found = match self.half {
                Half::Unknown => self.whole_lines(start, each)?,
                Half::Searched(_) => self.search()?,
                Half::Giant(_) => self.stream(each)?,
            };
            match found {
                NewlineSearch::Found => {}
                NewlineSearch::AtEnd => return Ok(true),
                NewlineSearch::Enough => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Reads lines within the limit; `Found` if the current line turned out to be above it.
    fn whole_lines(&mut self, start: u64, each: &mut dyn FnMut(SplitLine<'_>)) -> io::Result<NewlineSearch> {
        let mut filled = 0;
        loop {
            if filled == self.buffer.bytes.len() {
                if filled as u64 > self.limits.line_bytes {
                    let mut giant = Giant::new();
                    giant.pass(&self.buffer.bytes[..filled]);
                    *self.half = Half::Giant(giant);
                    return Ok(NewlineSearch::Found);
                }
                self.buffer.grow(usize::try_from(self.limits.line_bytes).unwrap_or(usize::MAX).saturating_add(CHUNK));
            }
            let base = self.marks.offset();
            let most = self.buffer.bytes.len().min(filled + self.read_bytes());
            let n = self.source.read_at(&mut self.buffer.bytes[filled..most], base + filled as u64)?;
            if n == 0 {
                return Ok(self.stop_at(base + filled as u64));
            }
            let mut searched = filled;
            filled += n;
            let mut from = 0;
            let bytes = &self.buffer.bytes[..filled];
            while let Some(found) = memchr::memchr(b'\n', &bytes[searched..]) {
                let end = searched + found;
                each(self.line(base + from as u64, &bytes[from..end]));
                from = end + 1;
                searched = from;
            }
            if from > 0 {
                self.marks.pass(&self.buffer.bytes[..from]);
                if self.marks.offset() - start >= self.limits.batch_bytes {
                    return Ok(NewlineSearch::Enough);
                }
                self.buffer.bytes.copy_within(from..filled, 0);
                filled -= from;
            }
            let reached = self.marks.offset() + filled as u64;
            if reached >= self.size {
                return Ok(self.stop_at(reached));
            }
        }
    }

    /// No read is larger than a batch.
    fn read_bytes(&self) -> usize {
        usize::try_from(self.limits.batch_bytes).unwrap_or(usize::MAX).clamp(16, CHUNK)
    }

    /// Handles the end of the file at `reached`, after an incomplete line.
    fn stop_at(&mut self, reached: u64) -> NewlineSearch {
        if reached - self.marks.offset() > LONG_HALF {
            *self.half = Half::Searched(reached);
        }
        NewlineSearch::AtEnd
    }

    /// A line from a single read may still be above a limit that is smaller than a read.
    fn line<'b>(&self, offset: u64, bytes: &'b [u8]) -> SplitLine<'b> {
        if bytes.len() as u64 <= self.limits.line_bytes {
            return SplitLine::Whole { offset, bytes };
        }
        SplitLine::Oversized { offset, length: bytes.len() as u64, hash: *blake3::hash(bytes).as_bytes() }
    }

    /// Searches for the newline of a long incomplete line after the searched bytes. `Found` if it exists, or if the
    /// line turned out to be above the limit.
    fn search(&mut self) -> io::Result<NewlineSearch> {
        let Half::Searched(mut at) = *self.half else {
            return Ok(NewlineSearch::Found);
        };
        loop {
            if at - self.marks.offset() > self.limits.line_bytes {
                *self.half = Half::Giant(Giant::new());
                return Ok(NewlineSearch::Found);
            }
            let n = self.source.read_at(&mut self.buffer.bytes, at)?;
            if n == 0 {
                *self.half = Half::Searched(at);
                return Ok(NewlineSearch::AtEnd);
            }
            if memchr::memchr(b'\n', &self.buffer.bytes[..n]).is_some() {
                *self.half = Half::Unknown;
                return Ok(NewlineSearch::Found);
            }
            at += n as u64;
        }
    }

    fn stream(&mut self, each: &mut dyn FnMut(SplitLine<'_>)) -> io::Result<NewlineSearch> {
        let Half::Giant(giant) = &mut *self.half else {
            return Ok(NewlineSearch::Found);
        };
        let offset = self.marks.offset();
        let enough = giant.length + self.limits.batch_bytes.saturating_mul(STREAM_BATCHES);
        while giant.length < enough {
            let n = self.source.read_at(&mut self.buffer.bytes, offset + giant.length)?;
            if n == 0 {
                return Ok(NewlineSearch::AtEnd);
            }
            let Some(end) = memchr::memchr(b'\n', &self.buffer.bytes[..n]) else {
                giant.pass(&self.buffer.bytes[..n]);
                continue;
            };
            giant.pass(&self.buffer.bytes[..end]);
            let (length, hash) = (giant.length, *giant.hasher.finalize().as_bytes());
            giant.ends.pass(b"\n");
            self.marks.append(&giant.ends);
            *self.half = Half::Unknown;
            each(SplitLine::Oversized { offset, length, hash });
            return Ok(NewlineSearch::Found);
        }
        Ok(NewlineSearch::Enough)
    }
}
