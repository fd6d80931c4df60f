//! Lines of standard input, read on a separate thread. Lines end with LF only; a CR before the LF is removed.

use std::io::{self, BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// Maximum length of a line, bytes.
pub(super) const LINE_BYTES: usize = 4 << 20;
/// Maximum number of lines buffered before reading pauses.
const WAITING: usize = 16;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InputLine {
    /// A line without its line ending. Invalid UTF-8 is replaced.
    Whole(String),
    /// A skipped line that exceeded the maximum length.
    TooLong,
}

/// The lines of standard input, until it ends.
pub(super) fn of_stdin() -> io::Result<mpsc::Receiver<InputLine>> {
    let (lines, received) = mpsc::channel(WAITING);
    let read = move || {
        let mut input = BufReader::new(io::stdin());
        // Treat a read error as end of input.
        while let Ok(Some(line)) = next(&mut input) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("lines".to_owned()).spawn(read)?;
    Ok(received)
}

fn next(input: &mut impl BufRead) -> io::Result<Option<InputLine>> {
    let mut bytes = Vec::new();
    input.by_ref().take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.pop_if(|last| *last == b'\n').is_none() && bytes.len() > LINE_BYTES {
        skip_line(input)?;
        return Ok(Some(InputLine::TooLong));
    }
    bytes.pop_if(|last| *last == b'\r');
    Ok(Some(InputLine::Whole(String::from_utf8_lossy(&bytes).into_owned())))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (read, is_end) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        input.consume(read);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<InputLine> {
        let mut lines = Vec::new();
        while let Some(line) = next(&mut input).unwrap() {
            lines.push(line);
        }
        lines
    }

    #[test]
    fn lines_end_with_lf_alone_and_long_ones_are_skipped() {
        let whole = |text: &str| InputLine::Whole(text.to_owned());
        assert_eq!(all("a\r\nb\u{2028}c\n\nd".as_bytes()), [whole("a"), whole("b\u{2028}c"), whole(""), whole("d")]);
        let most = "x".repeat(LINE_BYTES);
        let text = format!("{most}\n{most}y\n{most}yy{most}\nz\n{most}yy");
        let expected = [whole(&most), InputLine::TooLong, InputLine::TooLong, whole("z"), InputLine::TooLong];
        assert!(all(text.as_bytes()) == expected);
        assert_eq!(all(b"\xff\n"), [whole("\u{fffd}")]);
    }
}
