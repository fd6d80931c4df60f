//! Makes foreign text safe to display: no hidden, reordered or control characters.

use events::visible::shows;

/// Maximum number of characters of a title.
pub const TITLE_CHARS: usize = 120;
/// Maximum number of characters of a body.
pub const BODY_CHARS: usize = 1_000;
/// Maximum number of characters of a name (session, project, kind).
pub const NAME_CHARS: usize = 60;

/// Makes a text of several lines safe to display. Characters that would not be displayed as themselves become escapes
/// (`\u{202e}`); `\r\n` becomes a newline, and a tab becomes a space. A text longer than `cap` characters is cut and
/// ends in `…`.
#[must_use]
pub fn lines(text: &str, cap: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(cap * 4));
    let mut used = 0;
    let mut chars = text.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\r' && chars.peek() == Some(&'\n') {
            continue;
        }
        let piece = match c {
            '\n' => "\n".to_owned(),
            '\t' => " ".to_owned(),
            c if shows(c) => c.to_string(),
            c => c.escape_unicode().to_string(),
        };
        let length = piece.chars().count();
        let last = chars.peek().is_none();
        if used + length > cap || (used + length == cap && !last) {
            // An escape is never cut in the middle, because half of one could be misread.
            shown.push('…');
            return shown;
        }
        used += length;
        shown.push_str(&piece);
    }
    shown
}

/// Makes a text safe to display on one line: like [`lines`], with spaces instead of newlines.
#[must_use]
pub fn line(text: &str, cap: usize) -> String {
    let flat: String = text
        .trim()
        .chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c => c,
        })
        .collect();
    lines(&flat, cap)
}

/// Cuts a displayable text to `cap` characters; it ends in `…` if something was removed.
#[must_use]
pub fn cut(text: &str, cap: usize) -> String {
    if text.chars().count() <= cap {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(cap.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// An address in a form that may be passed on: `http` or `https`, without user and password, and short.
#[must_use]
pub fn link(address: &str) -> Option<String> {
    const LINK_BYTES: usize = 2_000;
    let url = url::Url::parse(address).ok()?;
    let plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    let text = String::from(url);
    (plain && text.len() <= LINK_BYTES && text.is_ascii()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, cap: usize, shown: &str) {
        assert_eq!(lines(text, cap), shown, "{text:?}");
    }

    #[test]
    fn printable_text_is_kept_unchanged() {
        check("ls -la\n日本 é", 100, "ls -la\n日本 é");
        check("a\r\nb\tc\n", 100, "a\nb c");
        assert_eq!(line(" a\nb ", 9), "a b");
    }

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        check("a\u{1b}]52;c;x\u{7}b", 100, "a\\u{1b}]52;c;x\\u{7}b");
        check(
            "\u{202e}gpj\u{200b}\u{feff}\u{9b}31m\u{e0041}",
            100,
            "\\u{202e}gpj\\u{200b}\\u{feff}\\u{9b}31m\\u{e0041}",
        );
        check("a\rb", 100, "a\\u{d}b");
    }

    #[test]
    fn text_is_truncated_by_characters_without_splitting_an_escape() {
        check("abcd", 4, "abcd");
        check("abcde", 4, "abc…");
        check("日本語日", 3, "日本…");
        check("abc\u{202e}", 6, "abc…");
        assert_eq!(cut("abcde", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }

    #[test]
    fn only_web_links_without_credentials_are_kept() {
        assert_eq!(link("http://127.0.0.1:1/s/1").as_deref(), Some("http://127.0.0.1:1/s/1"));
        assert_eq!(link("javascript:alert(1)"), None);
        assert_eq!(link("https://user:pw@host/"), None);
        assert_eq!(link("https://h/\u{202e}").as_deref(), Some("https://h/%E2%80%AE"));
    }
}
