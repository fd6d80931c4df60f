//! Classifies a value: a possible secret, a placeholder, or a word of a program.
//!
//! The functions are pure and examine only the bytes; the caller considers their position.

mod placeholder;
mod shape;

pub(crate) use placeholder::is_placeholder;
use shape::{CharCounts, trim};
pub(crate) use shape::{entropy, has_stray_capitals, is_number, is_path, is_words, looks_random};

/// Whether a value is a word of a program: a name, a path of names, a call, a type.
pub(crate) fn is_code(value: &[u8]) -> bool {
    let value = trim(value);
    let Some(&first) = value.first() else { return true };
    // A tag of YAML: `!vault`, `!Ref`.
    if first == b'!'
        && value.len() > 1
        && value[1..].iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b':' | b'_' | b'/'))
    {
        return true;
    }
    if value.contains(&b'(') && !is_drawn_in_parentheses(value)
        || value
            .windows(2)
            .any(|w| matches!(w, b"::" | b"->" | b"?." | b"[\"" | b"['" | b"=>" | b"&&" | b"||" | b"!=" | b"=="))
    {
        let before = value
            .iter()
            .take_while(|b| {
                b.is_ascii_alphanumeric()
                    || matches!(b, b'_' | b'.' | b':' | b'!' | b'?' | b'&' | b'*' | b'$' | b'-' | b'>')
            })
            .count();
        if before == value.len()
            || matches!(value.get(before), Some(b'(' | b'[' | b'<' | b'=' | b'|'))
                && (before == 0
                    || !value[..before].iter().any(u8::is_ascii_digit)
                    || value[before] == b'(' && value[..before].iter().any(|b| matches!(b, b'_' | b'.')))
        {
            return true;
        }
    }
    // A slice, a macro, a call, an index: `&[u8]`, `Token![struct]`, `base64.encode(`, `self.keys[`.
    if matches!(value, [b'&' | b'*', b'[' | b'(' | b'&' | b'\'', ..]) || matches!(value.last(), Some(b'(' | b'{')) {
        return true;
    }
    let name = value.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':')).count();
    let is_name = value[..name].iter().any(|b| matches!(b, b'_' | b'.' | b':'))
        || is_words(&value[..name])
        || first.is_ascii_uppercase();
    if name > 0 && is_name && matches!(&value[name..], [b'!', b'[' | b'(' | b'{', ..] | [b'(' | b'[', ..]) {
        return true;
    }
    // A type of C, and the beginning of an array: `__u32`, `[u16; 4]`.
    let word = value.strip_prefix(b"__").or_else(|| value.strip_prefix(b"["));
    if word.is_some_and(|word| word.len() < 16 && word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')) {
        return true;
    }
    if is_constant(value) {
        return true;
    }
    if matches!(first, b'&' | b'*')
        && value[1..].iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b':' | b'\''))
    {
        return true;
    }
    let names = value.strip_suffix(b"?").or_else(|| value.strip_suffix(b"!")).unwrap_or(value);
    let names = names.strip_suffix(b"[]").unwrap_or(names);
    is_words(names) || generic(names)
}

/// Whether a parenthesis outside a call is part of a value that looks random: `(aB3$kk91Lq`, `Kq(9xZ!pLm`.
fn is_drawn_in_parentheses(value: &[u8]) -> bool {
    let Some(open) = value.iter().position(|b| *b == b'(') else { return false };
    if open == 0 || open == 1 && value[0] == b'$' {
        return !placeholder::is_variable(value);
    }
    let inside = &value[open + 1..];
    let is_open = !inside.contains(&b')');
    is_open
        && placeholder::is_drawn(inside)
        && !inside.iter().any(|b| matches!(b, b',' | b'.' | b'"' | b'\'' | b'=' | b' '))
}

/// Whether a value is the name of a type or a function: words that begin with capitals, or several words separated by
/// underscores, some followed by a number: `Curve25519SeedBin`, `_mm_xor_si128`.
pub(crate) fn is_type(value: &[u8]) -> bool {
    let is_word = |word: &[u8]| {
        let letters = word.iter().take_while(|b| b.is_ascii_lowercase()).count();
        letters >= 1 && word[letters..].iter().all(u8::is_ascii_digit) && word.len() - letters <= 5
    };
    let parts = value.split(|b| *b == b'_').skip_while(|part| part.is_empty());
    if parts.clone().count() >= 3 && parts.clone().all(|part| part.len() <= 8 && is_word(part)) {
        return true;
    }
    let mut words = value.split(u8::is_ascii_uppercase);
    let is_first = words.next().is_some_and(<[u8]>::is_empty);
    is_first && words.clone().count() >= 3 && words.all(is_word)
}

/// The name of a constant: `WIN32_ERROR`, `DOT11_AUTH_ALGORITHM`.
fn is_constant(value: &[u8]) -> bool {
    let classes = CharCounts::of(value);
    classes.lower == 0
        && value.contains(&b'_')
        && classes.digits <= 4
        && classes.upper > 2 * classes.digits
        && value.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && value[0].is_ascii_alphabetic()
}

/// `Option<String>`, `list[str]`.
fn generic(value: &[u8]) -> bool {
    let open = value.iter().position(|b| matches!(b, b'<' | b'['));
    open.is_some_and(|open| {
        open > 0 && is_words(&value[..open]) && matches!(value.last(), Some(b'>' | b']' | b'<' | b'['))
    })
}

/// Whether a value is a colour in the notation of style sheets: `#10B981`.
pub(crate) fn is_colour(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"#");
    digits.is_some_and(|digits| matches!(digits.len(), 3 | 4 | 6 | 8) && is_hex(digits))
}

/// Whether a value is a UUID.
pub(crate) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value
            .iter()
            .enumerate()
            .all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() })
}

/// Whether a value consists only of hexadecimal digits.
pub(crate) fn is_hex(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a value has dashes, and capitals within a word: names do not have both.
pub(crate) fn is_mixed(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_lowercase)
        && value.contains(&b'-')
        && value.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        && value.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
}

/// Whether a value is a hash after words, like the key of a cache: `npm-9f86…`.
pub(crate) fn is_named_hash(value: &[u8]) -> bool {
    let hash = value.rsplit(|b| *b == b'-').next().unwrap_or_default();
    hash.len() >= 32 && hash.len() < value.len() && is_hex(hash) && is_words(&value[..value.len() - hash.len() - 1])
}

/// Whether a value is public, or not a secret by its form: public keys, certificates, hashes in lock files.
pub(crate) fn is_public(value: &[u8]) -> bool {
    let is_fingerprint = value.len() == 40 && value.iter().all(|b| b.is_ascii_digit() || matches!(b, b'A'..=b'F'));
    let is_account = value.len() == 34 && value.starts_with(b"AC") && is_hex(&value[2..]);
    is_fingerprint
        || is_account
        || [
            &b"ssh-rsa "[..],
            b"ssh-ed25519 ",
            b"ecdsa-sha2",
            b"-----BEGIN PUBLIC",
            b"-----BEGIN CERT",
            b"sha256-",
            b"sha384-",
            b"sha512-",
            b"sha256:",
            b"sha512:",
            b"sha1:",
            b"SHA256:",
            b"md5:",
            b"age1",
            b"pk_live_",
            b"pk_test_",
            b"data:image",
            b"urn:",
            b"refs/",
            b"MIIBIjANBgkq",
            b"AAAAB3NzaC1yc2",
            b"AAAAC3NzaC1lZDI1NTE5",
            b"toolu_",
            b"msg_",
            b"call_",
            b"chatcmpl-",
            b"req_",
        ]
        .iter()
        .any(|start| value.starts_with(start))
}

/// Whether a value is several words separated by blanks, like a sentence or a label.
pub(crate) fn is_sentence(value: &[u8]) -> bool {
    value.iter().filter(|b| b.is_ascii_whitespace()).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_distinguished_from_secrets() {
        for text in [
            "${TOKEN}",
            "$TOKEN",
            "<token>",
            "YOUR_API_KEY",
            "sk-...",
            "xxxxxxxx",
            "********",
            "{{ token }}",
            "%TOKEN%",
            "AKIAIOSFODNN7EXAMPLE",
            "[redacted:x]",
            "changeme",
        ] {
            assert!(is_placeholder(text.as_bytes()), "{text}");
        }
        for text in ["hunter2", "Tr0ub4dor&3", "p$ssw0rd!", "Xk29fLq0Zr"] {
            assert!(!is_placeholder(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn code_is_distinguished_from_secrets() {
        for text in [
            "getpass()",
            "config.password",
            "os.environ[\"API_KEY\"]",
            "Option<String>",
            "str",
            "userPassword",
            "process.env.TOKEN",
            "self.token",
            "my-app-secret",
            "&str",
        ] {
            assert!(is_code(text.as_bytes()), "{text}");
        }
        for text in ["hunter2x9", "Tr0ub4dor&3", "Xk29fLq0Zr", "wJalrXUtnFEMIK7MDENGbPxRfiCYzz9kQ1"] {
            assert!(!is_code(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn random_looking_values_are_recognized() {
        for text in ["9f8a7b6c5d4e3f2a1b0c", "Xk29fLq0ZrPm", "a81f0c22e9d84b1f"] {
            assert!(looks_random(text.as_bytes()), "{text}");
        }
        for text in ["us-east-1", "my-app-2024", "1.2.3-beta.4", "correct horse", "claude-sonnet-4-5-20250929"] {
            assert!(!looks_random(text.as_bytes()), "{text}");
        }
    }
}
