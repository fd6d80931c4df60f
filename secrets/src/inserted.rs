//! Values in columns whose name suggests a secret: `INSERT INTO users (name, password) VALUES ('me', '…')`.

use crate::{
    assigned::{self, ValueForm},
    found::{SecretKind, Span},
    names::{self, NameWeight},
    text::until,
};

/// Maximum length of the list of columns, and of a list of values, bytes.
const LONGEST: usize = 1024;
/// Maximum number of rows read at once.
const MOST_ROWS: usize = 256;

/// The values in secret columns of the rows after the word `values`, which is at `start` to `end`. Returns the position
/// up to which it read.
pub(crate) fn find(bytes: &[u8], start: usize, end: usize, out: &mut Vec<Span>) -> usize {
    let Some(columns) = columns(bytes, start) else { return end };
    if columns.iter().all(|column| column.is_none()) {
        return end;
    }
    let mut at = end;
    for _ in 0..MOST_ROWS {
        let open = until(bytes, at, 16, |b| !(b.is_ascii_whitespace() || matches!(b, b',' | b'\\' | b'n')));
        if bytes.get(open) != Some(&b'(') {
            break;
        }
        at = row(bytes, open + 1, &columns, out);
    }
    at
}

/// The meanings of the columns in the list that ends before `start`.
fn columns(bytes: &[u8], start: usize) -> Option<Vec<Option<names::NameMeaning>>> {
    let before = &bytes[start.saturating_sub(LONGEST)..start];
    let gap = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'\\' | b'n' | b'+');
    let close = before.len() - before.iter().rev().take_while(|b| gap(b)).count();
    let list = before[..close].strip_suffix(b")")?;
    let open = memchr::memrchr(b'(', list)? + 1;
    let edge = |b: u8| !(b.is_ascii_alphanumeric() || b == b'_');
    let column = |name: &[u8]| {
        let from = until(name, 0, name.len(), |b| !edge(b));
        let to = until(name, from, name.len(), edge);
        names::meaning(&name[from..to]).filter(|meaning| meaning.weight > NameWeight::Little)
    };
    Some(list[open..].split(|b| *b == b',').map(column).collect())
}

/// Reads a row from after its parenthesis; returns its end.
fn row(bytes: &[u8], mut at: usize, columns: &[Option<names::NameMeaning>], out: &mut Vec<Span>) -> usize {
    let end = bytes.len().min(at + LONGEST);
    let mut column = 0;
    while at < end {
        let slashes = until(bytes, at, 8, |b| b != b'\\') - at;
        match bytes.get(at + slashes) {
            Some(&quote @ (b'"' | b'\'')) => {
                let from = at + slashes + 1;
                let Some(to) = assigned::closing(bytes, from, quote, slashes) else { return end };
                if let Some(Some(meaning)) = columns.get(column)
                    && assigned::is_secret(*meaning, &bytes[from..to], ValueForm::Quoted)
                {
                    out.push(Span { start: from, end: to, kind: SecretKind::from(meaning.kind) });
                }
                at = to + slashes + 1;
            }
            Some(b',') => {
                column += 1;
                at += slashes + 1;
            }
            Some(b')') => return at + slashes + 1,
            _ => at += slashes + 1,
        }
    }
    end
}
