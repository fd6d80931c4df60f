//! Shortens texts for people, without their secrets.
//!
//! A rule recognizes a secret by its surroundings: a command, a line break, the beginning of a key. Therefore secrets
//! are removed from the whole text first, and only then is it cut, joined to one line or formatted. [`Shown`] is the
//! only way from a text to a shorter one. [`verbatim_line`] is for texts that are not displayed, and for texts that a
//! person has to see unchanged.

use std::borrow::Cow;

/// Replaces every text while the rules for secrets cannot be read.
const UNREADABLE: &str = "[redacted:rules-unavailable]";

/// A text without secrets, which may be shortened and formatted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown<'a>(Cow<'a, str>);

impl<'a> Shown<'a> {
    /// Removes the secrets from a whole text.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Self(secrets::shared().map_or(Cow::Borrowed(UNREADABLE), |rules| rules.redact(text).text))
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text as one line of at most `limit` characters, like [`verbatim_line`].
    #[must_use]
    pub fn one_line(&self, limit: usize) -> String {
        verbatim_line(&self.0, limit)
    }

    /// The whole text, or for a text longer than `limit` bytes its beginning and end (three quarters and one quarter of
    /// `limit`), with `…` between them.
    #[must_use]
    pub fn both_ends(&self, limit: usize) -> String {
        both_ends(&self.0, limit)
    }
}

/// The text without secrets, as one line of at most `limit` characters.
#[must_use]
pub fn one_line(text: &str, limit: usize) -> String {
    Shown::of(text).one_line(limit)
}

/// The text as one line of at most `limit` characters, with its secrets. Runs of white space become one space, and a
/// cut is marked with `…`. For texts that are compared, that are already redacted, or that a person decides about.
#[must_use]
pub fn verbatim_line(text: &str, limit: usize) -> String {
    // The loop ends at the limit, so the rest of a long text is never read.
    let mut line = String::with_capacity(limit.min(text.len()) + 4);
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 {
            if length == limit {
                line.pop();
                line.push('…');
                return line;
            }
            line.push(' ');
            length += 1;
        }
        let room = limit - length;
        let end = if word.is_ascii() {
            (word.len() > room).then_some(room)
        } else {
            word.char_indices().nth(room).map(|(end, _)| end)
        };
        if let Some(end) = end {
            line.push_str(&word[..end]);
            line.pop();
            line.push('…');
            return line;
        }
        line.push_str(word);
        length += if word.is_ascii() { word.len() } else { word.chars().count() };
    }
    line
}

fn both_ends(text: &str, limit: usize) -> String {
    let text = text.trim();
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - limit / 4);
    format!("{}…{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_collapsed_to_one_line_and_truncated() {
        assert_eq!(verbatim_line("  a\n\tb  c ", 20), "a b c");
        assert_eq!(verbatim_line("abcdef", 6), "abcdef");
        assert_eq!(verbatim_line("abcdefg", 6), "abcde…");
        assert_eq!(verbatim_line("abcdef g", 6), "abcde…");
        assert_eq!(verbatim_line("abcde fg", 6), "abcde…");
        assert_eq!(verbatim_line("日本語のテスト", 4), "日本語…");
        assert_eq!(verbatim_line("日本語の テスト", 4), "日本語…");
        assert_eq!(verbatim_line("日本語の", 4), "日本語の");
        assert_eq!(verbatim_line("ab", 0), "…");
        assert_eq!(verbatim_line("", 4), "");
    }

    #[test]
    fn secrets_are_redacted_before_the_text_is_truncated() {
        let (secret, rest) = ("q7Rk2mZp9Lw4TfVb", "x".repeat(200));
        for limit in 0..60 {
            for text in [
                format!("echo {secret} | sudo -S ls {rest}"),
                format!("echo \"root:{secret}\" | chpasswd {rest}"),
                format!("-----BEGIN EC PRIVATE KEY-----\n{secret}{secret}{secret}{secret}\n{secret}{secret}{secret}\n"),
            ] {
                let line = one_line(&text, limit);
                let ends = Shown::of(&text).both_ends(limit);
                assert!(!line.contains("q7R") && !ends.contains("q7R"), "{line} {ends}");
            }
        }
    }

    #[test]
    fn a_long_text_is_shortened_in_the_middle() {
        assert_eq!(both_ends(" abc ", 9), "abc");
        assert_eq!(both_ends("abcdefghijklm", 8), "abcdef…lm");
        assert_eq!(both_ends("日本語日本語", 16), "日本語日…語");
    }

    proptest::proptest! {
        #[test]
        fn a_shortened_text_keeps_its_beginning_and_end(text in "[^…]{0,60}", limit in 0_usize..60) {
            let (text, cut) = (text.trim(), both_ends(&text, limit));
            match cut.split_once('…') {
                None => proptest::prop_assert!(cut == text && text.len() <= limit),
                Some((head, tail)) => proptest::prop_assert!(
                    text.starts_with(head) && text.ends_with(tail) && head.len() + tail.len() <= limit
                ),
            }
        }
    }
}
