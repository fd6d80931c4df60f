//! Redacts the strings of JSON. The key of a string is its context.

use serde_json::Value;

use crate::{
    assigned::{self, ValueForm},
    names::{self, NameMeaning, NameWeight},
    redactor::Redactor,
    text,
};

/// Redacts a value whose name has this meaning.
pub(crate) fn redact(redactor: &Redactor, meaning: Option<NameMeaning>, value: &mut Value) -> usize {
    match value {
        Value::String(string) => {
            if let Some(meaning) = meaning
                && assigned::is_secret(meaning, string.as_bytes(), ValueForm::Quoted)
            {
                string.clear();
                text::push_mark(string, meaning.kind);
                return 1;
            }
            let redacted = redactor.redact(string);
            let count = redacted.found.len();
            if count > 0 {
                *string = redacted.text.into_owned();
            }
            count
        }
        Value::Array(values) => {
            let mut count = 0;
            let mut told = None;
            for value in values.iter_mut() {
                let next = value.as_str().and_then(names_next);
                count += redact(redactor, meaning.or(told.take()), value);
                told = next;
            }
            count + joined(redactor, values, "\n") + joined(redactor, values, " ")
        }
        Value::Object(fields) => {
            let named = ["name", "key"].iter().find_map(|name| match fields.get(*name) {
                Some(Value::String(name)) => names::meaning(name.as_bytes()),
                _ => None,
            });
            let mut count = 0;
            for (name, value) in fields.iter_mut() {
                let own = if name == "cookie" || name == "Cookie" || name == "set-cookie" {
                    count += cookies(value);
                    None
                } else if name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("proxy-authorization")
                {
                    count += authorization(value);
                    None
                } else {
                    names::meaning(name.as_bytes())
                };
                count += redact(redactor, own.or_else(|| named.filter(|_| name.eq_ignore_ascii_case("value"))), value);
            }
            count
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// A header's value alone shows less than the whole header, so both are read together.
fn header(name: &str, value: &mut Value, find: impl Fn(&[u8], usize, &mut Vec<crate::found::Span>)) -> usize {
    let Value::String(string) = value else { return 0 };
    let line = format!("{name}: {string}");
    let mut spans = Vec::new();
    find(line.as_bytes(), name.len(), &mut spans);
    let count = spans.len();
    spans.sort_by_key(|span| std::cmp::Reverse(span.start));
    for span in spans {
        let shift = name.len() + 2;
        if let (Some(start), Some(end)) = (span.start.checked_sub(shift), span.end.checked_sub(shift))
            && string.is_char_boundary(start)
            && string.is_char_boundary(end)
            && end <= string.len()
        {
            let mut mark = String::new();
            text::push_mark(&mut mark, &span.kind);
            string.replace_range(start..end, &mark);
        }
    }
    count
}

fn cookies(value: &mut Value) -> usize {
    header("cookie", value, |line, at, out| {
        crate::header::cookies(line, at, out);
    })
}

fn authorization(value: &mut Value) -> usize {
    header("authorization", value, |line, at, out| crate::header::authorization(line, 0, at, out))
}

/// The meaning that an element of a list gives to the next one, if it is a flag: `--password`, `-Dtoken`.
fn names_next(element: &str) -> Option<NameMeaning> {
    /// Longest flag, bytes.
    const LONGEST: usize = 64;
    let name = element.strip_prefix('-')?;
    let is_name =
        name.len() <= LONGEST && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    names::meaning(name.as_bytes()).filter(|meaning| is_name && meaning.weight > NameWeight::Little)
}

/// Redacts secrets that span several elements of a list: a text stored as lines, a command stored as words.
fn joined(redactor: &Redactor, values: &mut [Value], between: &str) -> usize {
    let lines: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
    let Some(lines) = lines.filter(|lines| lines.len() > 1) else { return 0 };
    let found = redactor.redact(&lines.join(between)).found;
    let mut count = 0;
    let mut next = 0;
    for value in values.iter_mut() {
        let Value::String(line) = value else { continue };
        let (start, end) = (next, next + line.len());
        next = end + between.len();
        let mut kept = String::new();
        let mut at = 0;
        for one in found.iter().filter(|one| one.range.start < end && one.range.end > start) {
            kept.push_str(line.get(at..one.range.start.saturating_sub(start)).unwrap_or_default());
            text::push_mark(&mut kept, &one.kind);
            at = one.range.end.min(end) - start;
            count += 1;
        }
        if at > 0 {
            kept.push_str(line.get(at..).unwrap_or_default());
            *line = kept;
        }
    }
    count
}

impl Redactor {
    /// Redacts every string of a value in place, and returns the number of secrets. The name of a string is its
    /// context: a string named `password` is a secret whatever it looks like, unless it is plainly a placeholder.
    pub fn redact_json(&self, value: &mut serde_json::Value) -> usize {
        redact(self, None, value)
    }
}
