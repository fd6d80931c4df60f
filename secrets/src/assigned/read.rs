//! Finds the end of a value: between quotes, escaped or not, or bare.

use crate::{
    assigned::form::{LONGEST_VALUE, ValueForm, opens_quote},
    text::{goes_on, skip_blanks, until},
    value,
};

/// Reads the value at `at`: its start, its end and its notation.
pub(crate) fn read(bytes: &[u8], at: usize, form: ValueForm) -> Option<(usize, usize, ValueForm)> {
    let mut at = skip_blanks(bytes, at);
    // On the next line: after a colon, or as a block of YAML.
    let block = until(bytes, at, 4, |b| !matches!(b, b'|' | b'>' | b'-' | b'+'));
    if matches!(bytes.get(at), Some(b'|' | b'>')) && matches!(bytes.get(block), Some(b'\n' | b'\r'))
        || matches!(bytes.get(at), Some(b'\n' | b'\r'))
    {
        let next = until(bytes, block.max(at), 128, |b| !b.is_ascii_whitespace());
        let is_block = block > at;
        if !is_block && !matches!(bytes.get(next), Some(b'"' | b'\'')) {
            return None;
        }
        at = next;
    }
    at = behind_call(bytes, at);
    let slashes = until(bytes, at, 8, |b| b != b'\\') - at;
    match bytes.get(at + slashes) {
        Some(&quote @ (b'"' | b'\'' | b'`')) => {
            let from = at + slashes + 1;
            let to = closing(bytes, from, quote, slashes)?;
            Some((from, to, ValueForm::Quoted))
        }
        Some(_) => {
            let to = bare_end(bytes, at, form);
            (to > at).then_some((at, to, form))
        }
        None => None,
    }
}

/// The position after the opening of `b"…"`, `[]byte("…")`, `SecretStr("…")`.
fn behind_call(bytes: &[u8], at: usize) -> usize {
    for word in [
        &b"b"[..],
        b"N",
        b"r",
        b"u",
        b"f",
        b"@",
        b"$",
        b"[]byte(",
        b"SecretStr(",
        b"String::from(",
        b"Buffer.from(",
        b"new String(",
        b"pulumi.secret(",
        b"bytes(",
    ] {
        if goes_on(bytes, at, word)
            && (opens_quote(bytes, at + word.len()) || bytes.get(at + word.len()) == Some(&b'`'))
        {
            return at + word.len();
        }
    }
    at
}

/// The position of the closing quote for a quote that was opened after `slashes` backslashes.
pub(crate) fn closing(bytes: &[u8], from: usize, quote: u8, slashes: usize) -> Option<usize> {
    let to = bytes.len().min(from + LONGEST_VALUE);
    let mut run = 0;
    for (i, &byte) in bytes[from..to].iter().enumerate() {
        match byte {
            b'\\' => run += 1,
            b'\n' => return None,
            _ if byte == quote && (run == slashes || slashes == 0 && run % 2 == 0 || run < slashes) => {
                return Some(from + i - run.min(slashes));
            }
            _ => run = 0,
        }
    }
    None
}

/// The end of an unquoted value.
fn bare_end(bytes: &[u8], from: usize, form: ValueForm) -> usize {
    let most = bytes.len().min(from + LONGEST_VALUE);
    let mut to = from;
    while to < most {
        let byte = bytes[to];
        let next = bytes.get(to + 1).copied().unwrap_or(b'\n');
        let ends = match byte {
            b'"' | b'\'' | b'`' | b'<' | b'>' => true,
            b'\\' => matches!(next, b'n' | b'r' | b't' | b'"' | b'\'' | b'\\' | b'\n'),
            b'&' if to == from => form == ValueForm::Plain && setting_follows(bytes, to + 1),
            b'&' => next == b'&' || setting_follows(bytes, to + 1) || form == ValueForm::Bare && next == b' ',
            b'#' => form == ValueForm::Plain && setting_follows(bytes, to + 1),
            b';' | b'|' => next.is_ascii_whitespace() || setting_follows(bytes, to + 1),
            b',' => next.is_ascii_whitespace() || setting_follows(bytes, to + 1),
            // A closing bracket around the value, unless it was opened in the value.
            b')' | b']' | b'}' => {
                !next.is_ascii_alphanumeric() && !bytes[from..to].iter().any(|b| matches!(b, b'(' | b'[' | b'{'))
            }
            _ => byte.is_ascii_whitespace(),
        };
        if ends {
            break;
        }
        to += 1;
    }
    let has_open = bytes[from..to].iter().any(|b| matches!(b, b'(' | b'[' | b'{'));
    while to > from {
        match bytes[to - 1] {
            b'.' | b',' | b';' | b':' | b'\\' => to -= 1,
            b')' | b']' | b'}' if !has_open => to -= 1,
            _ => break,
        }
    }
    to
}

/// Whether a name and `=` or `:` come next.
fn setting_follows(bytes: &[u8], at: usize) -> bool {
    let at = skip_blanks(bytes, at);
    let at = until(bytes, at, 2, |b| !matches!(b, b'"' | b'\''));
    let end = until(bytes, at, 48, |b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ')));
    end > at && matches!(bytes.get(end), Some(b'=' | b':' | b'"'))
}

/// The bounds of the quoted value after a type: `str = "…"`.
pub(super) fn behind_type(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let equals = until(bytes, from, 60, |b| matches!(b, b'=' | b'\n' | b',' | b';' | b'"' | b')'));
    if bytes.get(equals) != Some(&b'=') || !value::is_code(&bytes[from..equals]) {
        return None;
    }
    match read(bytes, equals + 1, ValueForm::Bare)? {
        (from, to, ValueForm::Quoted) => Some((from, to)),
        (_, _, ValueForm::Plain | ValueForm::Bare) => None,
    }
}
