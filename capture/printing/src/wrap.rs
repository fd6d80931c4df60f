//! Wraps lines of prose that are too wide for the terminal, between words.

use unicode_width::UnicodeWidthStr as _;

/// Indentation below a line whose own indentation would leave little room.
const NARROW: usize = 4;

/// A line wrapped between words if it is wider than `width`; continuation lines are indented by `hang` columns. Without
/// a width it stays one line. Colours take no columns, and a word that is too wide is not broken.
#[must_use]
pub fn wrapped(line: &str, width: Option<usize>, hang: usize) -> String {
    let Some(width) = width.filter(|width| columns(line) > *width) else { return line.to_owned() };
    let hang = if hang > width / 2 { NARROW } else { hang };
    let mut out = String::with_capacity(line.len() + 64);
    let (mut column, mut has_word) = (0, false);
    let mut rest = line;
    while !rest.is_empty() {
        let from = rest.find(|c| c != ' ').unwrap_or(rest.len());
        let end = rest[from..].find(' ').map_or(rest.len(), |length| from + length);
        let (spaces, word) = (&rest[..from], &rest[from..end]);
        let width_of_word = columns(word);
        // A word that fits on no line is not moved.
        if has_word && column + from + width_of_word > width && hang + width_of_word <= width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', hang));
            column = hang + width_of_word;
        } else {
            out += spaces;
            column += from + width_of_word;
        }
        out += word;
        has_word |= !word.is_empty();
        rest = &rest[end..];
    }
    out
}

/// The width of a text on a terminal, without its colours.
fn columns(text: &str) -> usize {
    let mut columns = 0;
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        columns += rest[..at].width();
        rest = rest[at..].find('m').map_or("", |end| &rest[at + end + 1..]);
    }
    columns + rest.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, width: usize, hang: usize, expected: &str) {
        assert_eq!(wrapped(line, Some(width), hang), expected);
    }

    #[test]
    fn a_line_is_wrapped_between_words_with_a_hanging_indent() {
        check("- asks for permission to push", 14, 2, "- asks for\n  permission\n  to push");
        check("  · do it  because it is good", 18, 11, "  · do it  because\n    it is good");
        check("  · do it  it is good now", 22, 11, "  · do it  it is good\n           now");
        check("fits", 4, 0, "fits");
        check("/a/very/long/path and more", 8, 2, "/a/very/long/path\n  and\n  more");
        check("file /a/very/long/path and", 8, 2, "file /a/very/long/path\n  and");
        check("名前 名前", 6, 0, "名前\n名前");
        assert_eq!(wrapped("a b c", None, 2), "a b c", "in a file nothing is broken");
    }

    #[test]
    fn colour_sequences_have_no_width() {
        check("\x1b[1mab cd\x1b[0m ef", 8, 0, "\x1b[1mab cd\x1b[0m ef");
        check("\x1b[1mab cd\x1b[0m ef", 5, 0, "\x1b[1mab cd\x1b[0m\nef");
    }
}
