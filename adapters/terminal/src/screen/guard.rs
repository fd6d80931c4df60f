//! Filters the program's output before the parser: cuts off strings that never end, and records events the parser does
//! not report.
//!
//! The parser stores the text of an operating system command until its end, however long it is. A program that starts
//! one and never ends it would make us grow without bound, so the part of a command beyond [`MAX_STRING`] is not passed
//! on. Scroll regions and cleared screens are recorded here because the parser has no callback for them.

/// Maximum length of an operating system command that is passed on whole, in bytes.
pub(crate) const MAX_STRING: usize = 4096;
/// Maximum number of bytes of a control sequence's parameters that are examined.
const MAX_PARAMETERS: usize = 32;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum ParserState {
    #[default]
    Ground,
    Escape,
    Control,
    Command {
        length: usize,
    },
}

/// An item passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed<'a> {
    /// Bytes for the parser.
    Bytes(&'a [u8]),
    /// The bytes before this reset the terminal (RIS).
    Reset,
}

/// Filters the bytes of one terminal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    place: ParserState,
    parameters: Vec<u8>,
    /// The first bytes of an incomplete character.
    held: Vec<u8>,
    /// Whether a scroll region smaller than the screen is set.
    pub(crate) scroll_region: bool,
    /// Whether the screen was cleared since this flag was last taken.
    pub(crate) cleared: bool,
}

impl Guard {
    /// Passes on the bytes the parser may receive, and resets of the terminal. A character split across two chunks is
    /// passed on whole: the parser handles invalid characters differently when they arrive in two pieces.
    pub(crate) fn pass(&mut self, bytes: &[u8], mut on: impl FnMut(Passed<'_>)) {
        if self.held.is_empty() {
            self.forward(bytes, &mut on);
        } else {
            let mut whole = std::mem::take(&mut self.held);
            whole.extend_from_slice(bytes);
            self.forward(&whole, &mut on);
        }
    }

    fn forward(&mut self, bytes: &[u8], on: &mut impl FnMut(Passed<'_>)) {
        // The bytes from `from` to the current one are passed on together.
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            match &mut self.place {
                ParserState::Ground => match memchr::memchr(0x1b, &bytes[at..]) {
                    Some(n) => {
                        at += n + 1;
                        self.place = ParserState::Escape;
                    }
                    None => at = bytes.len(),
                },
                ParserState::Escape => {
                    self.escape(bytes[at]);
                    at += 1;
                    if bytes[at - 1] == b'c' {
                        on(Passed::Bytes(&bytes[from..at]));
                        on(Passed::Reset);
                        from = at;
                    }
                }
                ParserState::Control => {
                    self.control(bytes[at]);
                    at += 1;
                }
                ParserState::Command { length } => {
                    let rest = &bytes[at..];
                    let end = rest.iter().position(|b| matches!(b, 0x07 | 0x18 | 0x1a | 0x1b));
                    let text = end.unwrap_or(rest.len());
                    let room = MAX_STRING.saturating_sub(*length);
                    *length = length.saturating_add(text);
                    if text > room {
                        on(Passed::Bytes(&bytes[from..at + room]));
                        from = at + text;
                    }
                    at += text;
                    if end.is_some() {
                        self.place = if bytes[at] == 0x1b { ParserState::Escape } else { ParserState::Ground };
                        at += 1;
                    }
                }
            }
        }
        if self.place == ParserState::Ground {
            let held = begun_character(&bytes[from..]);
            at -= held;
            self.held = bytes[at..].to_vec();
        }
        if from < at {
            on(Passed::Bytes(&bytes[from..at]));
        }
    }

    /// Whether no sequence or character is incomplete.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.place == ParserState::Ground && self.held.is_empty()
    }

    /// Handles missing bytes: any incomplete sequence is dropped.
    pub(crate) fn lost(&mut self) {
        self.place = ParserState::Ground;
        self.held.clear();
    }

    fn escape(&mut self, byte: u8) {
        self.place = match byte {
            b'[' => {
                self.parameters.clear();
                ParserState::Control
            }
            b']' => ParserState::Command { length: 0 },
            // Control characters within a sequence are executed and do not end it.
            0x1b | 0x00..=0x17 | 0x19 | 0x1c..=0x1f | 0x7f => ParserState::Escape,
            b'c' => {
                self.cleared = true;
                self.scroll_region = false;
                ParserState::Ground
            }
            _ => ParserState::Ground,
        };
    }

    fn control(&mut self, byte: u8) {
        match byte {
            0x1b => self.place = ParserState::Escape,
            0x18 | 0x1a => self.place = ParserState::Ground,
            0x20..=0x3f => {
                if self.parameters.len() < MAX_PARAMETERS {
                    self.parameters.push(byte);
                }
            }
            0x40..=0x7e => {
                self.finish(byte);
                self.place = ParserState::Ground;
            }
            0x00..=0x17 | 0x19 | 0x1c..=0x1f | 0x7f..=0xff => {}
        }
    }

    fn finish(&mut self, last: u8) {
        match (last, self.parameters.as_slice()) {
            (b'r', parameters) if parameters.iter().all(|b| b.is_ascii_digit() || *b == b';') => {
                self.scroll_region = parameters.iter().any(u8::is_ascii_digit);
            }
            (b'J', b"2" | b"3") | (b'h' | b'l', b"?1049" | b"?47") => self.cleared = true,
            _ => {}
        }
    }
}

/// The number of bytes at the end that begin an incomplete UTF-8 character.
fn begun_character(bytes: &[u8]) -> usize {
    let continued = bytes.iter().rev().take(3).take_while(|b| (0x80..0xc0).contains(*b)).count();
    let needs = match bytes.len().checked_sub(continued + 1).map(|at| bytes[at]) {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(_) | None => 0,
    };
    if continued + 1 < needs { continued + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(chunks: &[&[u8]]) -> (Vec<u8>, Guard) {
        let (mut guard, mut out) = (Guard::default(), Vec::new());
        for chunk in chunks {
            guard.pass(chunk, |passed| match passed {
                Passed::Bytes(bytes) => out.extend_from_slice(bytes),
                Passed::Reset => out.extend_from_slice(b"<reset>"),
            });
        }
        (out, guard)
    }

    #[test]
    fn ordinary_bytes_pass_unchanged() {
        let bytes = b"a\x1b[31mb\x1b]0;title\x07c\x1bPq;;\x1b\\d\x1b]7501;state=idle\x1b\\e";
        assert_eq!(passed(&[bytes]).0, bytes);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(passed(&single).0, bytes);
    }

    #[test]
    fn a_terminal_reset_is_reported_at_its_position() {
        assert_eq!(passed(&[b"a\x1bcb\x1b(c"]).0, b"a\x1bc<reset>b\x1b(c");
        assert_eq!(passed(&[b"a\x1b", b"cb"]).0, b"a\x1bc<reset>b");
    }

    #[test]
    fn an_unterminated_control_string_is_truncated() {
        let megabyte = vec![b'x'; 1 << 20];
        let (out, _) = passed(&[b"\x1b]0;", &megabyte, &megabyte, b"\x07after"]);
        assert!(out.len() < MAX_STRING + 32, "{}", out.len());
        assert!(out.ends_with(b"\x07after"));
    }

    #[test]
    fn a_control_character_inside_an_escape_does_not_hide_the_string() {
        let megabyte = vec![b'x'; 1 << 20];
        let (out, _) = passed(&[b"\x1b\n]0;", &megabyte]);
        assert!(out.len() < MAX_STRING + 32, "{}", out.len());
    }

    #[test]
    fn scroll_regions_and_cleared_screens_are_noted() {
        assert!(passed(&[b"\x1b[2", b";5r"]).1.scroll_region);
        assert!(!passed(&[b"\x1b[2;5r\x1b[r"]).1.scroll_region);
        assert!(!passed(&[b"\x1b[?2;5r"]).1.scroll_region);
        assert!(passed(&[b"\x1b[2", b"J"]).1.cleared);
        assert!(!passed(&[b"\x1b[0J"]).1.cleared);
    }
}
