//! Removes secrets from a recording: terminal output is held back until its line is complete, searched together with
//! the text before it, and only then written.
//!
//! A full-screen program ends no lines, so a part of its output is written whenever much is held back. Output still
//! held back when the terminal host is killed is missing from the recording.

use std::collections::VecDeque;

use events::Timestamp;
use terminal::{host::sink::RecordingSink, screen::Size};

use crate::redaction;

/// Maximum size of held-back output, bytes; above it half is written even without a line end.
const MOST: usize = 512 << 10;
/// Size of the written output that is searched together with what follows, bytes.
const CONTEXT: usize = 16 << 10;

enum SinkCall {
    Output(Timestamp, Vec<u8>),
    Resize(Timestamp, Size),
    Mark(Timestamp, String),
    Gap(Timestamp, u64),
}

/// Hands on to another sink what holds no secrets any more.
pub(super) struct Redacting<S> {
    inner: S,
    held: VecDeque<SinkCall>,
    held_bytes: usize,
    /// The end of what was written, as it was.
    context: Vec<u8>,
}

impl<S: RecordingSink> Redacting<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, held: VecDeque::new(), held_bytes: 0, context: Vec::new() }
    }

    /// Writes what is held back, up to this many bytes of output.
    fn write(&mut self, bytes: usize) {
        let mut pieces = vec![std::mem::take(&mut self.context)];
        pieces.extend(self.held.iter().filter_map(|thing| match thing {
            SinkCall::Output(_, bytes) => Some(bytes.clone()),
            SinkCall::Resize(..) | SinkCall::Mark(..) | SinkCall::Gap(..) => None,
        }));
        let whole = pieces.concat();
        let begins = pieces[0].len();
        let cut = begins + bytes;
        redaction::of_byte_pieces(&mut pieces, cut);
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
                SinkCall::Mark(at, text) => self.inner.mark(at, &redaction::text(&text)),
                SinkCall::Gap(at, bytes) => self.inner.gap(at, bytes),
            }
        }
        self.held_bytes -= bytes;
        self.context = whole[cut.saturating_sub(CONTEXT)..cut].to_vec();
    }

    /// Writes the lines that are over.
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
        // Without output before it, nothing is to be held back for.
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

    fn mark(&mut self, at: Timestamp, text: &str) {
        self.queue(SinkCall::Mark(at, text.to_owned()));
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
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<String>>>);

    impl Written {
        fn add(&self, text: String) {
            self.0.lock().unwrap().push(text);
        }

        fn whole(&self) -> String {
            self.0.lock().unwrap().concat()
        }
    }

    impl RecordingSink for Written {
        fn output(&mut self, _: Timestamp, bytes: &[u8]) {
            self.add(String::from_utf8_lossy(bytes).into_owned());
        }

        fn resize(&mut self, _: Timestamp, size: Size) {
            self.add(format!("<{}x{}>", size.columns, size.rows));
        }

        fn mark(&mut self, _: Timestamp, text: &str) {
            self.add(format!("<{text}>"));
        }

        fn gap(&mut self, _: Timestamp, bytes: u64) {
            self.add(format!("<{bytes} missing>"));
        }

        fn quiet(&mut self) {}

        fn end(&mut self, _: Timestamp, code: Option<i32>) {
            self.add(format!("<end {code:?}>"));
        }
    }

    fn secret() -> String {
        ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat()
    }

    fn recorded(text: &str, piece: usize, quiet: bool) -> String {
        let written = Written::default();
        let mut sink = Redacting::new(written.clone());
        let at = Timestamp::from_millisecond(0);
        for bytes in text.as_bytes().chunks(piece) {
            sink.output(at, bytes);
            if quiet {
                sink.quiet();
            }
        }
        sink.end(at, Some(0));
        written.whole()
    }

    #[test]
    fn a_secret_is_not_written_however_it_comes() {
        let text = format!("$ export TOKEN={}\r\nnext\r\n\x1b[2J\x1b[H$ ", secret());
        for piece in 1..80 {
            for quiet in [false, true] {
                let written = recorded(&text, piece, quiet);
                assert!(written.starts_with("$ export TOKEN=[redacted:"), "{piece}: {written}");
                assert!(written.ends_with("]\r\nnext\r\n\x1b[2J\x1b[H$ <end Some(0)>"), "{piece}: {written}");
            }
        }
    }

    #[test]
    fn what_is_no_secret_is_written_as_it_was() {
        let text = "a line of 64 letters, as a build writes them, no secret in it..\n".repeat(20_000) + "é€";
        assert_eq!(recorded(&text, 1000, false), format!("{text}<end Some(0)>"));
        let screen = "\x1b[H\x1b[2Ka screen that ends no line ".repeat(40_000);
        assert_eq!(recorded(&screen, 4096, true), format!("{screen}<end Some(0)>"));
    }

    #[test]
    fn what_happened_between_keeps_its_place() {
        let written = Written::default();
        let mut sink = Redacting::new(written.clone());
        let at = Timestamp::from_millisecond(0);
        sink.resize(at, Size { columns: 80, rows: 24 });
        sink.output(at, b"one\ntwo");
        sink.mark(at, &format!("with {}", secret()));
        sink.quiet();
        sink.output(at, b" three\n");
        sink.gap(at, 7);
        sink.end(at, None);
        let written = written.0.lock().unwrap().clone();
        assert_eq!(
            written,
            ["<80x24>", "one\n", "two", "<with [redacted:github-pat]>", " three\n", "<7 missing>", "<end None>"]
        );
    }
}
