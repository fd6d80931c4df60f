//! Recognizes placeholders: variables, masks, `YOUR_API_KEY`, and this crate's own mark.
//!
//! A word such as `example` or `todo` makes a value a placeholder only if the value consists entirely of words, masks
//! and counted digits, because one in forty random keys contains such a word by chance.

use crate::value::shape::{has_stray_capitals, is_words, looks_random, trim};

/// Words that replace a secret, or describe what it is.
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

/// Words which indicate that a value is made up. Alone they are not sufficient: see [`is_only_words`].
const MARKS_OF_PLACEHOLDERS: &[&str] = &[
    "example",
    "your",
    "my_",
    "my-",
    "placeholder",
    "change",
    "replace",
    "insert",
    "here",
    "redacted",
    "dummy",
    "sample",
    "fake",
    "xxxx",
    "....",
    "****",
    "todo",
    "test",
    "fixture",
    "not-a-",
    "not_a_",
    "1234567890abcdef",
    "abcdefghijkl",
    "0123456789",
    "deadbeef",
    "lorem",
    "-goes-",
    "_goes_",
    "0000",
];

/// Keys from vendors' documentation, in parts, so that no file of ours contains a whole one.
const PUBLISHED: &[&[&str]] = &[
    &["AKIA", "IOSFODNN7", "EXAMPLE"],
    &["ASIA", "IOSFODNN7", "EXAMPLE"],
    &["AKIA", "I44QH8DHB", "EXAMPLE"],
    &["AROA", "IOSFODNN7", "EXAMPLE"],
    &["wJalrXUtnFEMI/", "K7MDENG/bPxRfiCY", "EXAMPLEKEY"],
    &["je7MtGbClwBF/", "2Zp9Utk/h3yCo8nv", "bEXAMPLEKEY"],
];

/// Whether a value is a placeholder: a variable, a mask, `YOUR_API_KEY`, or the mark of this crate.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let value = trim(value);
    let Some(&first) = value.first() else { return true };
    if value.starts_with(b"[redacted:") || is_variable(value) || is_published(value) {
        return true;
    }
    let distinct = value.iter().filter(|&&b| b != first).count();
    if distinct == 0 || is_shortened(value) {
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
    value.len() < 96 && MARKS_OF_PLACEHOLDERS.iter().any(|mark| small.contains(mark)) && is_only_words(value)
}

/// Whether it is a key from a vendor's documentation.
fn is_published(value: &[u8]) -> bool {
    PUBLISHED.iter().any(|parts| {
        let mut rest = Some(value);
        for part in *parts {
            rest = rest.and_then(|rest| rest.strip_prefix(part.as_bytes()));
        }
        rest.is_some_and(<[u8]>::is_empty)
    })
}

/// A mask that shows little of the value: `sk-...`, `abc…`, `AKIA****`, `ghp_••••9fKx`.
fn is_shortened(value: &[u8]) -> bool {
    /// Maximum number of bytes of a cut key that may still be visible.
    const SEEN: usize = 24;
    let is_sign = |at: &usize| {
        let rest = &value[*at..];
        rest.starts_with("…".as_bytes())
            || rest.starts_with("•".as_bytes())
            || rest.starts_with(b"***")
            || rest.starts_with(b"...")
    };
    let Some(sign) = (0..value.len()).find(is_sign) else { return false };
    let seen = |part: &[u8]| part.iter().filter(|b| b.is_ascii_alphanumeric()).count();
    seen(&value[..sign]) + seen(&value[sign..]) <= SEEN || value.ends_with(b"...") || value.ends_with("…".as_bytes())
}

/// Whether a value consists only of words, masks and counted digits, with `-`, `_` and similar characters between them:
/// `your-api-key-here`, `sk_test_xxxxxxxx`, `MyExampleToken123`.
fn is_only_words(value: &[u8]) -> bool {
    /// Maximum number of digits of a made-up value besides counted ones.
    const DIGITS: usize = 4;
    let rest = without_fillers(value);
    let between = |b: &u8| matches!(b, b'-' | b'_' | b'.' | b':' | b'/' | b' ' | b'<' | b'>' | b'[' | b']');
    let mut digits = 0;
    rest.split(between).all(|part| {
        let letters = part.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (word, number) = part.split_at(letters);
        digits += number.len();
        number.iter().all(u8::is_ascii_digit) && digits <= DIGITS && !has_stray_capitals(word) && is_words(word)
    })
}

/// A value without fillers: the same character four or more times, counted characters, `deadbeef`. Each is replaced by
/// a blank.
fn without_fillers(value: &[u8]) -> Vec<u8> {
    const FILLERS: [&[u8]; 4] = [b"deadbeef", b"DEADBEEF", b"cafebabe", b"CAFEBABE"];
    let mut rest = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        let here = &value[at..];
        let same = here.iter().take_while(|b| **b == here[0]).count();
        let follows =
            |pair: &[u8]| pair[1] == pair[0].wrapping_add(1) || pair == b"90" || pair == b"0a" || pair == b"9a";
        let counted = 1 + here.windows(2).take_while(|pair| follows(pair)).count();
        let word = FILLERS.iter().find(|word| here.starts_with(word)).map_or(0, |word| word.len());
        let filler = if same >= 4 { same } else { 0 }.max(if counted >= 5 { counted } else { 0 }).max(word);
        if filler > 0 {
            rest.push(b' ');
            at += filler;
        } else {
            rest.push(here[0]);
            at += 1;
        }
    }
    rest
}

/// `$TOKEN`, `${TOKEN}`, `%TOKEN%`, `{{ token }}`, `<token>`, `$(cat …)`, `@TOKEN@`, `[token]`: signs around a name or
/// words. Around random text they are part of the value.
pub(super) fn is_variable(value: &[u8]) -> bool {
    let last = value.last().copied().unwrap_or_default();
    let inner = |from: usize| value.get(from..value.len() - 1).unwrap_or_default();
    match value[0] {
        b'$' => {
            let rest = &value[1..];
            if rest.first().is_some_and(|b| matches!(b, b'{' | b'(' | b'[' | b'$')) {
                return names_something(&rest[1..]);
            }
            let is_name =
                !rest.is_empty() && rest.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.'));
            // A password may begin with `$`: digits among lower-case letters do not occur in names of variables.
            let is_drawn = rest.iter().any(u8::is_ascii_digit) && rest.iter().any(u8::is_ascii_lowercase);
            is_name && !is_drawn && !rest.starts_with(b"2")
        }
        b'%' if value.len() <= 3 => true,
        b'%' if value.get(1) == Some(&b'(') => names_something(&value[2..]),
        b'%' => last == b'%' && names_something(inner(1)),
        b'{' if value.get(1) == Some(&b'{') => names_something(&value[2..]),
        b'{' => last == b'}' && (is_structure(inner(1)) || names_something(inner(1))),
        b'<' if last == b'>' => names_something(inner(1)),
        b'<' => value.get(1).is_some_and(u8::is_ascii_alphabetic) && !value.iter().any(u8::is_ascii_digit),
        b'@' => (last == b'@' || value.get(1) == Some(&b'{')) && names_something(&value[1..]),
        b'[' => last == b']' && (is_structure(inner(1)) || names_something(inner(1))),
        b'(' => names_something(&value[1..]),
        b'#' => value.get(1) == Some(&b'{') && names_something(&value[2..]),
        _ => holds_variable(value),
    }
}

/// Whether the text in brackets is an object or a list, whose content is read separately.
fn is_structure(inner: &[u8]) -> bool {
    inner.iter().any(|b| matches!(b, b'"' | b'\'' | b':' | b',' | b' '))
}

/// Whether a value contains a variable, without random text around it: `app-${ENV}`, `Bearer {{token}}`.
fn holds_variable(value: &[u8]) -> bool {
    let opens = |pair: &[u8]| matches!(pair, b"${" | b"{{" | b"#{" | b"$(");
    let Some(open) = value.windows(2).position(opens) else { return false };
    let inside = &value[open + 2..];
    let close = inside.iter().position(|b| matches!(b, b'}' | b')'));
    let around = close.map_or_else(Vec::new, |close| [&value[..open], &inside[close + 1..]].concat());
    let named = &inside[..close.unwrap_or(inside.len())];
    names_something(named) && !is_drawn(&around) && (close.is_some() || !is_drawn(&value[..open]))
}

/// Whether the text between the signs of a variable is a name, a command or words, and not random. The default of an
/// unset variable counts too: `${PASSWORD:-…}`.
fn names_something(inner: &[u8]) -> bool {
    let closes = |b: &u8| matches!(b, b'}' | b')' | b']' | b'>');
    let end = inner.len() - inner.iter().rev().take_while(|b| closes(b)).count();
    let inner = trim(&inner[..end]);
    if let Some(sign) = inner.windows(2).position(|pair| matches!(pair, b":-" | b":=" | b":+")) {
        let default = &inner[sign + 2..];
        return names_something(&inner[..sign]) && (is_placeholder(default) || !is_drawn(default));
    }
    let words = inner.split(|b| b.is_ascii_whitespace() || matches!(b, b',' | b'|' | b'"' | b'\'' | b'='));
    !words.into_iter().any(is_drawn)
}

/// Whether a word looks random, unlike names, paths, numbers and words of a program.
pub(super) fn is_drawn(word: &[u8]) -> bool {
    let has = |of: fn(&u8) -> bool| word.iter().any(of);
    let has_digit = has(u8::is_ascii_digit);
    let signs =
        word.iter().filter(|b| matches!(b, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'~' | b'?'));
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let is_name = word.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
        && word.first().is_some_and(|b| b.is_ascii_uppercase() || *b == b'_');
    word.len() >= 6
        && !is_words(word)
        && !is_name
        && !crate::value::shape::is_path(word)
        && !crate::value::shape::is_number(word)
        && !is_only_words(word)
        && (looks_random(word) || has_digit && (is_mixed || signs.count() > 0))
}

/// Letters or digits in sequence: `12345678`, `abcdefgh`.
fn sequence(value: &[u8]) -> bool {
    value.len() >= 6
        && value.windows(2).filter(|pair| pair[1] == pair[0].wrapping_add(1) || pair == b"90").count() + 1
            == value.len()
        && value[0].is_ascii_alphabetic()
}
