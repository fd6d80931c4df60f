//! Unescapes text before it is searched: removes colours between a key and its value, joins continued lines, and
//! decodes escaped quotes and signs (`\u0022`, `&quot;`, `%22`).
//!
//! Only the surroundings of escapes are searched in this form, in addition to the text itself. [`Unescaped::in_text`]
//! maps a result to its range in the original text.

use std::ops::Range;

use crate::text::{line_end, line_start, until};

/// Trigger words that start a search around an escape.
pub(crate) const WORDS: &[&str] = &[
    "\x1b[", "\x1b]", "\x1b(", "\\x1b[", "\\033[", "\\e[", "\\u00", "\\x22", "\\x27", "\\x3d", "\\x3a", "\\\n",
    "\\\r\n", "\\\\\\n", "&quot;", "&apos;", "&amp;", "&lt;", "&gt;", "&equals;", "&colon;", "&#", "%22", "%27", "%3d",
    "%3a",
];

/// How much before an escape is read, bytes.
const BEFORE: usize = 400;
/// How much after an escape is read, bytes.
const BEHIND: usize = 640;
/// Longest terminal escape sequence, bytes.
const LONGEST_SEQUENCE: usize = 256;

/// A piece of the unescaped text and its origin.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Its start in the unescaped text.
    at: usize,
    /// Its start in the original text.
    from: usize,
    /// Its end in the original text.
    to: usize,
    /// Whether it is copied unchanged from the text.
    is_copy: bool,
}

/// The unescaped surroundings of the escapes of a text.
#[derive(Debug, Default)]
pub(crate) struct Unescaped {
    pub(crate) text: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Unescaped {
    /// Reads the surroundings of the escapes, which must be sorted.
    pub(crate) fn around(bytes: &[u8], escapes: &[usize]) -> Self {
        let mut all = Self::default();
        let mut escapes = escapes.iter().copied().peekable();
        let mut done = 0;
        while let Some(escape) = escapes.next() {
            let start = line_start(bytes, escape, BEFORE).max(done);
            let mut end = line_end(bytes, (escape + BEHIND).min(bytes.len()), BEHIND);
            while let Some(next) = escapes.next_if(|next| *next <= end) {
                end = line_end(bytes, (next + BEHIND).min(bytes.len()), BEHIND);
            }
            if start < end {
                all.read(bytes, start..end);
                all.text.push(b'\n');
                done = end;
            }
        }
        all
    }

    /// The range of the original text that corresponds to a range of the unescaped text.
    pub(crate) fn in_text(&self, range: &Range<usize>) -> Range<usize> {
        let piece_of = |at: usize| self.pieces.partition_point(|piece| piece.at <= at).checked_sub(1);
        let place = |at: usize, to_end: bool| {
            let piece = piece_of(at).map(|index| self.pieces[index])?;
            Some(match (piece.is_copy, to_end) {
                (true, false) => (piece.from + (at - piece.at)).min(piece.to),
                (true, true) => (piece.from + (at - piece.at) + 1).min(piece.to),
                (false, false) => piece.from,
                (false, true) => piece.to,
            })
        };
        let start = place(range.start, false).unwrap_or_default();
        let end = range.end.checked_sub(1).and_then(|last| place(last, true)).unwrap_or(start);
        start..end.max(start)
    }

    fn read(&mut self, bytes: &[u8], range: Range<usize>) {
        let bytes = &bytes[..range.end];
        let mut at = range.start;
        let mut copied = at;
        while at < range.end {
            let read = match bytes[at] {
                0x1b => terminal_sequence(bytes, at + 1).map(|end| (None, end)),
                b'\\' => behind_slashes(bytes, at),
                b'&' => entity(bytes, at),
                b'%' => percent(bytes, at),
                _ => None,
            };
            match read {
                Some((letter, end)) => {
                    self.copy(bytes, copied..at);
                    if let Some(letter) = letter {
                        self.pieces.push(Piece { at: self.text.len(), from: at, to: end, is_copy: false });
                        self.text.push(letter);
                    }
                    at = end;
                    copied = end;
                }
                None => at += 1,
            }
        }
        self.copy(bytes, copied..range.end);
    }

    fn copy(&mut self, bytes: &[u8], range: Range<usize>) {
        if !range.is_empty() {
            self.pieces.push(Piece { at: self.text.len(), from: range.start, to: range.end, is_copy: true });
            self.text.extend_from_slice(&bytes[range]);
        }
    }
}

/// The end of a terminal sequence whose ESC is directly before `at`.
fn terminal_sequence(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'[' => {
            let end = until(bytes, at + 1, LONGEST_SEQUENCE, |b| !(0x20..0x40).contains(&b));
            bytes.get(end).is_some_and(|b| (0x40..0x7f).contains(b)).then_some(end + 1)
        }
        b']' => {
            let end = until(bytes, at + 1, LONGEST_SEQUENCE, |b| b == 0x07 || b == 0x1b || b == b'\n');
            match bytes.get(end) {
                Some(0x07) => Some(end + 1),
                Some(0x1b) if bytes.get(end + 1) == Some(&b'\\') => Some(end + 2),
                _ => None,
            }
        }
        b'(' | b')' => Some((at + 2).min(bytes.len())),
        _ => None,
    }
}

/// The character that backslashes at `at` and the following characters represent, and the end of the escape; no
/// character for a colour or a line continuation.
fn behind_slashes(bytes: &[u8], at: usize) -> Option<(Option<u8>, usize)> {
    let end = until(bytes, at, 16, |b| b != b'\\');
    let slashes = end - at;
    let rest = &bytes[end..];
    let goes_on = |behind: usize| Some((None, until(bytes, behind, 128, |b| b != b' ' && b != b'\t')));
    match rest {
        [b'\n', ..] if slashes == 1 => goes_on(end + 1),
        [b'\r', b'\n', ..] if slashes == 1 => goes_on(end + 2),
        [b'n', ..] if slashes >= 3 => goes_on(end + 1),
        [b'u', b'0', b'0', high, low, ..] => coded(bytes, hex(*high, *low)?, end + 5),
        [b'x', high, low, ..] => coded(bytes, hex(*high, *low)?, end + 3),
        [b'0', b'3', b'3', ..] => coded(bytes, 0x1b, end + 3),
        [b'e', b'[', ..] => coded(bytes, 0x1b, end + 1),
        _ => None,
    }
}

/// A character written as a number that ends at `end`.
fn coded(bytes: &[u8], letter: u8, end: usize) -> Option<(Option<u8>, usize)> {
    match letter {
        0x1b => terminal_sequence(bytes, end).map(|end| (None, end)),
        b'\n' | 0x20..0x7f => Some((Some(letter), end)),
        _ => None,
    }
}

/// An HTML entity for a sign.
fn entity(bytes: &[u8], at: usize) -> Option<(Option<u8>, usize)> {
    const NAMED: [(&[u8], u8); 8] = [
        (b"quot;", b'"'),
        (b"apos;", b'\''),
        (b"amp;", b'&'),
        (b"lt;", b'<'),
        (b"gt;", b'>'),
        (b"equals;", b'='),
        (b"colon;", b':'),
        (b"nbsp;", b' '),
    ];
    let rest = &bytes[at + 1..];
    if let Some((word, sign)) = NAMED.iter().find(|(word, _)| rest.starts_with(word)) {
        return Some((Some(*sign), at + 1 + word.len()));
    }
    let number = rest.strip_prefix(b"#")?;
    let length = number.iter().take(6).position(|b| *b == b';')?;
    let text = std::str::from_utf8(&number[..length]).ok()?;
    let code = match text.strip_prefix(['x', 'X']) {
        Some(text) => u8::from_str_radix(text, 16).ok()?,
        None => text.parse().ok()?,
    };
    (0x20..0x7f).contains(&code).then_some((Some(code), at + 2 + length + 1))
}

fn percent(bytes: &[u8], at: usize) -> Option<(Option<u8>, usize)> {
    let code = hex(*bytes.get(at + 1)?, *bytes.get(at + 2)?)?;
    (0x20..0x7f).contains(&code).then_some((Some(code), at + 3))
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = Unescaped::around(text.as_bytes(), &[0]);
        assert_eq!(String::from_utf8(read.text.clone()).unwrap(), format!("{expected}\n"));
        for (at, _) in expected.char_indices() {
            let range = read.in_text(&(at..at + 1));
            assert!(range.start < range.end && range.end <= text.len(), "{at} of {expected}: {range:?}");
        }
    }

    #[test]
    fn escapes_entities_and_colors_are_decoded() {
        check("a\x1b[1;32m=\x1b[0mb", "a=b");
        check("a\\u001b[1m=\\u001b[0mb\\x1b[0m\\033[31m\\e[0m", "a=b");
        check("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\ on", "link on");
        check("a \\\n   b", "a b");
        check("a=\\\\\\n  b", "a=b");
        check("{\\u0022a\\u0022:1} \\\\u0027 \\x22", "{\"a\":1} ' \"");
        check("a=&quot;b&amp;c&#39;&#x3d;&quot;", "a=\"b&c'=\"");
        check("%7B%22a%22%3A1%7D %zz 100%", "{\"a\":1} %zz 100%");
        check("plain \\n \\\" & text", "plain \\n \\\" & text");
    }

    #[test]
    fn ranges_in_unescaped_text_map_back_to_the_original() {
        let text = "x=\\u0022a\\u0022b\\u0022";
        let read = Unescaped::around(text.as_bytes(), &[2]);
        assert_eq!(read.text, b"x=\"a\"b\"\n");
        assert_eq!(&text[read.in_text(&(3..6))], "a\\u0022b");
        assert_eq!(&text[read.in_text(&(2..4))], "\\u0022a");
    }
}
