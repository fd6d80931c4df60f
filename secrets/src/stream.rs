//! Redacts a text that arrives in pieces, in bounded memory.
//!
//! A piece is output only when enough of the following text is known, and is examined together with enough of the
//! preceding text. So the result does not depend on the boundaries of the pieces, for secrets and contexts up to
//! [`CONTEXT`] bytes.

use crate::{found::FoundSecret, redactor::Redactor, text};

/// Context before and after a position when it is redacted, bytes.
const CONTEXT: usize = 96 * 1024;
/// Bytes read before the next redacted part is returned.
const PART: usize = 1024 * 1024;

/// A text that is redacted while it arrives.
#[derive(Debug)]
pub struct RedactingStream {
    redactor: Redactor,
    /// The recently output bytes, kept as context, followed by the bytes still to be output.
    held: Vec<u8>,
    /// The number of bytes of `held` that were output.
    done: usize,
    context: usize,
    part: usize,
}

impl RedactingStream {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new(), done: 0, context: CONTEXT, part: PART }
    }

    #[cfg(test)]
    pub(crate) fn with_sizes(redactor: Redactor, context: usize, part: usize) -> Self {
        Self { redactor, held: Vec::new(), done: 0, context, part }
    }

    /// Accepts a piece, and appends to `out` the text that can be output now.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(piece);
        if self.held.len() - self.done >= self.part + self.context {
            let most = self.held.len() - self.context;
            self.let_out(most, out);
        }
    }

    /// Ends the text and appends the remaining text to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        let most = self.held.len();
        self.let_out(most, out);
    }

    fn let_out(&mut self, most: usize, out: &mut Vec<u8>) {
        let found = self.redactor.redact_bytes(&self.held).found;
        let mut cut = most;
        if most < self.held.len() {
            // Cut after a whole line if one ends nearby, and never inside a secret.
            let near = cut.saturating_sub(self.context / 2).max(self.done);
            cut = memchr::memrchr(b'\n', &self.held[near..cut]).map_or(cut, |i| near + i + 1);
            if let Some(inside) = found.iter().find(|one| one.range.start < cut && cut < one.range.end) {
                cut = inside.range.start.max(self.done);
            }
        }
        let now: Vec<FoundSecret> = found
            .into_iter()
            .filter(|one| one.range.end > self.done && one.range.start < cut)
            .map(|one| FoundSecret {
                range: one.range.start.max(self.done) - self.done..one.range.end.min(cut) - self.done,
                kind: one.kind,
            })
            .collect();
        out.extend_from_slice(&text::replaced(&self.held[self.done..cut], &now));
        let keep = cut.saturating_sub(self.context);
        self.held.drain(..keep);
        self.done = cut - keep;
    }
}

impl Redactor {
    /// Starts redacting a text that arrives in pieces.
    #[must_use]
    pub fn stream(&self) -> RedactingStream {
        RedactingStream::new(self.clone())
    }
}
