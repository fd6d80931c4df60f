//! Secrets in base64: an environment, a key block, or a file of credentials that was encoded as a whole. Such a run of
//! letters is decoded; if the result contains a secret, the whole run is one. The values of a Kubernetes Secret, which
//! are short, are recognized by their position.

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::{
    assigned::{self, ValueForm},
    found::{SecretKind, Span},
    names::{NameMeaning, NameWeight},
    text::{is_escaped_break, until},
    value,
};

/// Shortest base64 run that can contain a name and a value, bytes.
const LEAST: usize = 31;
/// Step in which a text is searched for base64 runs, bytes; a run contains at least one whole block.
const BLOCK: usize = 16;
/// Longest base64 run that is decoded, bytes.
const MOST: usize = 1 << 20;
/// Bytes of a run that are decoded to decide whether it is text.
const PROBE: usize = 16;
/// Minimum length of the lines of a wrapped run, except the last, bytes.
const LINE: usize = 48;
/// How far around `kind: Secret` its values are searched for, bytes.
const MANIFEST: usize = 16 * 1024;

const DECODER: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Which bytes are digits of base64, in either alphabet.
const DIGITS: [bool; 256] = {
    let mut digits = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        digits[byte] = b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    digits
};

fn is_digit(b: u8) -> bool {
    DIGITS[usize::from(b)]
}

/// The end of the run of digits that contains `at`.
fn run_end(bytes: &[u8], at: usize) -> usize {
    /// Longer runs are skipped in steps.
    const SHORT: usize = 64;
    let mut end = at + bytes[at..].iter().take(SHORT).take_while(|b| is_digit(**b)).count();
    if end == at + SHORT {
        let steps = bytes[end..].as_chunks::<16>().0;
        end += 16 * steps.iter().take_while(|step| step.iter().fold(true, |all, b| all & is_digit(*b))).count();
        end += bytes[end..].iter().take_while(|b| is_digit(**b)).count();
    }
    end
}

/// The decoded bytes of base64 text, in either alphabet, with or without padding.
pub(crate) fn decoded(digits: &[u8]) -> Option<Vec<u8>> {
    let plain: Vec<u8> = digits
        .iter()
        .map(|b| match b {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .filter(|b| *b != b'=')
        .collect();
    // A single digit at the end encodes nothing: the run was cut there.
    let whole = if plain.len() % 4 == 1 { &plain[..plain.len() - 1] } else { &plain[..] };
    DECODER.decode(whole).ok()
}

/// Whether bytes are text that people or programs write.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.iter().all(|b| *b >= 0x20 && *b != 0x7f || matches!(b, b'\n' | b'\r' | b'\t'))
        // Text whose last character was cut is still text.
        && std::str::from_utf8(bytes).err().is_none_or(|error| error.error_len().is_none())
}

/// Every run for which `holds_secret` finds a secret.
pub(crate) fn find(bytes: &[u8], mut holds_secret: impl FnMut(&[u8]) -> bool, out: &mut Vec<Span>) {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let mut index = 0;
    let mut seen = 0;
    while let Some(next) = blocks[index..].iter().position(are_digits) {
        let at = (index + next) * BLOCK;
        index += next + 1;
        let back = bytes[seen.min(at)..at].iter().rev().take(2 * LEAST).take_while(|b| is_digit(**b)).count();
        let mut start = at - back;
        let end = run_end(bytes, at);
        if start > 0 && is_escaped_break(bytes, start - 1) {
            start += 1;
        }
        start += bytes[start..end].iter().take_while(|b| matches!(b, b'-' | b'_')).count();
        seen = end;
        if end >= start + LEAST && end - start <= MOST && is_text_run(&bytes[start..end]) {
            let end = whole_run(bytes, start, end);
            if decoded(&digits_of(&bytes[start..end])).is_some_and(|text| is_text(&text) && holds_secret(&text)) {
                out.push(Span { start, end, kind: SecretKind::from("base64") });
            }
            seen = end;
        }
        index = index.max(seen / BLOCK).min(blocks.len());
    }
}

/// Whether a block contains only digits. Without branches, so that the whole block is checked in one step.
fn are_digits(block: &[u8; BLOCK]) -> bool {
    let mut others = 0;
    for &b in block {
        let is_letter = (b | 0x20).wrapping_sub(b'a') < 26;
        let is_number = b.wrapping_sub(b'0') < 10;
        let is_sign = (b == b'+') | (b == b'/') | (b == b'-') | (b == b'_');
        others |= u8::from(!(is_letter | is_number | is_sign));
    }
    others == 0
}

/// The digits of a run without its line breaks.
fn digits_of(run: &[u8]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(run.len());
    let mut at = 0;
    while at < run.len() {
        if is_escaped_break(run, at) {
            at += 2;
        } else {
            digits.extend(Some(run[at]).filter(|b| is_digit(*b)));
            at += 1;
        }
    }
    digits
}

/// Whether a run begins like encoded text.
fn is_text_run(run: &[u8]) -> bool {
    // The first digit of each group of four shows whether an ASCII letter begins there: this must hold for at least
    // three of four groups.
    let ascii = run[..PROBE].iter().step_by(4).filter(|b| matches!(b, b'A'..=b'Z' | b'a'..=b'f')).count();
    ascii >= PROBE / 4 - 1 && decoded(&run[..PROBE]).is_some_and(|text| is_text(&text))
}

/// The end of a run that continues over several lines.
fn whole_run(bytes: &[u8], start: usize, end: usize) -> usize {
    let mut end = until(bytes, end, 2, |b| b != b'=');
    let mut line = end - start;
    while line >= LINE && end - start < MOST {
        let behind =
            if is_escaped_break(bytes, end) { end + 2 } else { until(bytes, end, 2, |b| !matches!(b, b'\r' | b'\n')) };
        let next = until(bytes, behind, 64, |b| b != b' ' && b != b'\t');
        let to = until(bytes, next, 512, |b| !is_digit(b));
        let is_closed = matches!(bytes.get(to), None | Some(b'=' | b'\n' | b'\r' | b'\\' | b'"' | b'\'' | b' '));
        if behind == end || to < next + 4 || to - next > line || !is_closed {
            break;
        }
        line = to - next;
        end = until(bytes, to, 2, |b| b != b'=');
    }
    end
}

/// The values of a Kubernetes Secret around the words `kind: Secret` from `start` to `end`, in YAML or JSON. Returns
/// the position up to which it read.
pub(crate) fn manifest(bytes: &[u8], start: usize, end: usize, out: &mut Vec<Span>) -> usize {
    let least = start.saturating_sub(MANIFEST);
    let from = memchr::memmem::rfind(&bytes[least..start], b"\n---").map_or(least, |i| least + i);
    let most = bytes.len().min(end + MANIFEST);
    let to = memchr::memmem::find(&bytes[end..most], b"\n---").map_or(most, |i| end + i);
    let mut read = end;
    for word in [&b"data"[..], b"stringData"] {
        let mut at = from;
        while let Some(found) = memchr::memmem::find(&bytes[at..to], word) {
            let name = at + found;
            at = name + word.len();
            let is_whole = name == 0 || !bytes[name - 1].is_ascii_alphanumeric();
            if is_whole {
                let is_encoded = word == b"data";
                at = values(&bytes[..to], at, is_encoded, out).max(at);
            }
        }
        read = read.max(at);
    }
    read
}

/// Adds the values of the mapping whose name ends at `at`; returns the end of the mapping.
fn values(bytes: &[u8], at: usize, is_encoded: bool, out: &mut Vec<Span>) -> usize {
    let gap = |b: u8| !(b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'\\' | b',' | b'{'));
    let colon = until(bytes, at, 8, |b| !matches!(b, b'"' | b'\\' | b' '));
    if bytes.get(colon) != Some(&b':') {
        return at;
    }
    let mut at = colon + 1;
    loop {
        let name = behind_breaks(bytes, at, gap);
        let name_end = until(bytes, name, 253, |b| !(b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')));
        let colon = until(bytes, name_end, 8, |b| !matches!(b, b'"' | b'\\' | b' '));
        if name_end == name || bytes.get(colon) != Some(&b':') {
            return at;
        }
        let from = until(bytes, colon + 1, 8, |b| !matches!(b, b'"' | b'\'' | b'\\' | b' '));
        let to = until(bytes, from, MANIFEST, |b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'\\' | b','));
        // Another mapping begins: the values end here.
        if from == to {
            return at;
        }
        let value = &bytes[from..to];
        if is_encoded && is_secret_value(value) || !is_encoded && tells(value) {
            out.push(Span { start: from, end: to, kind: SecretKind::from("kubernetes-secret") });
        }
        at = to;
    }
}

fn behind_breaks(bytes: &[u8], mut at: usize, gap: impl Fn(u8) -> bool) -> usize {
    loop {
        let next = until(bytes, at, 128, &gap);
        let next = if next > at && is_escaped_break(bytes, next - 1) { next + 1 } else { next };
        if next == at {
            return at;
        }
        at = next;
    }
}

/// Whether a value of a Secret is secret: a word or an address is not.
fn is_secret_value(value: &[u8]) -> bool {
    let is_whole = value.len() >= 4 && value.iter().all(|b| is_digit(*b) || *b == b'=');
    is_whole && decoded(value).is_some_and(|text| if is_text(&text) { tells(&text) } else { text.len() >= 12 })
}

fn tells(value: &[u8]) -> bool {
    /// Shorter words of only letters are names of users or hosts; longer ones may be phrases.
    const LONGEST_WORD: usize = 16;
    let meaning = NameMeaning { weight: NameWeight::All, kind: "kubernetes-secret" };
    let value = value.trim_ascii_end();
    let is_word = value::is_words(value) && !value.iter().any(u8::is_ascii_digit) && value.len() < LONGEST_WORD;
    value.len() >= 6
        && !is_word
        && !value::is_sentence(value)
        && !value::is_number(value)
        && assigned::is_secret(meaning, value, ValueForm::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(text: &str) -> Vec<String> {
        let mut spans = Vec::new();
        find(text.as_bytes(), |text| memchr::memmem::find(text, b"PASSWORD=").is_some(), &mut spans);
        spans.into_iter().map(|span| text[span.start..span.end].to_owned()).collect()
    }

    #[test]
    fn base64_is_found_after_any_prefix_and_across_line_breaks() {
        let run = DECODER.encode("APP_ENV=production\nDB_PASSWORD=tiger\nHOST=db.internal\n".repeat(3));
        for before in ["", "x: ", "\"", "echo ", "\\n", "-----------------------------"] {
            let found = runs(&format!("{before}{run}\nand on"));
            assert_eq!(found, std::slice::from_ref(&run), "{before}");
        }
        let lines: Vec<&str> = run.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        for between in ["\n", "\r\n", "\\n", "\n    "] {
            let wrapped = lines.join(between);
            assert_eq!(runs(&format!("a: {wrapped}\nb: 1")), [wrapped], "{between:?}");
        }
        assert!(runs("/usr/lib/x86_64-linux-gnu/libpthread.so /home/somebody/projects/reader/target").is_empty());
    }
}
