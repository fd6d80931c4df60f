use super::*;

#[test]
fn unprintable_characters_are_escaped() {
    assert_eq!(safe("plain \"text\" \\ 日本語 é e\u{301} 🚀"), "plain \"text\" \\ 日本語 é e\u{301} 🚀");
    assert_eq!(safe("a\x1b[31mb"), "a\\u{1b}[31mb");
    assert_eq!(safe("\u{202e}abc"), "\\u{202e}abc");
    assert_eq!(safe("a\u{200b}b\u{2028}c\u{feff}"), "a\\u{200b}b\\u{2028}c\\u{feff}");
    assert_eq!(safe("\u{e000}\u{9b}\x7f\n"), "\\u{e000}\\u{9b}\\u{7f}\\n");
}

/// All characters that must not reach a terminal: C0, DEL, C1, format characters, separators, private and unassigned
/// ones.
fn hostile() -> Vec<char> {
    let controls = (0..0x20_u32).chain(0x7f..0xa0).filter_map(char::from_u32).filter(|c| !matches!(c, '\n' | '\t'));
    let formats =
        ['\u{ad}', '\u{600}', '\u{61c}', '\u{180e}', '\u{200b}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202a}'];
    let more = [
        '\u{202b}',
        '\u{202c}',
        '\u{202d}',
        '\u{202e}',
        '\u{2028}',
        '\u{2029}',
        '\u{2060}',
        '\u{2066}',
        '\u{2067}',
        '\u{2068}',
        '\u{2069}',
        '\u{206f}',
        '\u{feff}',
        '\u{fff9}',
        '\u{e0001}',
        '\u{e007f}',
        '\u{e000}',
        '\u{f8ff}',
        '\u{f0000}',
        '\u{10fffd}',
        '\u{378}',
        '\u{ffff}',
        '\u{1d173}',
    ];
    controls.chain(formats).chain(more).collect()
}

#[test]
fn hostile_characters_are_escaped_in_every_output() {
    for c in hostile() {
        let text = format!("a{c}b");
        assert!(!safe(&text).contains(c), "{c:?}");
        assert!(!on_terminal(&text).contains(c), "{c:?}");
        let json = serde_json::to_string(&text).unwrap();
        let escaped = safe_json(&json);
        assert!(!escaped.contains(c), "{c:?}: {escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }
    let json = serde_json::to_string("日本語 é 🚀 \"\\\n").unwrap();
    assert!(matches!(safe_json(&json), Cow::Borrowed(same) if same == json));
}

#[test]
fn only_known_colour_sequences_reach_the_terminal() {
    for ours in ["\x1b[0m", "\x1b[1;31m", "\x1b[2m", "\x1b[32m", "\x1b[38;5;10m", "\x1b[39m", "\x1b[4m", "\x1b[91m"] {
        assert_eq!(on_terminal(&format!("a{ours}b\n\tc")), format!("a{ours}b\n\tc"));
    }
    for hostile in [
        "\x1b[8m",
        "\x1b[7m",
        "\x1b[5m",
        "\x1b[30m",
        "\x1b[40m",
        "\x1b[48;5;1m",
        "\x1b[38;5;0m",
        "\x1b[38;2;0;0;0m",
        "\x1b[m",
        "\x1b[1;8m",
        "\x1b[031m",
        "\x1b[+1m",
        "\x1b[2J",
        "\x1b[6n",
        "\x1b]0;x\x07",
        "\x1b]52;c;eA==\x1b\\",
        "\x1bPq\x1b\\",
        "\x1b",
        "\x1b[",
        "\x1b[31",
        "\x1b[3\x1b[1m1m",
    ] {
        let shown = on_terminal(hostile);
        assert!(shown.starts_with("\\u{1b}"), "{hostile:?}: {shown:?}");
    }
}

fn screen(escapes: bool) -> Screen<Vec<u8>> {
    Screen { to: Vec::new(), escapes, colours: Colours::Pass, line: Vec::new(), gone: None }
}

#[test]
fn a_screen_escapes_text_however_it_is_split() {
    let text = "\x1b[1;31mred\x1b[0m é\u{9b}日\u{202e}\x07\nlast \x1b[2J line".as_bytes();
    let expected = "\x1b[1;31mred\x1b[0m é\\u{9b}日\\u{202e}\\u{7}\nlast \\u{1b}[2J line";
    for size in 1..text.len() {
        let mut screen = screen(true);
        for piece in text.chunks(size) {
            screen.write_all(piece).unwrap();
        }
        screen.flush().unwrap();
        assert_eq!(String::from_utf8(screen.to.clone()).unwrap(), expected, "{size}");
    }
    let mut plain = screen(true).without_colours();
    plain.write_all(b"\x1b[1;31mred\x1b[0m\n").unwrap();
    assert_eq!(plain.to, b"\\u{1b}[1;31mred\\u{1b}[0m\n");
    let mut data = screen(false);
    data.write_all(text).unwrap();
    assert_eq!(data.to.as_slice(), text);
}

#[test]
fn a_screen_escapes_invalid_utf8_and_bounds_its_line_buffer() {
    let mut screen = screen(true);
    screen.write_all(b"a\x9b31m\xff\n").unwrap();
    assert_eq!(screen.to, b"a\\x9b31m\\xff\n");
    screen.to.clear();
    let long = "é".repeat(LINE_BYTES);
    for piece in long.as_bytes().chunks(7) {
        screen.write_all(piece).unwrap();
    }
    assert!(screen.to.len() > LINE_BYTES && screen.line.len() <= LINE_BYTES);
    screen.flush().unwrap();
    assert_eq!(screen.to, long.as_bytes());
    screen.to.clear();
    write!(screen, "text").unwrap();
    screen.control("\x1b[K\r\n").unwrap();
    assert_eq!(screen.to, b"text\x1b[K\r\n");
}

#[test]
fn an_error_message_is_wrapped_between_words_and_keeps_its_lines() {
    let text = "error: one two three\n  [possible values: one, two]\n\nUsage: x\n";
    assert_eq!(
        error_prose(text, Some(16)),
        "error: one two\n  three\n  [possible\n    values: one,\n    two]\n\nUsage: x\n"
    );
    assert_eq!(error_prose(text, None), text);
}
