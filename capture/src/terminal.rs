//! What may be shown on a terminal: text of agents and files is untrusted, and an escape sequence
//! in a title must not move the cursor, nor a right-to-left mark turn a command round.

/// The text with everything that does not print, or prints something else than it is, escaped.
#[must_use]
pub fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_graphic() || c == ' ' || !c.is_ascii() && prints(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_debug());
        }
    }
    shown
}

/// Lines that are safe each.
#[must_use]
pub fn safe_lines(text: &str) -> String {
    text.lines().flat_map(|line| [safe(line), "\n".to_owned()]).collect()
}

fn prints(c: char) -> bool {
    // Combining marks print together with what stands before them; alone they are escaped, so
    // they are asked about behind a letter.
    let mut escaped = [b'a'; 5];
    let text = c.encode_utf8(&mut escaped[1..]).len();
    std::str::from_utf8(&escaped[..=text]).is_ok_and(|pair| pair.escape_debug().eq(pair.chars()))
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn what_does_not_print_is_escaped() {
        assert_eq!(safe("plain \"text\" \\ 日本語 é e\u{301} 🚀"), "plain \"text\" \\ 日本語 é e\u{301} 🚀");
        assert_eq!(safe("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(safe("\u{202e}abc"), "\\u{202e}abc");
        assert_eq!(safe("a\u{200b}b\u{2028}c\u{feff}"), "a\\u{200b}b\\u{2028}c\\u{feff}");
        assert_eq!(safe("\u{e000}\u{9b}\x7f\n"), "\\u{e000}\\u{9b}\\u{7f}\\n");
    }
}
