//! Decodes JSON strings in one pass: most bytes of a rollout are tool outputs.

/// Decodes the content of a JSON string. The string was validated when it was extracted from its line; an unpaired
/// surrogate becomes U+FFFD.
pub(super) fn unescape(inner: &str) -> String {
    let mut text = Vec::with_capacity(inner.len() + WORD);
    let mut rest = inner.as_bytes();
    while !rest.is_empty() {
        rest = &rest[plain(rest, &mut text)..];
        match rest.first() {
            Some(b'\\') => rest = &rest[1 + escape(&rest[1..], &mut text).unwrap_or(0)..],
            Some(other) => {
                text.push(*other);
                rest = &rest[1..];
            }
            None => {}
        }
    }
    String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Reads a JSON string after its opening quote. Returns the text and the number of bytes up to and including the
/// closing quote, or `None` if the string is incomplete or invalid.
pub(super) fn read(bytes: &[u8]) -> Option<(String, usize)> {
    let mut text = Vec::with_capacity(bytes.len() + WORD);
    let mut at = 0;
    loop {
        at += plain(&bytes[at..], &mut text);
        match bytes.get(at)? {
            b'"' => break,
            _ => at += 1 + escape(&bytes[at + 1..], &mut text)?,
        }
    }
    Some((String::from_utf8(text).ok()?, at + 1))
}

/// Number of bytes examined at once.
const WORD: usize = 8;

/// Appends the bytes before the next quote or backslash and returns their number. Outputs contain one about every 20
/// bytes, too frequent for a call to a search function to be worthwhile.
#[inline]
fn plain(bytes: &[u8], text: &mut Vec<u8>) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // The top bit of each zero byte; exact up to the first one.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk::<WORD>() {
        let value = u64::from_le_bytes(*word);
        let found = zeros(value ^ (ONES * u64::from(b'"'))) | zeros(value ^ (ONES * u64::from(b'\\')));
        text.extend_from_slice(word);
        if found != 0 {
            let before = (found.trailing_zeros() / 8) as usize;
            text.truncate(text.len() - (WORD - before));
            return at + before;
        }
        at += WORD;
    }
    let rest = &bytes[at..];
    let before = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
    text.extend_from_slice(&rest[..before]);
    at + before
}

/// The characters of the one-letter escapes; zero for invalid ones.
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    table[b'n' as usize] = b'\n';
    table[b't' as usize] = b'\t';
    table[b'r' as usize] = b'\r';
    table[b'b' as usize] = 8;
    table[b'f' as usize] = 12;
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table
};

/// Appends the character of the escape after a backslash and returns the escape's length.
#[inline]
fn escape(bytes: &[u8], text: &mut Vec<u8>) -> Option<usize> {
    let letter = *bytes.first()?;
    match ESCAPES[usize::from(letter)] {
        0 if letter == b'u' => {
            let (code, length) = unit(bytes)?;
            text.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
            Some(length)
        }
        0 => None,
        byte => {
            text.push(byte);
            Some(1)
        }
    }
}

/// The character of `uXXXX`, or of a surrogate pair `uXXXX\uXXXX`, and its length.
fn unit(bytes: &[u8]) -> Option<(char, usize)> {
    let hex = |bytes: &[u8]| -> Option<u32> {
        let digits = bytes.get(1..5)?.iter().map(|digit| char::from(*digit).to_digit(16));
        digits.into_iter().try_fold(0, |code, digit| Some(code * 16 + digit?))
    };
    let first = hex(bytes)?;
    if (0xd800..0xdc00).contains(&first) {
        let second = bytes.get(5..).filter(|rest| rest.starts_with(b"\\u")).and_then(|rest| hex(&rest[1..]));
        if let Some(second @ 0xdc00..0xe000) = second {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Some((char::from_u32(code)?, 11));
        }
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        assert_eq!(unescape(r"\ud800x\udc00"), "\u{fffd}x\u{fffd}");
        assert_eq!(unescape(r"\ud83d\ude80"), "🚀");
        assert_eq!(read(br#"a\ud83d\ude80b" rest"#), Some(("a🚀b".into(), 15)));
    }

    #[test]
    fn unterminated_and_badly_escaped_strings_are_rejected() {
        for bad in [&b"abc"[..], br"a\", br#"a\x""#, br#"a\u12"#, br#"a\u12g4""#, b"\xff\""] {
            assert_eq!(read(bad), None, "{:?}", String::from_utf8_lossy(bad));
        }
    }

    proptest! {
        #[test]
        fn strings_encoded_by_serde_json_are_read_back_unchanged(text: String) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(read(&json.as_bytes()[1..]), Some((text.clone(), json.len() - 1)));
            prop_assert_eq!(unescape(&json[1..json.len() - 1]), text);
        }

        #[test]
        fn reading_arbitrary_bytes_does_not_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
            let _ = unescape(&String::from_utf8_lossy(&bytes));
        }
    }
}
