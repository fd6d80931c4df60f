//! Files that contain one record and are rewritten as a whole.
//!
//! Not every agent rewrites atomically: an empty or half-written file is an issue only if it stays so.

use std::{io, path::Path, sync::Arc, time::Duration};

use super::{
    TRIES, Tail, TailRead, TailReader,
    disk::{Source, Stat},
    guarded, is_racy,
    lines::Buffer,
    marks::Marks,
    modified_at,
    occurrence::Occurrences,
};
use crate::{
    decode::{Decoded, Malformed, Record},
    tail::{broken::Broken, error::TailError, spec::Now},
};

/// Time after which a malformed file counts as an issue.
const PATIENCE: Duration = Duration::from_secs(2);

impl Tail {
    pub(super) fn read_whole(&mut self, reader: &mut TailReader, now: Now) -> Result<TailRead, TailError> {
        let there = reader.disk.stat(&self.place).map_err(|e| self.io(e))?;
        let Some(source) = self.open_source(reader, there)? else {
            return Ok(self.vanish(now));
        };
        let Some((stat, length)) = self.read_whole_file(&*source, reader)? else {
            return Ok(TailRead { unsettled: true, ..TailRead::default() });
        };
        let bytes = &reader.buffer.bytes[..length];
        let result = self.decode_whole(bytes, &stat, now);
        reader.buffer.rest();
        result
    }

    /// Reads the whole file into the buffer; `None` if it changes faster than it can be read.
    fn read_whole_file(
        &self,
        source: &dyn Source,
        reader: &mut TailReader,
    ) -> Result<Option<(Stat, usize)>, TailError> {
        let cap = reader.limits.whole_bytes;
        for _ in 0..TRIES {
            let stat = source.stat().map_err(|e| self.io(e))?;
            if stat.size > cap {
                return Err(TailError::TooLarge { path: Arc::clone(self.place.path()), size: stat.size, cap });
            }
            let length = fill(source, &mut reader.buffer, cap).map_err(|e| self.io(e))?;
            let after = source.stat().map_err(|e| self.io(e))?;
            if after == stat && length as u64 == stat.size {
                return Ok(Some((stat, length)));
            }
        }
        Ok(None)
    }

    fn decode_whole(&mut self, bytes: &[u8], stat: &Stat, now: Now) -> Result<TailRead, TailError> {
        self.gone = false;
        // After the file vanished the cursor is not caught up: a new file is another generation.
        let same = stat.key == self.cursor.key && self.cursor.caught_up;
        let generation = self.cursor.generation + u32::from(!same);
        let hash = blake3::hash(bytes);
        if same && self.decoded == Some(hash) {
            // The file was only touched, or checked twice.
            self.broken = None;
            self.advance_to_end(bytes, stat);
            return Ok(TailRead { unsettled: is_racy(stat, now), ..TailRead::default() });
        }
        let decoder = self.decoder.get_or_insert_with(|| {
            (self.spec.make)(Path::new(&**self.place.path()), self.cursor.decoder_state.as_deref())
        });
        let mut out = Decoded::new(self.provider, Arc::clone(self.place.path()), generation);
        let trimmed = bytes.trim_ascii();
        let trimmed = trimmed.strip_prefix(b"\xef\xbb\xbf").unwrap_or(trimmed);
        let decoded = if trimmed.is_empty() {
            Err("it is empty".to_owned())
        } else {
            let record = Record { bytes: trimmed, offset: 0, observed_at: now.wall };
            let mut result = Err("the decoder panicked".to_owned());
            guarded(&mut out, |out| {
                result = decoder.record(record, out).map_err(|Malformed(error)| error.to_string());
            });
            result
        };
        if let Err(error) = decoded {
            return self.wait_for_rest(error, stat, now);
        }
        guarded(&mut out, |out| decoder.pause(out));
        self.broken = None;
        self.decoded = Some(hash);
        if !same {
            self.cursor.issues = 0;
        }
        self.cursor.generation = generation;
        self.advance_to_end(bytes, stat);
        // Each read is a separate pass: equal records get the same numbers as before.
        self.occurrences = Some(Occurrences::default());
        let events = self.emit(out);
        Ok(TailRead {
            events,
            moved: true,
            unsettled: is_racy(stat, now),
            modified_at: modified_at(stat),
            ..TailRead::default()
        })
    }

    fn wait_for_rest(&mut self, error: String, stat: &Stat, now: Now) -> Result<TailRead, TailError> {
        let mut broken = self.broken.unwrap_or(Broken { since: now.steady, said: false });
        let waited = now.steady.saturating_sub(broken.since) >= PATIENCE;
        let say = waited && !broken.said;
        broken.said |= waited;
        self.broken = Some(broken);
        if waited {
            self.cursor.key = stat.key;
            self.cursor.size = stat.size;
            self.cursor.changed_ns = stat.changed_ns;
        }
        if say {
            self.cursor.issues += 1;
            return Err(TailError::Malformed { path: Arc::clone(self.place.path()), error });
        }
        Ok(TailRead { unsettled: !waited, ..TailRead::default() })
    }

    fn advance_to_end(&mut self, bytes: &[u8], stat: &Stat) {
        self.marks = Marks::default();
        self.marks.pass(bytes);
        self.cursor.head_length = 0;
        self.marks.store(&mut self.cursor);
        self.cursor.key = stat.key;
        self.cursor.size = stat.size;
        self.cursor.changed_ns = stat.changed_ns;
        self.cursor.caught_up = true;
    }
}

/// Reads from the start to the end, or to just above `cap`.
fn fill(source: &dyn Source, buffer: &mut Buffer, cap: u64) -> io::Result<usize> {
    let mut filled = 0;
    loop {
        if filled == buffer.bytes.len() {
            if filled as u64 > cap {
                return Ok(filled);
            }
            buffer.grow(usize::try_from(cap).unwrap_or(usize::MAX).saturating_add(1));
        }
        match source.read_at(&mut buffer.bytes[filled..], filled as u64)? {
            0 => return Ok(filled),
            n => filled += n,
        }
    }
}
