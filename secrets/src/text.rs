//! Helpers for bytes, and the form of the redaction mark. Does not depend on kinds of secrets.

use std::ops::Range;

use crate::found::FoundSecret;

const MARK: &str = "[redacted:";

/// Appends the mark that replaces a secret.
pub(crate) fn push_mark(out: &mut String, kind: &str) {
    out.push_str(MARK);
    out.push_str(kind);
    out.push(']');
}

/// The bytes with each found secret replaced by a mark.
pub(crate) fn replaced(bytes: &[u8], found: &[FoundSecret]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for one in found {
        out.extend_from_slice(&bytes[at..one.range.start]);
        out.extend_from_slice(MARK.as_bytes());
        out.extend_from_slice(one.kind.as_bytes());
        out.push(b']');
        at = one.range.end;
    }
    out.extend_from_slice(&bytes[at..]);
    out
}

/// The length of the mark of a kind.
pub(crate) fn mark_len(kind: &str) -> usize {
    MARK.len() + kind.len() + 1
}

/// The positions of marks in the bytes, in order.
pub(crate) fn marks(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    for start in memchr::memmem::find_iter(bytes, MARK.as_bytes()) {
        let rest = &bytes[start + MARK.len()..];
        let name = rest.iter().take(64).take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
        if name > 0 && rest.get(name) == Some(&b']') {
            out.push(start..start + MARK.len() + name + 1);
        }
    }
    out
}

/// Extends a range so that it does not cut a character of UTF-8.
pub(crate) fn whole_characters(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let continues = |at: usize| bytes.get(at).is_some_and(|b| b & 0xc0 == 0x80);
    let (mut start, mut end) = (range.start, range.end);
    while start > 0 && range.start - start < 3 && continues(start) {
        start -= 1;
    }
    while continues(end) && end - range.end < 3 {
        end += 1;
    }
    start..end
}

/// The start of the line that contains `at`, at most `most` bytes before it.
pub(crate) fn line_start(bytes: &[u8], at: usize, most: usize) -> usize {
    let from = at.saturating_sub(most);
    memchr::memrchr(b'\n', &bytes[from..at]).map_or(from, |i| from + i + 1)
}

/// The end of the line that contains `at`, at most `most` bytes after it.
pub(crate) fn line_end(bytes: &[u8], at: usize, most: usize) -> usize {
    let to = bytes.len().min(at.saturating_add(most));
    memchr::memchr(b'\n', &bytes[at..to]).map_or(to, |i| at + i)
}

/// The first position from `at` on at which `stop` is true, at most `most` bytes after it.
pub(crate) fn until(bytes: &[u8], at: usize, most: usize, stop: impl Fn(u8) -> bool) -> usize {
    let to = bytes.len().min(at.saturating_add(most));
    bytes[at.min(to)..to].iter().position(|&b| stop(b)).map_or(to, |i| at + i)
}

/// The first position from `at` on that is not a blank or tab.
pub(crate) fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    until(bytes, at, 64, |b| b != b' ' && b != b'\t')
}

/// Whether the bytes at `at` begin with `word`, in any case.
pub(crate) fn goes_on(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    bytes.get(at..at + word.len()).is_some_and(|b| b.eq_ignore_ascii_case(word))
}

/// Whether an escaped line break or tab is at `at`: `\n`, `\r` or `\t` as two characters.
pub(crate) fn is_escaped_break(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'\\') && matches!(bytes.get(at + 1), Some(b'n' | b'r' | b't'))
}

/// The position after an escaped line break or a colour's escape sequence that begins at `at`.
pub(crate) fn behind_escape(bytes: &[u8], at: usize) -> usize {
    if is_escaped_break(bytes, at) {
        return at + 2;
    }
    let Some(rest) = [&b"\x1b["[..], b"\\u001b["].iter().find(|start| goes_on(bytes, at, start)).map(|s| at + s.len())
    else {
        return at;
    };
    let end = until(bytes, rest, 12, |b| !(b.is_ascii_digit() || b == b';'));
    if bytes.get(end) == Some(&b'm') { end + 1 } else { at }
}

/// Whether a word begins at `at`: no letter precedes it, except one that is part of an escape.
pub(crate) fn begins_word(bytes: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    if !bytes[before].is_ascii_alphanumeric() {
        return true;
    }
    (at.saturating_sub(18)..before).any(|start| behind_escape(bytes, start) == at)
}
