//! The meaning of typed bytes for an open dialog. Other typed bytes are ignored.

use super::dialog::DialogReading;

/// A key that may matter to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DialogKey {
    Enter,
    Escape,
    /// The cursor may have moved.
    Move,
    Letter(char),
}

/// The keys in these bytes. Reports of the terminal (mouse, focus, replies) are not keys.
fn keys(bytes: &[u8]) -> Vec<DialogKey> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\r' | b'\n' => keys.push(DialogKey::Enter),
            b'\t' => keys.push(DialogKey::Move),
            0x1b => match after.first() {
                None | Some(0x1b) => keys.push(DialogKey::Escape),
                Some(b'[' | b'O') => {
                    let end =
                        after.iter().skip(1).position(|b| (0x40..=0x7e).contains(b)).map_or(after.len(), |n| n + 2);
                    keys.extend(sequence(&after[1..end]));
                    rest = &after[end..];
                }
                Some(b']' | b'P' | b'_') => {
                    let end = after.iter().position(|b| matches!(b, 0x07 | 0x1b)).unwrap_or(after.len());
                    // The terminator includes its backslash.
                    let backslash = usize::from(after.get(end) == Some(&0x1b)) + 1;
                    rest = after.get(end + backslash..).unwrap_or_default();
                }
                Some(_) => rest = &after[1..],
            },
            0x21..=0x7e => keys.push(DialogKey::Letter(char::from(byte))),
            _ => {}
        }
    }
    keys
}

/// The key of a control sequence, given the bytes after its introducer.
fn sequence(body: &[u8]) -> Option<DialogKey> {
    match body {
        b"A" | b"B" | b"C" | b"D" | b"Z" | b"H" | b"F" | b"5~" | b"6~" => Some(DialogKey::Move),
        // The kitty keyboard protocol.
        b"13u" | b"13;1u" | b"13;1:1u" => Some(DialogKey::Enter),
        b"27u" | b"27;1u" | b"27;1:1u" => Some(DialogKey::Escape),
        _ => None,
    }
}

/// The meaning of the first of these keys that answers the dialog; `moved` says whether the cursor may have left its
/// position on the screen last read, and is updated.
pub(crate) fn meaning(reading: &DialogReading, bytes: &[u8], moved: &mut bool) -> Option<String> {
    let options = &reading.dialog.options;
    let by_key = |key: &str| {
        reading
            .keys
            .iter()
            .position(|keys| keys.iter().any(|k| k.eq_ignore_ascii_case(key)))
            .map(|at| options[at].label.clone())
    };
    for key in keys(bytes) {
        match key {
            DialogKey::Move => *moved = true,
            DialogKey::Escape => return Some(by_key("esc").unwrap_or_else(|| "esc".to_owned())),
            DialogKey::Enter => {
                let selected = options.iter().find(|o| o.selected && !*moved);
                return Some(selected.map_or_else(|| "enter".to_owned(), |o| o.label.clone()));
            }
            DialogKey::Letter(c) => {
                if let Some(label) = by_key(c.encode_utf8(&mut [0; 4])) {
                    return Some(label);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use events::{Choice, Dialog};

    use super::*;

    fn check(typed: &[u8], expected: Option<&str>) {
        let option = |label: &str, selected| Choice { label: label.into(), selected, ..Choice::default() };
        let reading = DialogReading {
            dialog: Dialog { options: vec![option("Yes", true), option("No", false)], ..Dialog::default() },
            keys: vec![vec!["y".into(), "1".into()], vec!["esc".into()]],
            ..DialogReading::default()
        };
        assert_eq!(meaning(&reading, typed, &mut false).as_deref(), expected, "{typed:?}");
    }

    #[test]
    fn option_keys_are_read_as_answers() {
        check(b"\r", Some("Yes"));
        check(b"y", Some("Yes"));
        check(b"1", Some("Yes"));
        check(b"\x1b", Some("No"));
        check(b"\x1b[27u", Some("No"));
        check(b"\x1b[13u", Some("Yes"));
    }

    #[test]
    fn other_keys_and_terminal_reports_are_not_answers() {
        check(b"x", None);
        check(b"\x1b[B", None);
        check(b"\x1b[I\x1b[<35;10;20M\x1b[?62;22c\x1b[3;1R", None);
        check(b"\x1b]11;rgb:0000/0000/0000\x1b\\", None);
        check(b"\x1bx", None);
    }

    #[test]
    fn enter_after_a_cursor_move_names_no_option() {
        check(b"\x1b[B\r", Some("enter"));
    }
}
