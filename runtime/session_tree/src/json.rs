//! JSON that preserves the order of its keys.
//!
//! Other programs also write and read sessions. Unknown data is preserved in its original order: a tool's arguments are
//! sent to a model, and the text must be the same each time. Text lengths are counted as in JavaScript (UTF-16 units),
//! because pi's token estimates are based on them.
//!
//! This module owns the value and its text. It must not depend on sessions.

mod javascript;
mod value;
mod wire;

pub use value::{Json, Object};

impl Object {
    /// Its approximate size in memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_pair = |(key, value): (&str, &Json)| size_of::<(String, Json)>() + key.len() + value.heap_bytes();
        self.iter().map(of_pair).sum()
    }

    /// The JSON text, in one line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        write_object(self, &mut out);
        out
    }
}

impl Json {
    /// Parses a JSON text.
    ///
    /// Half of a surrogate pair in an escape, which JavaScript writes when it cuts a text, becomes U+FFFD; a number
    /// outside the range of `f64` becomes `null`.
    ///
    /// # Errors
    /// The error of serde_json, also for values nested deeper than 128.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).or_else(|error| {
            let whole = without_lone_surrogates(text);
            let finite = javascript::without_infinities(whole.as_deref().unwrap_or(text));
            finite.or(whole).map_or(Err(error), |text| serde_json::from_str(&text))
        })
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    /// The items, if it is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        if let Self::Number(number) = self { number.as_f64() } else { None }
    }

    /// The approximate heap size of the value, in bytes.
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => 0,
            Self::String(text) => text.len(),
            Self::Array(items) => items.iter().map(|item| size_of::<Self>() + item.heap_bytes()).sum(),
            Self::Object(object) => object.memory_bytes(),
        }
    }

    /// Whether JavaScript considers it true.
    #[must_use]
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(yes) => *yes,
            Self::Number(number) => number.as_f64().is_some_and(|n| n != 0.0),
            Self::String(text) => !text.is_empty(),
            Self::Array(_) | Self::Object(_) => true,
        }
    }

    /// The JSON text, in one line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        write(self, &mut out);
        out
    }
}

/// The length of a text in UTF-16 units.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    // Most texts are ASCII, whose length is known.
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// The start of a text, in UTF-16 units, without splitting a surrogate pair.
#[must_use]
pub fn utf16_prefix(text: &str, units: usize) -> &str {
    let mut left = units;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

fn write(value: &Json, out: &mut String) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&javascript::number_text(number)),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Json::Object(object) => write_object(object, out),
    }
}

fn write_object(object: &Object, out: &mut String) {
    out.push('{');
    for (i, (key, value)) in object.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

/// Appends a text as a JSON string, escaping the same characters as `JSON.stringify`.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        match chars.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Replaces every half of a surrogate pair in the text; `None` if there are none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6).filter(|d| d.starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(&digits[2..]).ok()?, 16).ok()
    };
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&text[kept..at]);
                out.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            // Skips the escape and its character, so that `\\` does not start another escape.
            Some(_) | None => at += 2,
        }
    }
    if kept == 0 {
        return None;
    }
    out.push_str(text.get(kept..)?);
    Some(out)
}

#[cfg(test)]
mod tests;
