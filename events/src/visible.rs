//! Determines which characters of a text are visible, because agents may hide something in a text.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Whether a character is displayed as itself; a newline and a tab are not.
#[must_use]
pub fn shows(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_graphic() || c == ' ';
    }
    let unseen = matches!(
        c.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned
    );
    !unseen && !is_blank(c)
}

/// Letters and marks that are displayed as nothing: fillers of Hangul and Khmer, variation selectors, the blank Braille
/// pattern.
const fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests {
    use super::shows;

    #[test]
    fn control_and_invisible_characters_are_not_shown_literally() {
        assert!("plain é 日本 🚀".chars().all(shows));
        assert!(
            !"\n\t\u{1b}\u{7f}\u{9b}\u{200b}\u{202e}\u{2028}\u{a0}\u{e000}\u{fe0f}\u{3164}\u{2800}".chars().any(shows)
        );
    }
}
