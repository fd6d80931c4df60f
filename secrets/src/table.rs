//! Values in columns whose name suggests a secret, in tables with a header: CSV, Markdown, output of databases.

use crate::{
    assigned::{self, ValueForm},
    found::{SecretKind, Span},
    names::{self, NameMeaning, NameWeight},
    text::{is_escaped_break, until},
};

/// Longest line of a table, bytes.
const LONGEST: usize = 4096;
/// Maximum number of rows read from a table.
const MOST_ROWS: usize = 4096;
/// Longest header line of a table, bytes.
const LONGEST_HEAD: usize = 1024;
/// Maximum number of columns of a table.
const MOST_COLUMNS: usize = 256;
/// Longest name of a column, bytes.
const LONGEST_NAME: usize = 48;

/// The values in a secret column: the name from `start` to `end` is one of several in a header, and the rows are below
/// it. Returns the position up to which it read.
pub(crate) fn find(bytes: &[u8], start: usize, end: usize, out: &mut Vec<Span>) -> usize {
    let Some(sign) = separator(bytes, start, end).filter(|sign| has_neighbour(bytes, start, end, *sign)) else {
        return 0;
    };
    let head = line_start(bytes, start);
    let head_end = line_end(bytes, end, LONGEST_HEAD);
    if head_end - head > LONGEST_HEAD {
        return 0;
    }
    // In a string literal, the first name follows the opening quote.
    let opens = memchr::memrchr(b'"', &bytes[head..start]).map_or(head, |i| head + i + 1);
    let columns = columns(bytes, head, head_end, sign).or_else(|| columns(bytes, opens, head_end, sign));
    let Some(columns) = columns else { return 0 };
    let mut at = head_end;
    for row in 0..MOST_ROWS {
        let from = behind_break(bytes, at);
        let to = line_end(bytes, from, LONGEST);
        if from == at || to - from > LONGEST {
            break;
        }
        at = to;
        // The line below the column names: `|---|---|`, `-----+-----`.
        if row == 0 && is_rule(&bytes[from..to]) {
            continue;
        }
        let fields = fields(bytes, from, to, sign);
        if fields.len() != columns.len() {
            break;
        }
        for (field, meaning) in fields.iter().zip(&columns) {
            let Some(meaning) = meaning else { continue };
            let value = &bytes[field.from..field.to];
            // Between blanks it may also be a word of prose or code.
            let form = if field.is_quoted || field.is_tight { ValueForm::Plain } else { ValueForm::Bare };
            if assigned::is_secret(*meaning, value, form) {
                out.push(Span { start: field.from, end: field.to, kind: SecretKind::from(meaning.kind) });
            }
        }
    }
    at
}

/// The separator between this name and the next one: `,`, `;`, a tab, `|`.
fn separator(bytes: &[u8], start: usize, end: usize) -> Option<u8> {
    let is_sign = |b: u8| matches!(b, b',' | b';' | b'\t' | b'|');
    let edge = |b: u8| matches!(b, b' ' | b'"' | b'\'' | b'*' | b'`' | b'\\');
    let behind = until(bytes, end, 64, |b| !edge(b));
    let before = start - bytes[..start].iter().rev().take(64).take_while(|b| edge(**b)).count();
    let next = bytes.get(behind).copied().filter(|b| is_sign(*b));
    let last = before.checked_sub(1).map(|at| bytes[at]).filter(|b| is_sign(*b));
    match (last, next) {
        (Some(last), Some(next)) => (last == next).then_some(last),
        // The last name, or the first one.
        (Some(last), None) => (ends_line(bytes, behind) || is_escaped_break(bytes, end)).then_some(last),
        (None, Some(next)) => begins_line(bytes, before).then_some(next),
        (None, None) => None,
    }
}

/// Whether there is another name on the other side of the separator; most lines that are not headers fail this check.
fn has_neighbour(bytes: &[u8], start: usize, end: usize, sign: u8) -> bool {
    let edge = |b: u8| matches!(b, b' ' | b'"' | b'\'' | b'*' | b'`' | b'\\');
    let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'#' | b'/');
    let behind = until(bytes, end, 64, |b| !edge(b));
    if bytes.get(behind) == Some(&sign) {
        let name = until(bytes, behind + 1, 64, |b| !edge(b));
        let name_end = until(bytes, name, LONGEST_NAME + 1, |b| !(in_name(b) || b == b' '));
        let next = until(bytes, name_end, 8, |b| !edge(b));
        let is_last = ends_line(bytes, next) || is_escaped_break(bytes, name_end) || ends_line(bytes, name);
        return is_last || bytes.get(next) == Some(&sign);
    }
    let before =
        |at: usize, of: &dyn Fn(u8) -> bool| at - bytes[..at].iter().rev().take(64).take_while(|b| of(**b)).count();
    let last = before(start, &edge);
    let name = before(before(last.saturating_sub(1), &edge), &in_name);
    name < last.saturating_sub(1)
}

fn begins_line(bytes: &[u8], at: usize) -> bool {
    at == 0 || bytes[at - 1] == b'\n' || bytes[at - 1] >= 0x80 || at > 1 && is_escaped_break(bytes, at - 2)
}

fn ends_line(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at), None | Some(b'\n' | b'\r'))
}

/// The start of the line that contains `at`. A line break may be escaped.
fn line_start(bytes: &[u8], at: usize) -> usize {
    let least = at.saturating_sub(LONGEST_HEAD + 1);
    let plain = memchr::memrchr(b'\n', &bytes[least..at]).map_or(least, |i| least + i + 1);
    memchr::memmem::rfind(&bytes[plain..at], b"\\n").map_or(plain, |i| plain + i + 2)
}

/// The end of the line that contains `at`. A line break may be escaped.
fn line_end(bytes: &[u8], at: usize, most: usize) -> usize {
    let plain = until(bytes, at, most + 1, |b| b == b'\n' || b == b'\r');
    let escaped = memchr::memmem::find(&bytes[at..plain], b"\\n").map(|i| at + i);
    let end = escaped.unwrap_or(plain);
    if bytes[at..end].ends_with(b"\\r") { end - 2 } else { end }
}

/// The position after one line break.
fn behind_break(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    [&b"\r\n"[..], b"\n", b"\\r\\n", b"\\n"]
        .iter()
        .find(|sign| rest.starts_with(sign))
        .map_or(at, |sign| at + sign.len())
}

fn is_rule(line: &[u8]) -> bool {
    line.contains(&b'-') && line.iter().all(|b| matches!(b, b'-' | b'+' | b'|' | b':' | b' ' | b'='))
}

/// The meaning of each column, if every field of the line is a name and at least one has a meaning.
fn columns(bytes: &[u8], from: usize, to: usize, sign: u8) -> Option<Vec<Option<NameMeaning>>> {
    // In most lines the first field already shows that it is not a name.
    let first = until(&bytes[..to], from, LONGEST_NAME * 2, |b| b == sign || matches!(b, b'{' | b'(' | b':' | b'='));
    if bytes[..to].get(first) != Some(&sign) {
        return None;
    }
    let fields = fields(bytes, from, to, sign);
    let is_name = |name: &[u8]| {
        !name.is_empty()
            && name.len() <= LONGEST_NAME
            && name.iter().any(u8::is_ascii_alphabetic)
            && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ' | b'/' | b'#'))
    };
    // A Markdown table has a separator at both ends.
    let has_edges = sign == b'|' && fields.len() > 2 && fields[0].is_empty() && fields[fields.len() - 1].is_empty();
    let names = if has_edges { &fields[1..fields.len() - 1] } else { &fields[..] };
    if names.len() < 2 || fields.len() > MOST_COLUMNS || !names.iter().all(|name| is_name(&bytes[name.from..name.to])) {
        return None;
    }
    let meaning = |field: &TableField| {
        let name: Vec<u8> = bytes[field.from..field.to].iter().map(|b| if *b == b' ' { b'_' } else { *b }).collect();
        names::meaning(&name).filter(|meaning| meaning.weight > NameWeight::Little)
    };
    let columns: Vec<Option<NameMeaning>> = fields.iter().map(meaning).collect();
    columns.iter().any(Option::is_some).then_some(columns)
}

/// A field of a line, without surrounding blanks and quotes.
struct TableField {
    from: usize,
    to: usize,
    is_quoted: bool,
    /// Whether there is no blank around it.
    is_tight: bool,
}

impl TableField {
    fn is_empty(&self) -> bool {
        self.from == self.to
    }
}

fn fields(bytes: &[u8], from: usize, to: usize, sign: u8) -> Vec<TableField> {
    let mut fields = Vec::new();
    let mut at = from;
    loop {
        let start = until(&bytes[..to], at, LONGEST, |b| b != b' ');
        let slashes = until(&bytes[..to], start, 4, |b| b != b'\\') - start;
        let quote = bytes[..to].get(start + slashes).copied().filter(|b| *b == b'"');
        let close = quote.and_then(|quote| closing(&bytes[..to], start + slashes + 1, quote, slashes));
        let (field_from, field_to, end) = match close {
            Some(close) => {
                let end = until(&bytes[..to], close, LONGEST, |b| b == sign);
                (start + slashes + 1, close, end)
            }
            None => {
                let end = until(&bytes[..to], start, LONGEST, |b| b == sign);
                // A quote closes the string literal that contains the table.
                let last = until(&bytes[..end.max(start)], start, LONGEST, |b| matches!(b, b'"' | b'\\'));
                (start, start + bytes[start..last].trim_ascii_end().len(), end)
            }
        };
        let is_tight = start == at && (close.is_some() || field_to == end || end >= to);
        fields.push(TableField {
            from: field_from,
            to: field_to.max(field_from),
            is_quoted: close.is_some(),
            is_tight,
        });
        if end >= to || fields.len() > MOST_COLUMNS {
            return fields;
        }
        at = end + 1;
    }
}

/// The position of a field's closing quote; a doubled quote is part of the field.
fn closing(bytes: &[u8], from: usize, quote: u8, slashes: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let close = assigned::closing(bytes, at, quote, slashes)?;
        let behind = close + slashes + 1;
        let is_doubled =
            bytes.get(behind + slashes) == Some(&quote) && bytes[behind..behind + slashes].iter().all(|b| *b == b'\\');
        if !is_doubled {
            return Some(close);
        }
        at = behind + slashes + 1;
    }
}
