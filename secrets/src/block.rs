//! Private keys in blocks of lines: `-----BEGIN … PRIVATE KEY-----`, also cut off at either end, prefixed as in a diff
//! or a listing, or on one line with escaped line breaks.

use crate::{
    found::{SecretKind, Span},
    text::until,
};

/// Longest private key block, bytes.
const LONGEST: usize = 64 * 1024;

fn span(start: usize, end: usize) -> Span {
    Span { start, end, kind: SecretKind::from("private-key") }
}

/// The block whose `-----BEGIN ` or `-----END ` ends at `at`, if it is a private key.
pub(crate) fn find(bytes: &[u8], start: usize, at: usize) -> Option<Span> {
    let label_end = until(bytes, at, 80, |b| !(b.is_ascii_alphanumeric() || b == b' '));
    let label = &bytes[at..label_end];
    if !is_private(label) || !bytes[label_end..].starts_with(b"----") {
        return None;
    }
    let label_end = until(bytes, label_end, 8, |b| b != b'-');
    if bytes[start..].starts_with(b"-----BEGIN") || bytes[start..].starts_with(b"---- BEGIN") {
        let end = body_end(bytes, label_end);
        // The words alone, as in code that searches for them.
        return (end > label_end).then(|| span(start, end));
    }
    let begin = body_start(bytes, start);
    (begin < start).then(|| span(begin, label_end))
}

/// Whether the label of a block indicates a private key.
fn is_private(label: &[u8]) -> bool {
    [&b"PRIVATE KEY"[..], b"OpenVPN Static key"].iter().any(|words| memchr::memmem::find(label, words).is_some())
}

/// The end of the body that begins at `from`: after `-----END …-----`, or after the last line that looks like a body.
fn body_end(bytes: &[u8], from: usize) -> usize {
    let near = &bytes[from..bytes.len().min(from + LONGEST)];
    let cut = near.len();
    let next_begin = memchr::memmem::find(near, b"-----BEGIN").unwrap_or(cut);
    if let Some(end) = memchr::memmem::find(&near[..next_begin], b"-----END") {
        let body = &near[..end];
        let letters = body.iter().filter(|b| b.is_ascii_alphanumeric()).count();
        // If the body was omitted (`…`), nothing is secret.
        if letters < 24 {
            return from;
        }
        let drawn = body.split(|b| !is_base64(*b)).map(<[u8]>::len).max().unwrap_or(0) >= 16;
        if drawn && looks_like_body(body) {
            let label = until(near, end + 8, 80, |b| !(b.is_ascii_alphanumeric() || b == b' '));
            return from + until(near, label, 8, |b| b != b'-');
        }
    }
    let mut end = from;
    let mut at = from;
    while at < from + next_begin {
        let (line, next) = line_at(bytes, at, from + next_begin);
        let text = undecorated(&bytes[line.clone()]);
        let is_key = text.len() >= 16 && text.iter().all(|b| is_base64(*b))
            || text.len() >= 4 && text.ends_with(b"=") && text.iter().all(|b| is_base64(*b));
        let is_head = text.iter().take_while(|b| b.is_ascii_alphabetic() || **b == b'-').count() > 3
            && memchr::memmem::find(text, b": ").is_some()
            && text.len() < 80;
        let is_last = !text.is_empty() && text.len() < 64 && text.iter().all(|b| is_base64(*b)) && end > from;
        if is_key || is_last {
            end = line.end;
        } else if !(text.is_empty() || is_head && end == from) {
            break;
        }
        if next <= at {
            break;
        }
        at = next;
    }
    end
}

/// Whether most bytes are base64 or belong to the edges of lines.
fn looks_like_body(body: &[u8]) -> bool {
    let strange = body
        .iter()
        .filter(|b| {
            !(is_base64(**b)
                || b.is_ascii_whitespace()
                || matches!(
                    b,
                    b'\\'
                        | b'-'
                        | b':'
                        | b','
                        | b'"'
                        | b'\''
                        | b'|'
                        | b'>'
                        | b'#'
                        | b'.'
                        | b'('
                        | b')'
                        | b';'
                        | b'@'
                        | b'<'
                        | b'*'
                ))
        })
        .count();
    strange * 20 < body.len()
}

/// The start of the body that ends at `to`, for a block whose beginning was cut off.
fn body_start(bytes: &[u8], to: usize) -> usize {
    let least = to.saturating_sub(LONGEST);
    let mut start = to;
    let mut line_end = to;
    loop {
        let plain =
            memchr::memrchr(b'\n', &bytes[least..line_end]).map_or((least, least), |i| (least + i, least + i + 1));
        let escaped = memchr::memmem::rfind(&bytes[plain.1..line_end], b"\\n").map(|i| (plain.1 + i, plain.1 + i + 2));
        let (before, line_start) = escaped.unwrap_or(plain);
        let text = undecorated(&bytes[line_start..line_end]);
        if memchr::memmem::find(text, b"-----").is_some() {
            return to;
        }
        let is_body = !text.is_empty() && text.iter().all(|b| is_base64(*b)) && (text.len() >= 40 || start == to);
        if is_body {
            start = line_start;
        } else if line_end != to || !text.is_empty() {
            break;
        }
        if line_start <= least {
            break;
        }
        line_end = before;
    }
    start
}

/// The base64 text over several lines that begins with the first bytes of an OpenSSH or PKCS key at `at`.
pub(crate) fn headless(bytes: &[u8], at: usize) -> Option<Span> {
    if at > 0 && is_base64(bytes[at - 1]) && !(at > 1 && bytes[at - 2] == b'\\') {
        return None;
    }
    let end = body_end(bytes, at);
    (end > at + 100).then(|| span(at, end))
}

fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

/// The line at `at`, and the start of the next line. A line break may be escaped.
fn line_at(bytes: &[u8], at: usize, to: usize) -> (std::ops::Range<usize>, usize) {
    let plain = memchr::memchr(b'\n', &bytes[at..to]).map(|i| (at + i, at + i + 1));
    let end = plain.map_or(to, |(end, _)| end);
    let escaped = memchr::memmem::find(&bytes[at..end], b"\\n").map(|i| (at + i, at + i + 2));
    let (end, next) = escaped.or(plain).unwrap_or((to, to));
    (at..end, next)
}

/// A line without the decoration of a listing, a diff, a comment or a string.
fn undecorated(line: &[u8]) -> &[u8] {
    let mut text = line.trim_ascii();
    // A number and a separator, as from `cat -n` or `grep -n`.
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits > 0 && digits < 7 {
        let rest = &text[digits..];
        if let Some(rest) = [&b"\t"[..], b":", b"|", b" ", "\u{2192}".as_bytes(), "\u{2502}".as_bytes()]
            .iter()
            .find_map(|sign| rest.strip_prefix(*sign))
        {
            text = rest.trim_ascii();
        }
    }
    let edge = |b: &u8| {
        matches!(b, b'>' | b'#' | b'|' | b'"' | b'\'' | b'`' | b',' | b';' | b'*' | b'\\' | b'-' | b'(' | b')')
            || b.is_ascii_whitespace()
    };
    let start = text.iter().take_while(|b| edge(b)).count();
    // The `+` of a diff is a base64 digit too.
    let start = if start == 0 && text.first() == Some(&b'+') { 1 } else { start };
    let end = text.len() - text.iter().rev().take_while(|b| edge(b)).count();
    text.get(start..end).unwrap_or_default().strip_suffix(b"\\n").unwrap_or(text.get(start..end).unwrap_or_default())
}
