//! Keys by name: the bytes that names such as `ctrl-c` send to a program, and the key that detaches a terminal.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Named keys and the bytes they send. The keys in the second list differ while the program has application cursor keys
/// enabled.
const NAMED: &[(&str, &[u8])] = &[
    ("enter", b"\r"),
    ("esc", b"\x1b"),
    ("tab", b"\t"),
    ("shift-tab", b"\x1b[Z"),
    ("backspace", b"\x7f"),
    ("delete", b"\x1b[3~"),
    ("insert", b"\x1b[2~"),
    ("space", b" "),
    ("pgup", b"\x1b[5~"),
    ("pgdn", b"\x1b[6~"),
    ("f1", b"\x1bOP"),
    ("f2", b"\x1bOQ"),
    ("f3", b"\x1bOR"),
    ("f4", b"\x1bOS"),
    ("f5", b"\x1b[15~"),
    ("f6", b"\x1b[17~"),
    ("f7", b"\x1b[18~"),
    ("f8", b"\x1b[19~"),
    ("f9", b"\x1b[20~"),
    ("f10", b"\x1b[21~"),
    ("f11", b"\x1b[23~"),
    ("f12", b"\x1b[24~"),
];
const CURSOR: &[(&str, u8)] =
    &[("up", b'A'), ("down", b'B'), ("right", b'C'), ("left", b'D'), ("home", b'H'), ("end", b'F')];

/// The bytes a key sends.
///
/// # Errors
/// When the key is unknown; the error text lists the known keys.
pub fn bytes(name: &str, application_cursor: bool) -> Result<Vec<u8>, String> {
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Ok(letter.to_string().into_bytes());
    }
    let lower = name.to_ascii_lowercase();
    if let Some((_, bytes)) = NAMED.iter().find(|(known, _)| *known == lower) {
        return Ok(bytes.to_vec());
    }
    if let Some((_, last)) = CURSOR.iter().find(|(known, _)| *known == lower) {
        return Ok(vec![0x1b, if application_cursor { b'O' } else { b'[' }, *last]);
    }
    if let Some(key) = lower.strip_prefix("ctrl-")
        && let Some(byte) = control(key)
    {
        return Ok(vec![byte]);
    }
    if let Some(("", key)) = name.split_once("alt-").or_else(|| name.split_once("Alt-"))
        && !key.is_empty()
    {
        let mut typed = vec![0x1b];
        typed.extend(bytes(key, application_cursor)?);
        return Ok(typed);
    }
    let known: Vec<&str> = NAMED.iter().map(|(n, _)| *n).chain(CURSOR.iter().map(|(n, _)| *n)).collect();
    let given: String = name.chars().take(32).collect();
    Err(format!(
        "`{given}` is not a key; expected one of {}, ctrl-KEY, alt-KEY or a single character",
        known.join(", ")
    ))
}

/// The control character of a key: `c` gives 0x03.
fn control(key: &str) -> Option<u8> {
    match key.as_bytes() {
        b"space" | b"@" => Some(0),
        b"?" => Some(0x7f),
        [letter @ (b'a'..=b'z')] => Some(letter - b'a' + 1),
        [sign @ b'['..=b'_'] => Some(sign - b'@'),
        _ => None,
    }
}

/// Text as one paste: its newlines submit nothing, and it cannot end the paste.
#[must_use]
pub fn paste(text: &str) -> Vec<u8> {
    format!("\x1b[200~{}\x1b[201~", text.replace('\x1b', "")).into_bytes()
}

/// The key that detaches a terminal, if any: a control key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DetachKey(Option<u8>);

impl DetachKey {
    /// No key.
    pub const NONE: Self = Self(None);
    /// Ctrl-].
    pub const USUAL: Self = Self(Some(0x1d));

    /// The position of the key in the typed bytes. It arrives as one byte, or, if the program asked for it, as a
    /// sequence: `ESC [ 93 ; 5 u` (kitty), `ESC [ 27 ; 5 ; 93 ~` (modifyOtherKeys). A sequence split across two reads
    /// is not recognised, because typed bytes are never delayed.
    #[must_use]
    pub fn find(self, typed: &[u8]) -> Option<usize> {
        let byte = self.0?;
        let letter = match byte {
            1..=26 => byte + b'a' - 1,
            _ => byte | 0x40,
        };
        let sequences = [
            format!("\x1b[{letter};5u"),
            format!("\x1b[{letter};5:1u"),
            // With caps lock or num lock.
            format!("\x1b[{letter};69u"),
            format!("\x1b[{letter};133u"),
            format!("\x1b[27;5;{letter}~"),
        ];
        let longer = sequences.iter().filter_map(|sequence| memchr::memmem::find(typed, sequence.as_bytes()));
        longer.chain(memchr::memchr(byte, typed)).min()
    }
}

impl FromStr for DetachKey {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let key = text.to_ascii_lowercase();
        match key.strip_prefix("ctrl-").and_then(control) {
            Some(byte) => Ok(Self(Some(byte))),
            None => Err("expected ctrl-KEY, such as ctrl-], or none".into()),
        }
    }
}

impl fmt::Display for DetachKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(byte @ 1..=26) => write!(f, "ctrl-{}", char::from(byte + b'a' - 1)),
            Some(0) => f.write_str("ctrl-space"),
            Some(0x7f) => f.write_str("ctrl-?"),
            Some(byte) => write!(f, "ctrl-{}", char::from(byte | 0x40)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_are_encoded_as_bytes() {
        let check = |name: &str, application, expected: &[u8]| {
            assert_eq!(bytes(name, application).as_deref(), Ok(expected), "{name}");
        };
        check("enter", false, b"\r");
        check("Esc", false, b"\x1b");
        check("up", false, b"\x1b[A");
        check("up", true, b"\x1bOA");
        check("end", true, b"\x1bOF");
        check("ctrl-c", false, b"\x03");
        check("ctrl-]", false, b"\x1d");
        check("alt-x", false, b"\x1bx");
        check("alt-enter", false, b"\x1b\r");
        check("y", false, b"y");
        check("Y", false, b"Y");
        check("é", false, "é".as_bytes());
        check("-", false, b"-");
        for unknown in ["", "hyper-x", "ctrl-", "ctrl-enter", "f13", "alt-"] {
            let error = bytes(unknown, false).unwrap_err();
            assert!(error.contains("pgup"), "{error}");
        }
    }

    #[test]
    fn the_detach_key_is_recognized_in_every_encoding() {
        let key: DetachKey = "ctrl-]".parse().unwrap();
        assert_eq!((key, key.to_string().as_str()), (DetachKey::USUAL, "ctrl-]"));
        assert_eq!(key.find(b"ab\x1dc"), Some(2));
        assert_eq!(key.find(b"a\x1b[93;5u"), Some(1));
        assert_eq!(key.find(b"\x1b[27;5;93~"), Some(0));
        assert_eq!(key.find(b"\x1b[93;2u]"), None);
        assert_eq!("ctrl-a".parse::<DetachKey>().unwrap().find(b"\x1b[97;5u"), Some(0));
        assert_eq!(DetachKey::NONE.find(b"\x1d"), None);
        assert!("x".parse::<DetachKey>().is_err());
    }

    #[test]
    fn escapes_are_removed_from_pasted_text() {
        assert_eq!(paste("a\x1b[201~\nb"), b"\x1b[200~a[201~\nb\x1b[201~");
    }
}
