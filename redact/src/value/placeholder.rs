//! What stands where a secret will be: variables, masks, `YOUR_API_KEY`, and the mark this crate leaves.

use super::trim;

/// Words that stand where a secret will be, or say what kind of thing it is.
const STANDS_FOR: &[&str] = &[
    "true",
    "false",
    "null",
    "nil",
    "none",
    "undefined",
    "string",
    "str",
    "text",
    "bytes",
    "byte",
    "int",
    "integer",
    "bool",
    "boolean",
    "object",
    "any",
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "key",
    "required",
    "optional",
    "hidden",
    "redacted",
    "masked",
    "encrypted",
    "removed",
    "omitted",
    "changeme",
    "change_me",
    "change-me",
    "changeit",
    "replaceme",
    "replace_me",
    "example",
    "sample",
    "dummy",
    "fake",
    "mock",
    "placeholder",
    "test",
    "testing",
    "tbd",
    "todo",
    "fixme",
    "empty",
    "unset",
    "default",
    "value",
    "user",
    "username",
    "root",
    "admin",
    "guest",
    "postgres",
    "mysql",
    "basic",
    "bearer",
    "digest",
    "negotiate",
    "auto",
    "yes",
    "no",
    "on",
    "off",
    "enabled",
    "disabled",
    "invalid",
    "expired",
    "missing",
    "unknown",
    "foo",
    "bar",
    "baz",
    "foobar",
    "self",
    "this",
    "env",
    "environment",
    "number",
    "varchar",
    "char",
    "uuid",
    "inherit",
    "write",
    "read",
    "plain",
    "prompt",
    "ask",
    "manual",
    "csrf",
    "input",
    "field",
    "label",
    "type",
    "opaque",
    "secretstr",
    "securestring",
    "option",
    "vec",
    "list",
    "dict",
    "map",
    "array",
    "function",
    "const",
    "let",
    "var",
    "await",
    "async",
    "return",
    "new",
    "not",
    "is",
    "in",
    "and",
    "or",
    "if",
    "else",
    "for",
    "the",
    "a",
    "an",
    "to",
    "of",
    "with",
    "must",
    "was",
    "has",
    "will",
    "should",
    "cannot",
    "can",
    "may",
    "from",
    "your",
    "my",
    "user:password",
    "xxx",
    "abc",
    "abc123",
    "password123",
    "secret123",
    "mypassword",
    "my-password",
    "mysecret",
    "mytoken",
    "notasecret",
    "not-a-secret",
    "notreal",
    "not-real",
    "s3cr3t",
];

/// Parts that no drawn value has.
const MARKS_OF_PLACEHOLDERS: &[&str] = &[
    "example",
    "your_",
    "your-",
    "yourkey",
    "yourtoken",
    "yoursecret",
    "yourpassword",
    "my_secret",
    "my-secret",
    "my_api",
    "my-api",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "replace_",
    "replace-",
    "replaceme",
    "insert_",
    "insert-",
    "_here",
    "-here",
    "redacted",
    "dummy",
    "sample",
    "fake",
    "xxxx",
    "....",
    "****",
    "todo",
    "<your",
    "test-key",
    "test_key",
    "fixture",
    "testtoken",
    "test-token",
    "test_token",
    "not-a-",
    "not_a_",
    "1234567890abcdef",
    "abcdefghijkl",
    "0123456789",
    "deadbeef",
    "lorem",
    "-goes-",
    "_goes_",
];

/// Whether a value stands for a secret: a variable, a mask, `YOUR_API_KEY`, or the mark this crate leaves.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let value = trim(value);
    let Some(&first) = value.first() else { return true };
    if value.starts_with(b"[redacted:") || is_variable(value) {
        return true;
    }
    // A mask: `****`, `xxxx`, `....`, `sk-...`, `abc…`.
    let distinct = value.iter().filter(|&&b| b != first).count();
    if distinct == 0
        || value.ends_with(b"...")
        || value.ends_with("…".as_bytes())
        || value.windows(3).any(|w| w == b"***" || w == b"...")
    {
        return true;
    }
    if value.windows(3).any(|w| w == "…".as_bytes() || w == "•".as_bytes()) {
        return true;
    }
    let is_mask = |b: &u8| matches!(b, b'*' | b'x' | b'X' | b'.' | b'-' | b'_' | b'#' | b'?' | b'0');
    if value.iter().all(is_mask) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(value) else { return false };
    if value.len() > 512 {
        return false;
    }
    let small = text.to_ascii_lowercase();
    if STANDS_FOR.contains(&small.as_str()) || sequence(value) {
        return true;
    }
    // A drawn value may hold such a word by chance only when the rest of it outweighs the word.
    MARKS_OF_PLACEHOLDERS.iter().any(|mark| small.contains(mark)) && value.len() < 64
}

/// `$TOKEN`, `${TOKEN}`, `%TOKEN%`, `{{ token }}`, `<token>`, `$(cat …)`, `@TOKEN@`, `[token]`.
fn is_variable(value: &[u8]) -> bool {
    let last = value.last().copied().unwrap_or_default();
    match value[0] {
        b'$' => {
            let rest = &value[1..];
            let opens = rest.first().is_some_and(|b| matches!(b, b'{' | b'(' | b'[' | b'$'));
            let is_name =
                !rest.is_empty() && rest.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.'));
            // A password may begin with the sign: digits among small letters are in no name of a variable.
            let is_drawn = rest.iter().any(u8::is_ascii_digit) && rest.iter().any(u8::is_ascii_lowercase);
            opens || is_name && !is_drawn && !rest.starts_with(b"2")
        }
        b'%' => last == b'%' || value.len() <= 3 || value.get(1) == Some(&b'('),
        b'{' => value.get(1) == Some(&b'{') || last == b'}',
        b'<' => {
            last == b'>' || value.get(1).is_some_and(u8::is_ascii_alphabetic) && !value.iter().any(u8::is_ascii_digit)
        }
        b'@' => last == b'@' || value.get(1) == Some(&b'{'),
        b'[' => last == b']',
        b'(' => true,
        b'#' => value.get(1) == Some(&b'{'),
        _ => value.windows(2).any(|pair| matches!(pair, b"${" | b"{{" | b"#{" | b"$(")),
    }
}

/// Letters or digits that only count on: `12345678`, `abcdefgh`.
fn sequence(value: &[u8]) -> bool {
    value.len() >= 6
        && value.windows(2).filter(|pair| pair[1] == pair[0].wrapping_add(1) || pair == b"90").count() + 1
            == value.len()
        && value[0].is_ascii_alphabetic()
}
