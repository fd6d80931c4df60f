//! Characters that are not printed, or that change how the text around them is displayed.

use std::fmt::Write as _;

/// Whether a character is not printed, or changes how others are displayed.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}' | '\u{fff9}'..='\u{fffb}')
}

/// A line with these characters as escapes (`\u{1b}`); tabs are kept.
pub(crate) fn escaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        push_escaped(c, &mut out);
    }
    out
}

/// Appends a character, or its escape if it is unseen and not a tab.
pub(crate) fn push_escaped(c: char, out: &mut String) {
    if c != '\t' && is_unseen(c) {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}
