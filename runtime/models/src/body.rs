//! The bytes of request bodies, stored once even if many requests contain them.
//!
//! [`BodyText`] grows at its end. Complete blocks are sealed: requests share them instead of copying them. With a
//! [`SpillFile`], only the last part of the sealed text stays in memory; the rest is read from the file while it is
//! sent.

use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;

/// Minimum number of bytes sealed together.
const SEALED_BYTES: usize = 32 * 1024;
/// Number of sealed bytes kept in memory.
const HELD_BYTES: usize = 1024 * 1024;
/// Maximum number of bytes read from the file at once.
const READ_BYTES: usize = 256 * 1024;

/// Opens the file.
type OpenFile = Box<dyn Fn() -> io::Result<File> + Send + Sync>;

/// The file for encoded text that exceeds the memory limit. It is opened when first needed and must not be used by
/// anything else.
pub struct SpillFile {
    open: OpenFile,
    /// `None` if it cannot be opened.
    file: OnceLock<Option<Arc<File>>>,
    end: AtomicU64,
}

impl std::fmt::Debug for SpillFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpillFile").field("file", &self.file).field("end", &self.end).finish_non_exhaustive()
    }
}

impl SpillFile {
    /// A file opened by `open`, which must return it empty and readable.
    #[must_use]
    pub fn new(open: impl Fn() -> io::Result<File> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), file: OnceLock::new(), end: AtomicU64::new(0) }
    }

    /// Writes the bytes and returns their position; `None` if they cannot be written.
    fn write(&self, bytes: &[u8]) -> Option<(Arc<File>, u64)> {
        let file = self.file.get_or_init(|| (self.open)().ok().map(Arc::new)).as_ref()?;
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        file.write_all_at(bytes, at).ok()?;
        Some((Arc::clone(file), at))
    }
}

/// A part of a body.
#[derive(Debug, Clone)]
pub(crate) enum BodyPart {
    Held(Bytes),
    Spilled { file: Arc<File>, at: u64, len: usize },
}

impl BodyPart {
    fn len(&self) -> usize {
        match self {
            Self::Held(bytes) => bytes.len(),
            Self::Spilled { len, .. } => *len,
        }
    }

    fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Held(bytes) => Self::Held(bytes.slice(range)),
            Self::Spilled { file, at, .. } => {
                Self::Spilled { file: Arc::clone(file), at: at + range.start as u64, len: range.len() }
            }
        }
    }

    /// The bytes; reads them from the file if they are spilled.
    pub(crate) fn read(&self) -> io::Result<Bytes> {
        match self {
            Self::Held(bytes) => Ok(bytes.clone()),
            Self::Spilled { file, at, len } => {
                let mut bytes = vec![0; *len];
                file.read_exact_at(&mut bytes, *at)?;
                Ok(bytes.into())
            }
        }
    }
}

/// The body of a request. A clone shares the bytes.
#[derive(Debug, Clone, Default)]
pub struct RequestBody {
    parts: Vec<BodyPart>,
}

impl RequestBody {
    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(BodyPart::len).sum()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes.
    ///
    /// # Errors
    /// Spilled bytes cannot be read.
    pub fn to_vec(&self) -> io::Result<Vec<u8>> {
        let mut all = Vec::with_capacity(self.len());
        for part in &self.parts {
            all.extend_from_slice(&part.read()?);
        }
        Ok(all)
    }

    /// Its parts; spilled ones are split into pieces that can be read at once.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = BodyPart> {
        self.parts.into_iter().flat_map(|part| {
            let step = if matches!(part, BodyPart::Held(_)) { part.len() } else { READ_BYTES };
            let len = part.len();
            (0..len).step_by(step.max(1)).map(move |from| part.slice(from..len.min(from + step)))
        })
    }

    pub(crate) fn push(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.parts.push(BodyPart::Held(bytes));
        }
    }
}

/// A byte string that grows at its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyText {
    /// The sealed parts, each with its offset.
    sealed: Vec<(usize, BodyPart)>,
    /// Number of sealed bytes.
    sealed_len: usize,
    /// Number of parts at the start of `sealed` that are in the file.
    spilled: usize,
    /// Number of sealed bytes in memory.
    held: usize,
    tail: Vec<u8>,
    spill: Option<Arc<SpillFile>>,
}

impl BodyText {
    pub(crate) fn len(&self) -> usize {
        self.sealed_len + self.tail.len()
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// The bytes from `from` on, all of which must be unsealed.
    pub(crate) fn unsealed(&self, from: usize) -> &[u8] {
        &self.tail[from - self.sealed_len..]
    }

    /// Spills text that exceeds the memory limit to this file.
    pub(crate) fn spill_to(&mut self, spill: Arc<SpillFile>) {
        self.spill = Some(spill);
    }

    /// Seals the text before `to`, if it is long enough.
    pub(crate) fn seal(&mut self, to: usize) {
        let len = to.saturating_sub(self.sealed_len);
        if len < SEALED_BYTES {
            return;
        }
        let rest = self.tail.split_off(len);
        // Allocates exactly the length needed, unlike a vector that grew.
        let part = Bytes::from(std::mem::replace(&mut self.tail, rest).into_boxed_slice());
        self.sealed.push((self.sealed_len, BodyPart::Held(part)));
        self.sealed_len += len;
        self.held += len;
        while self.held > HELD_BYTES && self.spill_one() {}
    }

    /// Moves the oldest part in memory to the file.
    fn spill_one(&mut self) -> bool {
        let Some((_, part)) = self.sealed.get_mut(self.spilled) else { return false };
        if let BodyPart::Held(bytes) = part {
            let Some((file, at)) = self.spill.as_ref().and_then(|spill| spill.write(bytes)) else { return false };
            let len = bytes.len();
            *part = BodyPart::Spilled { file, at, len };
            self.held -= len;
        }
        self.spilled += 1;
        true
    }

    /// Truncates the text to `to` and appends `behind`.
    pub(crate) fn truncate(&mut self, to: usize, behind: &[u8]) {
        if to >= self.sealed_len {
            self.tail.truncate(to - self.sealed_len);
        } else {
            self.tail.clear();
            let whole = self.sealed.partition_point(|(start, part)| start + part.len() <= to);
            if let Some((start, part)) = self.sealed.get_mut(whole) {
                *part = part.slice(0..to - *start);
            }
            let parts = if self.sealed.get(whole).is_some_and(|(start, _)| *start < to) { whole + 1 } else { whole };
            self.sealed.truncate(parts);
            self.spilled = self.spilled.min(parts);
            self.sealed_len = to;
            self.held = self.sealed[self.spilled..].iter().map(|(_, part)| part.len()).sum();
        }
        self.tail.extend_from_slice(behind);
    }

    /// Appends a range of the text to a body.
    pub(crate) fn append_to(&self, range: Range<usize>, body: &mut RequestBody) {
        let first = self.sealed.partition_point(|(start, part)| start + part.len() <= range.start);
        for (start, part) in &self.sealed[first..] {
            let (from, to) = (range.start.max(*start), range.end.min(start + part.len()));
            if from >= to {
                break;
            }
            body.parts.push(part.slice(from - start..to - start));
        }
        let from = range.start.max(self.sealed_len);
        if from < range.end {
            let bytes = &self.tail[from - self.sealed_len..range.end - self.sealed_len];
            body.push(Bytes::copy_from_slice(bytes));
        }
    }
}

#[cfg(test)]
mod tests;
