//! Text for a model: without secrets and terminal sequences, and bounded in length.

use secrets::{FoundSecret, Redactor};

/// The parts removed from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Removed {
    /// Number of masked secrets.
    pub(crate) masked: usize,
    /// Number of removed characters and sequences.
    pub(crate) removed: usize,
}

impl std::ops::AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        self.masked += other.masked;
        self.removed += other.removed;
    }
}

/// Replaces a text if the rules for secrets cannot be read.
const WITHHELD: &str = "[withheld: the rules for secrets cannot be read]";

/// A text without secrets and without control sequences.
pub(crate) fn clean(bytes: &[u8]) -> (String, Removed) {
    let (text, removed) = plain(&String::from_utf8_lossy(bytes));
    let Some(redactor) = secrets::shared() else { return (WITHHELD.to_owned(), Removed::default()) };
    let redacted = redactor.redact(&text);
    let masked = redacted.found.len();
    (redacted.text.into_owned(), Removed { masked, removed })
}

/// A text for the user: without secrets, with all other characters.
pub(crate) fn without_secrets(text: &str) -> String {
    secrets::shared().map_or_else(|| WITHHELD.to_owned(), |redactor| redactor.redact(text).text.into_owned())
}

/// A message of the user without secrets, and the number of secrets that were replaced.
#[must_use]
pub fn masked(text: &str) -> (String, usize) {
    let Some(redactor) = secrets::shared() else { return (WITHHELD.to_owned(), 1) };
    let redacted = redactor.redact(text);
    (redacted.text.to_string(), redacted.found.len())
}

/// The secrets in bytes; `None` if the rules cannot be read.
pub(crate) fn secrets(bytes: &[u8]) -> Option<Vec<FoundSecret>> {
    secrets::shared().map(|redactor: &Redactor| redactor.redact_bytes(bytes).found)
}

/// A text without terminal sequences, and the number of characters or sequences removed.
pub(crate) fn plain(text: &str) -> (String, usize) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return (text.to_owned(), 0);
    }
    let mut out = String::with_capacity(text.len());
    let mut removed = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        rest = match c {
            '\n' | '\t' => {
                out.push(c);
                behind
            }
            // A CRLF, or a return to the start of the line.
            '\r' => {
                if !behind.starts_with('\n') {
                    out.push('\n');
                }
                behind
            }
            '\u{1b}' => {
                removed += 1;
                after_escape(behind)
            }
            '\u{9b}' => {
                removed += 1;
                after_control(behind)
            }
            _ if misleads(c) => {
                removed += 1;
                behind
            }
            _ => {
                out.push(c);
                behind
            }
        };
    }
    (out, removed)
}

/// Whether a character is invisible and changes how the text around it is read or displayed.
const fn misleads(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks, embeddings and isolates of the bidirectional algorithm.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Tags, which can hide a text in another text.
        | '\u{e0000}'..='\u{e007f}')
}

/// The rest of a text after an escape sequence whose ESC was already consumed.
fn after_escape(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') => after_control(chars.as_str()),
        // Strings end with BEL or ESC \; of an unterminated one, only the first character is removed.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let body = chars.as_str();
            let end = body.char_indices().take(4096).find(|(_, c)| matches!(c, '\u{7}' | '\u{1b}' | '\n' | '\u{9c}'));
            match end {
                Some((at, '\n')) => &body[at..],
                Some((at, '\u{1b}')) => body[at + 1..].strip_prefix('\\').unwrap_or(&body[at..]),
                Some((at, c)) => &body[at + c.len_utf8()..],
                None => body,
            }
        }
        Some(' '..='/') => {
            chars.next();
            chars.as_str()
        }
        Some('0'..='~') => chars.as_str(),
        Some(_) | None => text,
    }
}

/// The rest of a text after a control sequence whose introducer was already consumed.
fn after_control(text: &str) -> &str {
    let body = text.trim_start_matches(|c: char| matches!(c, ' '..='?'));
    body.strip_prefix(|c: char| matches!(c, '@'..='~')).unwrap_or(body)
}

/// The first characters of a line, with a note if it is longer.
pub(crate) fn cut_line(line: &str, most: usize) -> std::borrow::Cow<'_, str> {
    match line.char_indices().nth(most) {
        None => line.into(),
        Some((at, _)) => format!("{}… [line cut: {} characters]", &line[..at], line.chars().count()).into(),
    }
}

/// At most the first `most` bytes of a text, ending at a character boundary.
pub(crate) fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// At most the last `most` bytes of a text, starting at a character boundary.
pub(crate) fn last_bytes(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_and_invisible_characters_are_removed() {
        let check = |text: &str, plain_text: &str, count: usize| {
            assert_eq!(plain(text), (plain_text.to_owned(), count), "{text:?}");
        };
        check("plain\ttext\né 日本 🚀 👩‍👩‍👧\n", "plain\ttext\né 日本 🚀 👩‍👩‍👧\n", 0);
        check("\u{1b}[1;31mred\u{1b}[0m", "red", 2);
        check("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "xlink", 3);
        check("\u{1b}]52;c;never ends\nnext", "\nnext", 1);
        check("\u{1b}(Bx\u{1b}=y\u{9b}2Jz", "xyz", 3);
        check("10%\r20%\r\ndone", "10%\n20%\ndone", 0);
        check("a\u{202e}b\u{2066}c\u{e0041}d\0e\u{7f}", "abcde", 5);
        check("\u{1b}", "", 1);
    }

    #[test]
    fn secrets_in_text_are_masked_despite_color_sequences() {
        let key = "AKIAQ3EGUVT5XB2N7WKM";
        let (text, removed) = clean(format!("aws_access_key_id = {key}\n").as_bytes());
        assert!(!text.contains(key) && text.contains("[redacted:"), "{text}");
        assert!(removed.masked >= 1);
        // Colour sequences do not hide a secret.
        let (text, _) = clean(format!("key: \u{1b}[1m{}\u{1b}[0m{}", &key[..9], &key[9..]).as_bytes());
        assert!(!text.contains("EGUVT5XB2N7WKM"), "{text}");
    }

    #[test]
    fn truncation_never_splits_a_character() {
        assert_eq!(first_bytes("aéb", 2), "a");
        assert_eq!(last_bytes("aéb", 2), "b");
        assert_eq!(cut_line("abc", 3), "abc");
        assert_eq!(cut_line("abcd", 3), "abc… [line cut: 4 characters]");
    }
}
