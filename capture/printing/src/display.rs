//! Makes text safe to show on any terminal and in any page, and reports hidden characters.

use events::visible;
use serde::Serialize;

/// A text that is safe to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DisplayText {
    /// The text, with characters that would be invisible or misleading escaped (`\u{202e}`). Nothing is cut.
    pub text: String,
    /// Number of characters in the original.
    pub length: usize,
    /// Number of escaped characters.
    pub hidden: usize,
    /// Number of non-ASCII characters, escaped or not.
    pub non_ascii: usize,
}

/// Makes a text safe to show. Newlines and tabs are kept.
#[must_use]
pub fn show(text: &str) -> DisplayText {
    let mut shown = DisplayText { text: String::with_capacity(text.len()), length: 0, hidden: 0, non_ascii: 0 };
    for c in text.chars() {
        shown.length += 1;
        shown.non_ascii += usize::from(!c.is_ascii());
        if visible::shows(c) || matches!(c, '\n' | '\t') {
            shown.text.push(c);
        } else {
            shown.hidden += 1;
            shown.text.extend(c.escape_unicode());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shown: &str, hidden: usize, non_ascii: usize) {
        let found = show(text);
        assert_eq!((found.text.as_str(), found.hidden, found.non_ascii), (shown, hidden, non_ascii), "{text:?}");
        assert_eq!(found.length, text.chars().count());
    }

    #[test]
    fn printable_text_is_unchanged() {
        check("ls -la\n\tx", "ls -la\n\tx", 0, 0);
        check("日本 é", "日本 é", 0, 3);
    }

    #[test]
    fn hidden_characters_are_shown_as_escapes() {
        check("a\rb", "a\\u{d}b", 1, 0);
        check("\u{1b}[31m\u{7f}\u{9b}", "\\u{1b}[31m\\u{7f}\\u{9b}", 3, 1);
        check("# \u{202e}ls\u{202c}", "# \\u{202e}ls\\u{202c}", 2, 2);
        check(
            "a\u{200b}\u{feff}\u{2028}\u{2029}\u{e000}\u{378}\u{a0}",
            "a\\u{200b}\\u{feff}\\u{2028}\\u{2029}\\u{e000}\\u{378}\\u{a0}",
            7,
            7,
        );
        check("\u{e0041}\u{3164}\u{fe0f}", "\\u{e0041}\\u{3164}\\u{fe0f}", 3, 3);
    }

    proptest::proptest! {
        #[test]
        fn no_control_character_remains_in_shown_text(text: String) {
            let shown = show(&text);
            proptest::prop_assert_eq!(shown.length, text.chars().count());
            proptest::prop_assert!(shown.text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }
    }
}
