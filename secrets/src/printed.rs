//! Secrets printed by commands: the line after `pass show …`, `openssl rand -hex 32`, `echo $API_TOKEN`.

use crate::{
    found::{SecretKind, Span},
    names,
    text::{is_escaped_break, until},
    value,
};

const LONGEST: usize = 400;

/// Commands that print only a secret.
const TELLING: &[&str] = &[
    "pass show ",
    "op read ",
    "openssl rand ",
    "pwgen ",
    "print-access-token",
    "print-identity-token",
    "gh auth token",
    "auth:token",
    "get-access-token",
    "get-session-token",
    "gopass show ",
];

/// Commands that print their operand: it is a secret if its name suggests one.
const ASKED: &[&str] =
    &["$ echo ", "$ cat ", "$ printenv ", "get secret", "vault kv get ", "vault read ", "> echo ", "get-parameter "];

/// Trigger words of this detector.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    TELLING.iter().chain(ASKED).copied()
}

/// The output of the command that contains the word from `start` to `end`, if it is one random word. `seen` is the end
/// of the last examined command, which is not examined again.
pub(crate) fn find(bytes: &[u8], start: usize, end: usize, seen: &mut usize) -> Option<Span> {
    let word = &bytes[start..end];
    let is_telling = TELLING.iter().any(|w| w.as_bytes().eq_ignore_ascii_case(word));
    if !is_telling && start < *seen {
        return None;
    }
    let line_end = break_at(bytes, end);
    if !is_telling {
        *seen = line_end;
    }
    let is_told = is_telling
        || bytes[start..line_end]
            .split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')))
            .any(|name| names::meaning(name).is_some_and(|m| m.weight > names::NameWeight::Little));
    if !is_told || line_end >= bytes.len() {
        return None;
    }
    let from = behind_break(bytes, line_end);
    let to = until(bytes, from, LONGEST, |b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'\\'));
    let value = &bytes[from..to];
    let is_alone = to == bytes.len()
        || bytes[until(bytes, to, 4, |b| b != b'\\')..].starts_with(b"\"")
        || break_at(bytes, to) == to;
    let is_secret = is_alone
        && value.len() >= 8
        && value.iter().any(u8::is_ascii_alphabetic)
        && !value.iter().any(|b| matches!(b, b'{' | b'(' | b'<' | b':' | b'[' | b'#'))
        && (value::looks_random(value)
            || value::is_mixed(value)
            || value.iter().any(u8::is_ascii_digit) && !value::is_words(value))
        && !value::is_number(value)
        && !value::is_placeholder(value)
        && !value::is_public(value)
        && !value::is_path(value);
    is_secret.then(|| Span { start: from, end: to, kind: SecretKind::from("printed-secret") })
}

/// The end of the line, even if its line break is written as an escape.
fn break_at(bytes: &[u8], at: usize) -> usize {
    let end = until(bytes, at, LONGEST, |b| b == b'\n' || b == b'\r');
    (at..end).find(|&i| bytes[i] == b'\\' && escapes_break(bytes, i)).unwrap_or(end)
}

fn escapes_break(bytes: &[u8], at: usize) -> bool {
    let last = until(bytes, at, 4, |b| b != b'\\');
    last > at && is_escaped_break(bytes, last - 1)
}

/// The position after a line break and after the prefix that a diff or a listing puts before the next line.
pub(crate) fn behind_break(bytes: &[u8], mut at: usize) -> usize {
    loop {
        let slashes = until(bytes, at, 4, |b| b != b'\\');
        let next = if slashes > at && is_escaped_break(bytes, slashes - 1) {
            slashes + 1
        } else {
            until(bytes, at, 64, |b| !b.is_ascii_whitespace())
        };
        if next == at {
            break;
        }
        at = next;
    }
    let digits = until(bytes, at, 6, |b| !b.is_ascii_digit());
    let arrow = "\u{2192}".as_bytes();
    if digits > at && bytes[digits..].starts_with(arrow) {
        at = digits + arrow.len();
    } else if matches!(bytes.get(at), Some(b'+' | b'-' | b'>' | b'|')) {
        at += 1;
    }
    until(bytes, at, 64, |b| b != b' ' && b != b'\t')
}
