//! Shortens text to one line.

/// The text as one line of at most `limit` characters; white space runs become one space, a cut
/// is marked with `…`.
#[must_use]
pub fn one_line(text: &str, limit: usize) -> String {
    // Only the start matters: what a long text holds beyond it is never looked at.
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

/// The text as it is, or of one longer than `limit` bytes its first three quarters and the rest of its end, with `…`
/// between them.
#[must_use]
pub fn both_ends(text: &str, limit: usize) -> String {
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
    fn one_line_of_text() {
        assert_eq!(one_line("  a\n\tb  c ", 20), "a b c");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("abcdef g", 6), "abcde…");
        assert_eq!(one_line("abcde fg", 6), "abcde…");
        assert_eq!(one_line("日本語のテスト", 4), "日本語…");
        assert_eq!(one_line("日本語の テスト", 4), "日本語…");
        assert_eq!(one_line("日本語の", 4), "日本語の");
        assert_eq!(one_line("ab", 0), "…");
        assert_eq!(one_line("", 4), "");
    }

    #[test]
    fn the_ends_of_a_text() {
        assert_eq!(both_ends(" abc ", 9), "abc");
        assert_eq!(both_ends("abcdefghijklm", 8), "abcdef…lm");
        assert_eq!(both_ends("日本語日本語", 16), "日本語日…語");
    }

    proptest::proptest! {
        #[test]
        fn the_ends_are_those_of_the_text(text in "[^…]{0,60}", limit in 0_usize..60) {
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
