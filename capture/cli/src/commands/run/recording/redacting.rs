//! Removes secrets from a recording: terminal output is held back until its line is complete, searched together with
//! the text before it, and only then written.
//!
//! A full-screen program does not end its lines, so part of its output is written whenever much is held back. Output
//! still held back when the terminal host is killed is missing from the recording.

use std::collections::VecDeque;

use events::Timestamp;
use host_protocol::screen::Size;
use terminal::host::sink::RecordingSink;

/// Maximum size of held-back output, bytes. Above it, half is written even without a line end.
const MOST: usize = 512 << 10;
/// Size of the written output that is searched together with the following output, bytes.
const CONTEXT: usize = 16 << 10;

enum SinkCall {
    Output(Timestamp, Vec<u8>),
    Resize(Timestamp, Size),
    Gap(Timestamp, u64),
}

/// Passes output to another sink once its secrets are removed.
pub(super) struct Redacting<S> {
    inner: S,
    held: VecDeque<SinkCall>,
    held_bytes: usize,
    /// The end of the written output, before redaction.
    context: Vec<u8>,
}

impl<S: RecordingSink> Redacting<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, held: VecDeque::new(), held_bytes: 0, context: Vec::new() }
    }

    /// Writes held-back output, up to this many bytes.
    fn write(&mut self, bytes: usize) {
        let mut pieces = vec![std::mem::take(&mut self.context)];
        pieces.extend(self.held.iter().filter_map(|thing| match thing {
            SinkCall::Output(_, bytes) => Some(bytes.clone()),
            SinkCall::Resize(..) | SinkCall::Gap(..) => None,
        }));
        let whole = pieces.concat();
        let begins = pieces[0].len();
        let cut = begins + bytes;
        redact::of_byte_pieces(&mut pieces, cut);
        let mut pieces = pieces.into_iter().skip(1);
        let mut left = bytes;
        while let Some(thing) = self.held.pop_front() {
            match thing {
                SinkCall::Output(at, output) if output.len() <= left => {
                    left -= output.len();
                    self.inner.output(at, &pieces.next().unwrap_or_default());
                }
                SinkCall::Output(at, output) => {
                    if left > 0 {
                        self.inner.output(at, &pieces.next().unwrap_or_default());
                    }
                    self.held.push_front(SinkCall::Output(at, output[left..].to_vec()));
                    break;
                }
                SinkCall::Resize(at, size) => self.inner.resize(at, size),
                SinkCall::Gap(at, bytes) => self.inner.gap(at, bytes),
            }
        }
        self.held_bytes -= bytes;
        self.context = whole[cut.saturating_sub(CONTEXT)..cut].to_vec();
    }

    /// Writes the complete lines.
    fn write_lines(&mut self) {
        let mut before = self.held_bytes;
        for thing in self.held.iter().rev() {
            if let SinkCall::Output(_, output) = thing {
                before -= output.len();
                if let Some(end) = output.iter().rposition(|b| *b == b'\n') {
                    return self.write(before + end + 1);
                }
            }
        }
    }

    fn queue(&mut self, thing: SinkCall) {
        // There is no earlier output to wait for.
        if self.held_bytes == 0 && !matches!(thing, SinkCall::Output(..)) {
            self.held.push_back(thing);
            return self.write(0);
        }
        if let SinkCall::Output(_, output) = &thing {
            self.held_bytes += output.len();
        }
        self.held.push_back(thing);
        if self.held_bytes > MOST {
            self.write(self.held_bytes / 2);
        }
    }
}

impl<S: RecordingSink> RecordingSink for Redacting<S> {
    fn output(&mut self, at: Timestamp, bytes: &[u8]) {
        self.queue(SinkCall::Output(at, bytes.to_vec()));
    }

    fn resize(&mut self, at: Timestamp, size: Size) {
        self.queue(SinkCall::Resize(at, size));
    }

    fn gap(&mut self, at: Timestamp, bytes: u64) {
        self.queue(SinkCall::Gap(at, bytes));
    }

    fn quiet(&mut self) {
        self.write_lines();
        if self.held.is_empty() {
            self.inner.quiet();
        }
    }

    fn end(&mut self, at: Timestamp, code: Option<i32>) {
        self.write(self.held_bytes);
        self.inner.end(at, code);
    }
}

#[cfg(test)]
mod tests;
