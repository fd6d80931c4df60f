//! Request headers in which credentials follow a scheme: `Authorization`, `Cookie`, `Set-Cookie`, and `Bearer …`
//! anywhere. Web tokens (JWT), which have their own form, are found here too.

use crate::{
    encoded,
    found::{SecretKind, Span},
    text::{begins_word, goes_on, skip_blanks, until},
    value,
};

const LONGEST: usize = 8192;

fn in_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b'+' | b'/' | b'=')
}

fn span(start: usize, end: usize, kind: &str) -> Span {
    Span { start, end, kind: SecretKind::from(kind) }
}

/// The end of a token at `at`: it does not swallow an escaped line break, and drops a dot that ends a sentence.
fn token_end(bytes: &[u8], at: usize) -> usize {
    let mut end = until(bytes, at, LONGEST, |b| !in_token(b));
    while end > at && matches!(bytes[end - 1], b'.') {
        end -= 1;
    }
    end
}

/// The token after `Bearer`, `Token` or `Basic`; `at` is the end of that word.
pub(crate) fn scheme(bytes: &[u8], word: usize, at: usize) -> Option<Span> {
    let start = skip_blanks(bytes, at);
    if start == at || !begins_word(bytes, word) {
        return None;
    }
    let end = token_end(bytes, start);
    let token = &bytes[start..end];
    let is_basic = goes_on(bytes, word, b"basic");
    let is_secret = if is_basic {
        token.len() >= 12
            && (token.ends_with(b"=") || value::looks_random(token))
            && value::entropy(token) > 2.8
            && decodes_to_pair(token)
    } else {
        token.len() >= 12
            && !value::is_words(token)
            && token.iter().any(u8::is_ascii_digit)
            && value::entropy(token) > 2.8
    };
    (is_secret && !value::is_placeholder(token) && !value::is_path(token))
        .then(|| span(start, end, if is_basic { "basic-auth" } else { "bearer-token" }))
}

/// Whether base64 encodes a text with a colon, the form of user and password.
fn decodes_to_pair(token: &[u8]) -> bool {
    encoded::decoded(token).is_some_and(|text| text.contains(&b':') && text.iter().all(|b| *b >= 0x20))
}

/// The credentials of an `Authorization` header whose name ends at `at`.
pub(crate) fn authorization(bytes: &[u8], name: usize, at: usize, out: &mut Vec<Span>) {
    if !begins_word(bytes, name) {
        return;
    }
    let start = behind_name(bytes, at);
    let Some(start) = start else { return };
    let line = until(bytes, start, LONGEST, |b| matches!(b, b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\'));
    let whole = until(bytes, start, 768, |b| b == b'\n');
    let small = bytes[start..whole].to_ascii_lowercase();
    for word in [&b"signature="[..], b"response="] {
        if let Some(i) = memchr::memmem::find(&small, word) {
            let from = until(bytes, start + i + word.len(), 8, |b| !matches!(b, b'"' | b'\\'));
            let to = token_end(bytes, from);
            if to - from >= 16 {
                out.push(span(from, to, "signature"));
            }
        }
    }
    // Without a scheme, or with an unknown one: the last word is the credential.
    let first =
        until(bytes, start, LONGEST, |b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'\\' | b','));
    let value = if first < line && bytes[first] == b' ' {
        let from = first + 1;
        from..token_end(bytes, from)
    } else {
        start..first
    };
    let token = &bytes[value.clone()];
    let is_secret = token.len() >= 8
        && !value::is_words(token)
        && !value::is_placeholder(token)
        && !value::is_code(token)
        && token.iter().any(u8::is_ascii_digit);
    if is_secret && !token.starts_with(b"Credential=") {
        out.push(span(value.start, value.end, "authorization"));
    }
}

/// The start of a header's value, after its name, a quote, a colon or an equals sign, and an opening quote.
fn behind_name(bytes: &[u8], at: usize) -> Option<usize> {
    let at = until(bytes, at, 8, |b| !matches!(b, b'"' | b'\'' | b'`' | b'\\' | b']'));
    let at = skip_blanks(bytes, at);
    let at = match bytes.get(at)? {
        b':' | b'=' => at + 1,
        b',' => at + 1,
        _ => return None,
    };
    let at = skip_blanks(bytes, at);
    Some(until(bytes, at, 8, |b| !matches!(b, b'"' | b'\'' | b'`' | b'\\')))
}

/// Cookies that do not identify the sender.
const HARMLESS: &[&[u8]] = &[
    b"path",
    b"domain",
    b"expires",
    b"max-age",
    b"samesite",
    b"secure",
    b"httponly",
    b"partitioned",
    b"priority",
    b"lang",
    b"locale",
    b"theme",
    b"_ga",
    b"_gid",
    b"timezone",
    b"tz",
    b"consent",
    b"version",
];

/// The values of the cookies in a header whose name ends at `at`. Returns the end of the header.
pub(crate) fn cookies(bytes: &[u8], at: usize, out: &mut Vec<Span>) -> usize {
    behind_name(bytes, at).map_or(at, |start| pairs(bytes, start, out))
}

/// The values of `name=value; name=value` from `start` to the end of the line or quote.
pub(crate) fn pairs(bytes: &[u8], start: usize, out: &mut Vec<Span>) -> usize {
    let line = until(bytes, start, LONGEST, |b| matches!(b, b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\'));
    let mut at = start;
    while at < line {
        let pair_end = until(&bytes[..line], at, LONGEST, |b| b == b';');
        let name_start = skip_blanks(&bytes[..pair_end], at);
        if let Some(equals) = memchr::memchr(b'=', &bytes[name_start..pair_end]) {
            let name = &bytes[name_start..name_start + equals];
            let from = name_start + equals + 1;
            let value = &bytes[from..pair_end];
            let is_harmless = HARMLESS.iter().any(|h| h.eq_ignore_ascii_case(name)) || name.starts_with(b"_ga");
            let is_drawn = value.len() >= 8
                && value.iter().any(u8::is_ascii_digit)
                && !value::is_number(value)
                && !value::is_words(value)
                || value.len() >= 16 && value::looks_random(value);
            if !is_harmless
                && is_drawn
                && !value.contains(&b' ')
                && !value::is_placeholder(value)
                && name.len() < 64
                && !name.contains(&b' ')
            {
                out.push(span(from, pair_end, "cookie"));
            }
        }
        at = pair_end + 1;
    }
    line
}

/// A web token that begins with `eyJ` at `at`.
pub(crate) fn web_token(bytes: &[u8], at: usize) -> Option<Span> {
    let part = |b: u8| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'='));
    if !begins_word(bytes, at) {
        return None;
    }
    let head = until(bytes, at, LONGEST, part);
    if head - at < 12 || bytes.get(head) != Some(&b'.') {
        return None;
    }
    let mut end = until(bytes, head + 1, LONGEST, part);
    // The key of an encrypted token may be empty.
    if end - head < 9 && !(end == head + 1 && bytes.get(end) == Some(&b'.')) {
        return None;
    }
    // Two more parts and an empty one make an encrypted token.
    for _ in 0..3 {
        if bytes.get(end) != Some(&b'.') {
            break;
        }
        let next = until(bytes, end + 1, LONGEST, part);
        if next == end + 1 && bytes.get(next) != Some(&b'.') {
            break;
        }
        end = next;
    }
    (end > head + 9).then(|| span(at, end, "jwt"))
}
