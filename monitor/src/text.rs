//! Compares texts without the parts that change on each run.
//!
//! At most [`LOOKED_AT`] bytes of a text are examined.

use std::hash::{Hash, Hasher};

/// Maximum number of bytes of a text that are examined.
pub(crate) const LOOKED_AT: usize = 4 << 10;

/// FNV-1a: the same in every version of the program, because keys of findings are derived from it.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// A hash of the parts.
pub(crate) fn hash_of(parts: impl Hash) -> u64 {
    let mut hasher = Fnv::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// The head of a text.
pub(crate) fn head(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The end of a text.
pub(crate) fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Beginnings of lines that an agent's own tools write above the output of a command, up to a line `Output:`.
const ABOVE: &[&str] = &[
    "Chunk ID:",
    "Command:",
    "Directory:",
    "Exit code:",
    "Original token count:",
    "Process exited with code",
    "Process running with",
    "Script ",
    "Wall time",
];
/// Beginnings of lines that an agent's own tools write below an output. With the last one, our own agent informs its
/// model that it repeats a call; to the monitor the results with and without it are the same.
const BELOW: &[&str] = &["Background PIDs:", "Process Group PGID:", "[This call was made "];

/// The output of a command without the text added by the agent's own tool: ids of chunks and processes, which differ in
/// every answer.
pub(crate) fn output(text: &str) -> &str {
    let mut rest = text;
    let mut inside = text;
    for _ in 0..8 {
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Some(begins) = line.strip_prefix("Output:") {
            inside = if begins.trim().is_empty() { below } else { &rest["Output:".len()..] };
            break;
        }
        if !ABOVE.iter().any(|label| line.starts_with(label)) {
            break;
        }
        rest = below;
    }
    while let Some((above, last)) = inside.trim_end().rsplit_once('\n')
        && BELOW.iter().any(|label| last.starts_with(label))
    {
        inside = above;
    }
    if BELOW.iter().any(|label| inside.starts_with(label)) { "" } else { inside.trim() }
}

/// The text without the parts that change from one run to the next: durations, times of day, dates, addresses, hashes,
/// line numbers, and long numbers in brackets. Other numbers remain, because they may show progress.
pub(crate) fn settled(text: &str) -> String {
    let text = head(text, LOOKED_AT);
    let mut out = String::with_capacity(text.len());
    let mut before = "";
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        settle(word, before, &mut out);
        before = word;
    }
    out
}

fn settle(word: &str, before: &str, out: &mut String) {
    let bytes = word.as_bytes();
    // A separate unit belongs to the number before it.
    if is_number(before) && is_unit(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())) {
        while out.ends_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ' ')) {
            out.pop();
        }
        out.push('¤');
        return;
    }
    let numbered = before.eq_ignore_ascii_case("line") || before.eq_ignore_ascii_case("pid");
    let mut at = 0;
    while at < bytes.len() {
        let c = bytes[at];
        if !c.is_ascii_alphanumeric() {
            let length = word[at..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&word[at..at + length]);
            at += length;
            continue;
        }
        let end = bytes[at..].iter().position(|b| !b.is_ascii_alphanumeric()).map_or(bytes.len(), |n| at + n);
        let piece = &word[at..end];
        let number = piece.bytes().all(|b| b.is_ascii_digit());
        let joined = |b: Option<&u8>, signs: &[u8]| b.is_some_and(|b| signs.contains(b));
        let (left, right) = (at.checked_sub(1).and_then(|n| bytes.get(n)), bytes.get(end));
        let volatile = if number {
            // `12:34`, `2026-11-20`, `src/a.rs:12:3`, `0.53s`, `(82731)`
            numbered
                || joined(left, b":")
                || joined(right, b":") && bytes.get(end + 1).is_some_and(u8::is_ascii_digit)
                || joined(left, b"-") && piece.len() == 2
                || piece.len() == 4 && joined(right, b"-")
                || joined(right, b".") && is_span(word, end + 1)
                || piece.len() >= 4 && joined(left, b"(") && joined(right, b")")
        } else {
            is_span_piece(piece) || is_hex(piece) || is_moment_piece(piece)
        };
        if volatile {
            if !out.ends_with('¤') {
                out.push('¤');
            }
        } else {
            out.push_str(piece);
        }
        at = end;
    }
}

/// Whether a duration continues after its decimal point: `53s` of `0.53s`.
fn is_span(word: &str, at: usize) -> bool {
    let rest = word.get(at..).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    is_span_piece(&rest[..end])
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

fn is_span_piece(piece: &str) -> bool {
    let unit = piece.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < piece.len()
        && !unit.is_empty()
        && (is_unit(unit) || {
            // `1m12s`
            let mut parts = unit.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty());
            parts.all(is_unit)
        })
}

/// `20T04` and `189Z` of `2026-11-20T04:37:12.189Z`.
fn is_moment_piece(piece: &str) -> bool {
    let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.strip_prefix(['T', 't']).or_else(|| rest.strip_suffix(['Z', 'z']));
    rest.is_some_and(|rest| rest.len() < piece.len() - 1 && rest.bytes().all(|b| b.is_ascii_digit()))
}

fn is_unit(unit: &str) -> bool {
    matches!(
        unit,
        "ms" | "s"
            | "us"
            | "ns"
            | "m"
            | "h"
            | "min"
            | "mins"
            | "sec"
            | "secs"
            | "second"
            | "seconds"
            | "minute"
            | "minutes"
            | "hour"
            | "hours"
            | "milliseconds"
    )
}

fn is_hex(piece: &str) -> bool {
    let digits = piece.strip_prefix("0x").unwrap_or(piece);
    digits.len() >= 7
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && (digits.len() < piece.len()
            || digits.bytes().any(|b| b.is_ascii_digit()) && digits.bytes().any(|b| !b.is_ascii_digit()))
}

/// A hash of the text without numbers and without the words of the call that produced it: the common part of the
/// answers to one question about many things.
pub(crate) fn shape(text: &str, call: &str) -> u64 {
    let mut asked: Vec<&str> = words(head(call, LOOKED_AT)).collect();
    asked.sort_unstable();
    let mut hasher = Fnv::new();
    for word in words(head(text, LOOKED_AT)) {
        if asked.binary_search(&word).is_ok() {
            continue;
        }
        for piece in word.split(|c: char| c.is_ascii_digit()).filter(|piece| !piece.is_empty()) {
            piece.hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_line_numbers_and_ids_are_ignored_when_comparing_outputs() {
        for (one, other) in [
            ("test result: FAILED. 2 passed; finished in 0.01s", "test result: FAILED. 2 passed; finished in 12.53s"),
            ("1 failed in 3.2 seconds", "1 failed in 14 seconds"),
            ("at src/a.rs:12:3", "at src/a.rs:14:9"),
            ("File \"x.py\", line 12, in f", "File \"x.py\", line 13, in f"),
            ("[12:30:01] error", "[14:00:59] error"),
            ("2026-11-20T04:37:12.189Z error", "2026-11-21T05:07:00.001Z error"),
            ("object at 0x7f3a2b1c", "object at 0x7f3a99ff"),
            ("commit 1a2b3c4d5e", "commit 99ab3c4d5e"),
            ("thread 'a' (82731) panicked", "thread 'a' (9123) panicked"),
            ("took 1m12s", "took 3m4s"),
        ] {
            assert_eq!(settled(one), settled(other), "{one} | {other}");
        }
    }

    #[test]
    fn the_wrapper_text_of_a_tool_is_removed_from_its_output() {
        for (text, inside) in [
            (
                "Chunk ID: 44b600\nWall time: 0.3658 seconds\nProcess exited with code 0\nOriginal token count: 7\nOutput:\na\nb\n",
                "a\nb",
            ),
            ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nOutput: x", "Output: x"),
            ("Script completed\nWall time 6.3 seconds\nOutput:\n", ""),
            ("Output: hello\nExit Code: 1\nProcess Group PGID: 14401\n", "hello\nExit Code: 1"),
            ("Output: \nProcess Group PGID: 14401", ""),
            ("Output: a\nBackground PIDs: 3, 4\nProcess Group PGID: 1", "a"),
            ("a\nb\n\n[This call was made 3 times with the same result. Try something else.]", "a\nb"),
            // The program's own output is unchanged.
            ("Input: 3\nOutput:\n4", "Input: 3\nOutput:\n4"),
            ("Wall time: 3 s\nnothing", "Wall time: 3 s\nnothing"),
            ("", ""),
        ] {
            assert_eq!(output(text), inside, "{text}");
        }
    }

    #[test]
    fn changes_that_may_be_progress_are_kept_when_comparing_outputs() {
        for (one, other) in [
            ("3 failed, 40 passed", "2 failed, 41 passed"),
            ("step 3/10 done", "step 4/10 done"),
            ("error in a.rs", "error in b.rs"),
            ("status: queued", "status: in_progress"),
            ("42% complete", "43% complete"),
        ] {
            assert_ne!(settled(one), settled(other), "{one} | {other}");
        }
    }

    #[test]
    fn outputs_that_differ_only_in_the_argument_have_the_same_shape() {
        let one = shape("cat: a1.txt: No such file or directory", "cat a1.txt");
        assert_eq!(one, shape("cat: b/other.txt: No such file or directory", "cat b/other.txt"));
        assert_ne!(one, shape("hello", "cat a1.txt"));
    }

    #[test]
    fn only_the_beginning_of_a_long_text_is_normalized() {
        assert!(settled(&"é1 ".repeat(1 << 20)).len() <= LOOKED_AT);
    }
}
