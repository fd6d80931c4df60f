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

/// The end of a text, whole lines kept, at most `limit` bytes.
#[must_use]
pub fn ending(text: &str, limit: usize) -> String {
    let text = text.trim();
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut start = text.len() - limit;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    format!("…{}", &text[start..])
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
    fn the_end_of_a_text() {
        assert_eq!(ending(" abc ", 9), "abc");
        assert_eq!(ending("日本語", 4), "…語");
    }
}
