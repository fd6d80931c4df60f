//! Decodes raw JSON strings with one search for escapes and one copy (serde_json copies twice). Half a surrogate pair
//! is not an error. Most of a chat file is tool output, and most of that contains escapes.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// The text of a raw JSON string; `None` if the value is not a string. Half a surrogate pair is decoded as U+FFFD.
pub fn unescaped(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    let Some(first) = memchr::memchr(b'\\', inner.as_bytes()) else {
        return Some(Cow::Borrowed(inner));
    };
    let mut text = String::with_capacity(inner.len());
    let (mut from, mut at) = (0, first);
    loop {
        text.push_str(&inner[from..at]);
        let (c, length) = escape(&inner.as_bytes()[at..]);
        text.push(c);
        from = at + length;
        match memchr::memchr(b'\\', &inner.as_bytes()[from..]) {
            Some(next) => at = from + next,
            None => break,
        }
    }
    text.push_str(&inner[from..]);
    Some(Cow::Owned(text))
}

/// The character of the escape at the start of `bytes`, and the length of the escape.
fn escape(bytes: &[u8]) -> (char, usize) {
    let c = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode(bytes),
        Some(c) if c.is_ascii() => char::from(*c),
        Some(_) | None => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (c, 2)
}

fn unicode(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| -> Option<u32> {
        let escape = bytes.get(at..at + 6).filter(|e| e.starts_with(b"\\u"))?;
        u32::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
    };
    let Some(high) = unit(0) else {
        return (char::REPLACEMENT_CHARACTER, 2);
    };
    if let (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) = (high, unit(6)) {
        let pair = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(json: &str) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        unescaped(raw).map(Cow::into_owned)
    }

    proptest! {
        #[test]
        fn strings_encoded_by_serde_json_are_read_back_unchanged(text: String, all: bool) {
            let mut json = serde_json::to_string(&text).unwrap();
            if all {
                let units: String = text.encode_utf16().map(|u| format!("\\u{u:04x}")).collect();
                json = format!("\"{units}\"");
            }
            prop_assert_eq!(read(&json), Some(text));
        }
    }

    #[test]
    fn lone_surrogates_become_u_fffd_and_non_strings_are_rejected() {
        assert_eq!(read(r#""a\ud800b\udc00\/""#).as_deref(), Some("a\u{fffd}b\u{fffd}/"));
        assert_eq!(read("7"), None);
        assert_eq!(read(r#"["a"]"#), None);
    }
}
