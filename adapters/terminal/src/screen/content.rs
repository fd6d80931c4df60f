//! Content read from the terminal alone, for a conversation whose files capture does not read: prompts that were typed
//! and seen, newly visible lines, and heartbeats.
//!
//! Nothing is guessed. A prompt is the text typed before Enter, and only if the screen shows it: a password is not
//! echoed, and a line that was edited in its middle is unknown. All memory is bounded.

use std::collections::HashSet;

use events::Timestamp;
use host_protocol::claim::HostEvent;

/// Maximum length of a prompt, bytes.
const PROMPT_BYTES: usize = 4 << 10;
/// Maximum text in one event, bytes.
const TEXT_BYTES: usize = 8 << 10;
/// How long the screen must be unchanged before its text is read, ms.
const QUIET_MS: i64 = 1_500;
/// Minimum time between two heartbeats, ms.
const BEAT_MS: i64 = 60_000;

/// The content seen on one terminal.
#[derive(Debug, Default)]
pub(super) struct TerminalContent {
    typed: TypedLine,
    /// The lines of the screen at the last reading.
    known: HashSet<String>,
    /// When the program last wrote; `None` once the text was read.
    unread_since: Option<Timestamp>,
    beat_at: Option<Timestamp>,
}

/// The line being typed, as reconstructed from its keys.
#[derive(Debug, Default)]
struct TypedLine {
    text: String,
    /// Whether a key with an unknown effect on the line was pressed.
    uncertain: bool,
    pasting: bool,
    /// The beginning of an incomplete sequence or character.
    rest: Vec<u8>,
}

/// A key, or an event that stands for several keys.
enum Key {
    Text(char),
    Enter,
    NewLine,
    Backspace,
    DropWord,
    DropLine,
    Paste(bool),
    /// Types nothing: a focus report, the mouse, or a reply of the terminal.
    Silent,
    Other,
}

impl TerminalContent {
    /// Processes typed bytes. `lines` is the screen. Returns the submitted prompts.
    pub(super) fn input(&mut self, bytes: &[u8], lines: &[String]) -> Vec<HostEvent> {
        let submitted = self.typed.type_bytes(bytes);
        submitted.into_iter().filter(|text| is_seen(text, lines)).map(|text| HostEvent::Prompt { text }).collect()
    }

    /// Discards the typed line because it answered a dialog.
    pub(super) fn forget_typed(&mut self) {
        self.typed = TypedLine::default();
    }

    /// Records output of the program. Returns a heartbeat from time to time.
    pub(super) fn output(&mut self, now: Timestamp) -> Option<HostEvent> {
        self.unread_since = Some(now);
        if self.beat_at.is_some_and(|at| now.since_ms(at) < BEAT_MS) {
            return None;
        }
        // The first output only starts the interval.
        self.beat_at.replace(now).map(|_| HostEvent::Alive)
    }

    /// When the screen must be read next.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.unread_since.map(|at| at.plus_ms(QUIET_MS))
    }

    /// Reads the screen once it is unchanged for long enough. Returns the new lines.
    pub(super) fn advance(&mut self, now: Timestamp, lines: impl FnOnce() -> Vec<String>) -> Option<HostEvent> {
        self.due().filter(|due| *due <= now)?;
        self.unread_since = None;
        let lines = lines();
        let mut text = String::new();
        for line in lines.iter().map(|line| line.trim()) {
            let says_something = line.chars().any(char::is_alphanumeric);
            if says_something && !self.known.contains(line) && text.len() + line.len() < TEXT_BYTES {
                text.push_str(line);
                text.push('\n');
            }
        }
        self.known = lines.iter().map(|line| line.trim().to_owned()).collect();
        text.pop();
        (!text.is_empty()).then_some(HostEvent::Text { text })
    }
}

impl TypedLine {
    /// Processes keys. Returns the lines submitted with Enter whose content is certain.
    fn type_bytes(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut submitted = Vec::new();
        let mut left = std::mem::take(&mut self.rest);
        left.extend_from_slice(bytes);
        let mut at = 0;
        while at < left.len() {
            let Some((key, length)) = key(&left[at..]) else {
                // A lone Esc is the key; anything else continues in the next read.
                match left[at..] {
                    [0x1b] => self.uncertain = true,
                    ref rest if rest.len() < 64 => self.rest = rest.to_vec(),
                    _ => self.uncertain = true,
                }
                break;
            };
            at += length;
            match key {
                Key::Enter if !self.pasting => submitted.extend(self.submit()),
                Key::Enter | Key::NewLine => self.push('\n'),
                Key::Text(char) => self.push(char),
                Key::Backspace => drop(self.text.pop()),
                Key::DropWord => {
                    let kept = self.text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
                    self.text.truncate(kept);
                }
                Key::DropLine => (self.text, self.uncertain) = (String::new(), false),
                Key::Paste(begins) => self.pasting = begins,
                Key::Silent => {}
                Key::Other => self.uncertain = true,
            }
        }
        submitted
    }

    fn push(&mut self, char: char) {
        if self.text.len() < PROMPT_BYTES {
            self.text.push(char);
        }
    }

    fn submit(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        let certain = !std::mem::take(&mut self.uncertain);
        let text = text.trim();
        (certain && !text.is_empty()).then(|| text.to_owned())
    }
}

/// The key at the start of the bytes, and its length; `None` while it is incomplete.
fn key(bytes: &[u8]) -> Option<(Key, usize)> {
    Some(match *bytes.first()? {
        b'\r' => (Key::Enter, 1),
        b'\n' => (Key::NewLine, 1),
        0x7f | 0x08 => (Key::Backspace, 1),
        0x17 => (Key::DropWord, 1),
        // Ctrl-C, Ctrl-U.
        0x03 | 0x15 => (Key::DropLine, 1),
        0x1b => return sequence(bytes),
        0x00..=0x1f => (Key::Other, 1),
        first => {
            let length = match first {
                0x20..=0x7e => 1,
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => return Some((Key::Other, 1)),
            };
            let whole = bytes.get(..length)?;
            match std::str::from_utf8(whole).ok().and_then(|text| text.chars().next()) {
                Some(char) => (Key::Text(char), length),
                None => (Key::Other, 1),
            }
        }
    })
}

/// A key that begins with Esc, or a reply of the terminal.
fn sequence(bytes: &[u8]) -> Option<(Key, usize)> {
    let end_of = |from: usize, ends: fn(u8) -> bool| Some(bytes.iter().skip(from).position(|b| ends(*b))? + from + 1);
    match *bytes.get(1)? {
        b'[' => {
            let end = end_of(2, |b| (0x40..=0x7e).contains(&b))?;
            let key = match &bytes[2..end] {
                b"200~" => Key::Paste(true),
                b"201~" => Key::Paste(false),
                b"I" | b"O" => Key::Silent,
                [b'<' | b'?', ..] => Key::Silent,
                [.., b'R' | b'c' | b'n' | b't' | b'y'] => Key::Silent,
                _ => Key::Other,
            };
            Some((key, end))
        }
        b']' | b'P' | b'_' => {
            let end = end_of(2, |b| b == 0x07 || b == b'\\')?;
            Some((Key::Silent, end))
        }
        b'O' => Some((Key::Other, bytes.get(..3)?.len())),
        b'\r' => Some((Key::NewLine, 2)),
        _ => Some((Key::Other, 2)),
    }
}

/// Whether the screen shows the typed text, ignoring wrapping and frames.
fn is_seen(text: &str, lines: &[String]) -> bool {
    let bare = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    // A long prompt may have scrolled out of its input line, so only its end is compared.
    let last = text.lines().last().unwrap_or_default();
    let typed = bare(last);
    let end: String = typed.chars().skip(typed.chars().count().saturating_sub(60)).collect();
    if end.is_empty() {
        return lines.iter().any(|line| line.contains(last.trim()));
    }
    bare(&lines.concat()).contains(&end)
}

#[cfg(test)]
mod tests;
