//! Files of lines that are compressed as a whole with zstd, as Codex stores inactive rollouts (0.137 and later).
//!
//! Such a file is not appended to: a different size, time or inode means a new generation, read from its start. It is
//! decoded as a stream, one batch at a time. The cursor's offset counts decoded bytes; its size is the size of the
//! compressed file, so that a `stat` shows whether the file changed.

use std::{
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::Arc,
};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::{
    Now, Tail, TailRead, TailReader,
    disk::{Source, Stat},
    feed, guarded, is_racy,
    lines::SplitLine,
    modified_at,
    spec::ReadLimits,
};
use crate::{decode::Decoded, tail::error::TailError};

/// A compressed file that is being read.
pub(super) struct OpenStream {
    lines: BufReader<Frames>,
    /// The current line.
    line: Vec<u8>,
    /// The state of the file when it was opened.
    stat: Stat,
    /// The error after which no more of it can be decoded.
    broken: Option<String>,
}

impl Tail {
    pub(super) fn read_compressed(&mut self, reader: &mut TailReader, now: Now) -> Result<TailRead, TailError> {
        let there = reader.disk.stat(&self.place).map_err(|e| self.io(e))?;
        let Some(stat) = there else {
            self.stream = None;
            return Ok(self.vanish(now));
        };
        let before = (self.cursor.offset, self.cursor.generation, self.cursor.issues);
        if self.stream.as_ref().is_none_or(|stream| !is_same(&stream.stat, &stat)) {
            let is_read = self.cursor.generation > 0
                && self.cursor.caught_up
                && self.cursor.key == stat.key
                && self.cursor.size == stat.size
                && self.cursor.changed_ns == stat.changed_ns;
            if is_read {
                return Ok(TailRead { unsettled: is_racy(&stat, now), ..TailRead::default() });
            }
            let Some(source) = self.open_source(reader, Some(stat))? else { return Ok(self.vanish(now)) };
            let stat = source.stat().map_err(|e| self.io(e))?;
            self.renew();
            self.gone = false;
            let lines = BufReader::new(Frames::new(source));
            self.stream = Some(OpenStream { lines, line: Vec::new(), stat, broken: None });
        }
        let Some(mut stream) = self.stream.take() else { return Ok(TailRead::default()) };
        if let Some(error) = stream.broken.take() {
            return Err(self.give_up(&stream.stat, error));
        }
        let decoder = self.decoder.get_or_insert_with(|| {
            (self.spec.make)(Path::new(&**self.place.path()), self.cursor.decoder_state.as_deref())
        });
        let mut out = Decoded::new(self.provider, Arc::clone(self.place.path()), self.cursor.generation);
        let mut offset = self.cursor.offset;
        let from = offset;
        let at_end = loop {
            if offset - from >= reader.limits.batch_bytes {
                break false;
            }
            let mut each = |line: SplitLine<'_>| feed(&mut **decoder, line, now.wall, &mut out);
            match next_line(&mut stream.lines, &mut stream.line, offset, &reader.limits, &mut each) {
                Ok(0) => break true,
                Ok(length) => offset += length,
                Err(error) => {
                    stream.broken = Some(format!("cannot decompress it after byte {offset}: {error}"));
                    break false;
                }
            }
        };
        if at_end {
            guarded(&mut out, |out| decoder.pause(out));
        }
        let stat = stream.stat;
        self.cursor.offset = offset;
        self.stand_at(&stat, at_end);
        if !at_end {
            self.stream = Some(stream);
        }
        let events = self.emit(out);
        Ok(TailRead {
            events,
            moved: before != (self.cursor.offset, self.cursor.generation, self.cursor.issues),
            more: !at_end,
            unsettled: is_racy(&stat, now),
            modified_at: modified_at(&stat),
            ..TailRead::default()
        })
    }
}

impl Tail {
    /// Marks a file as read although the rest cannot be decoded. If the agent is still writing the file, the
    /// completed file is read later as a new generation.
    fn give_up(&mut self, stat: &Stat, error: String) -> TailError {
        self.stand_at(stat, true);
        self.cursor.issues += 1;
        self.decoder = None;
        TailError::Malformed { path: Arc::clone(self.place.path()), error }
    }

    fn stand_at(&mut self, stat: &Stat, at_end: bool) {
        self.cursor.key = stat.key;
        self.cursor.size = stat.size;
        // A cursor that is not at the end must never equal the cursor of an unchanged file.
        self.cursor.changed_ns = if at_end { stat.changed_ns } else { 0 };
        self.cursor.caught_up |= at_end;
    }
}

fn is_same(opened: &Stat, there: &Stat) -> bool {
    (opened.key, opened.size, opened.changed_ns) == (there.key, there.size, there.changed_ns)
}

/// Passes the next line to `each`; returns its length with the newline, 0 at the end.
fn next_line(
    lines: &mut impl BufRead,
    buffer: &mut Vec<u8>,
    offset: u64,
    limits: &ReadLimits,
    each: &mut dyn FnMut(SplitLine<'_>),
) -> io::Result<u64> {
    buffer.clear();
    let mut length = lines.take(limits.line_bytes.saturating_add(1)).read_until(b'\n', buffer)? as u64;
    let is_whole = buffer.last() == Some(&b'\n') || length <= limits.line_bytes;
    if is_whole {
        let bytes = buffer.strip_suffix(b"\n").unwrap_or(buffer);
        if length > 0 {
            each(SplitLine::Whole { offset, bytes });
        }
        return Ok(length);
    }
    let mut hasher = blake3::Hasher::new();
    loop {
        let has_end = buffer.last() == Some(&b'\n');
        hasher.update(buffer.strip_suffix(b"\n").unwrap_or(buffer));
        if has_end {
            break;
        }
        buffer.clear();
        let more = lines.take(1 << 20).read_until(b'\n', buffer)?;
        if more == 0 {
            break;
        }
        length += more as u64;
    }
    let newline = u64::from(buffer.last() == Some(&b'\n'));
    each(SplitLine::Oversized { offset, length: length - newline, hash: *hasher.finalize().as_bytes() });
    Ok(length)
}

/// The decoded bytes of a file's frames, one after another.
struct Frames {
    frame: Option<StreamingDecoder<BufReader<SourceReader>, FrameDecoder>>,
    /// Present between two frames.
    source: Option<BufReader<SourceReader>>,
}

impl Frames {
    fn new(source: Box<dyn Source>) -> Self {
        Self { frame: None, source: Some(BufReader::new(SourceReader { source, offset: 0 })) }
    }

    /// Opens the next frame; false at the end of the file.
    fn open_next(&mut self) -> io::Result<bool> {
        let Some(mut source) = self.source.take() else { return Ok(false) };
        if source.fill_buf()?.is_empty() {
            self.source = Some(source);
            return Ok(false);
        }
        self.frame = Some(StreamingDecoder::new(source).map_err(io::Error::other)?);
        Ok(true)
    }
}

impl Read for Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(into)?;
                if read > 0 || into.is_empty() {
                    return Ok(read);
                }
                self.source = self.frame.take().map(StreamingDecoder::into_inner);
            }
            if !self.open_next()? {
                return Ok(0);
            }
        }
    }
}

/// Reads an open file from its start.
struct SourceReader {
    source: Box<dyn Source>,
    offset: u64,
}

impl Read for SourceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(into, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
