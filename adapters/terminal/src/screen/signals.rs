//! The program's messages to its terminal besides text: title, notifications, state, queries, and modes that the parser
//! does not track. Filled by the parser's callbacks; bounded.

use std::collections::BTreeSet;

use vt100::{
    Callbacks, Screen,
    capture::{BasicFormattedCaptureState, RowContents},
};

use super::{grid::ScrolledLines, program_status::ProgramStatus};

/// Maximum length of a title, a notification or a state, in characters.
const MAX_TEXT: usize = 512;
/// Maximum number of calls for attention kept until they are taken.
const MAX_CALLS: usize = 1024;
/// Maximum bytes of replies kept until they are taken.
const MAX_REPLIES: usize = 4096;
/// Private modes that must be undone and that the parser does not track: focus reports, alternate scrolling, further
/// mouse encodings, grapheme widths, colour scheme reports, size reports.
const MODES: [u16; 8] = [1004, 1007, 1015, 1016, 2027, 2031, 2048, 1001];

/// A call for the user's attention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttentionCall {
    /// The bell.
    Bell,
    /// A notification with this text.
    Notification(String),
}

/// Signals received since the terminal started, or since they were last taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScreenSignals {
    /// The title.
    pub(crate) title: Option<String>,
    /// The program's own status (OSC 7501).
    pub(crate) status: ProgramStatus,
    /// Calls for attention not yet taken, in order.
    pub(crate) calls: Vec<AttentionCall>,
    /// Replies to queries, not yet taken.
    pub(crate) replies: Vec<u8>,
    /// Whether a synchronized update (mode 2026) is in progress.
    pub(crate) updating: bool,
    /// The private modes of [`MODES`] that are on.
    pub(crate) modes: BTreeSet<u16>,
    /// Pushed flags of the kitty keyboard protocol, for the main and the alternate screen.
    pub(crate) keyboard: [Vec<u16>; 2],
    /// The level of modifyOtherKeys.
    pub(crate) other_keys: u16,
    /// Whether a character set other than ASCII was selected.
    pub(crate) charset: bool,
    /// The lines that scrolled off the main screen.
    pub(crate) scrolled: ScrolledLines,
    /// An incomplete kitty notification: title and body.
    coming: Option<(String, String)>,
}

impl ScreenSignals {
    fn reply(&mut self, bytes: &[u8]) {
        if self.replies.len() + bytes.len() <= MAX_REPLIES {
            self.replies.extend_from_slice(bytes);
        }
    }

    fn notify(&mut self, text: String) {
        if !text.is_empty() && self.calls.len() < MAX_CALLS {
            self.calls.push(AttentionCall::Notification(text));
        }
    }

    fn mode(&mut self, params: &[&[u16]], on: bool) {
        for mode in params.iter().filter_map(|p| p.first()) {
            if *mode == 2026 {
                self.updating = on;
            } else if MODES.contains(mode) {
                if on {
                    self.modes.insert(*mode);
                } else {
                    self.modes.remove(mode);
                }
            }
        }
    }

    /// Kitty notifications arrive in pieces: `i=1:d=0;Title`, then `i=1:p=body;Body`.
    fn kitty_notification(&mut self, about: &str, text: &str) {
        let field = |name: &str| about.split(':').find_map(|f| f.strip_prefix(name)?.strip_prefix('='));
        let (title, body) = self.coming.get_or_insert_default();
        let part = match field("p").unwrap_or("title") {
            "title" => title,
            "body" => body,
            _ => return,
        };
        let readable = field("e") != Some("1");
        if readable && part.len() < MAX_TEXT {
            part.push_str(text);
        }
        if field("d") != Some("0")
            && let Some((title, body)) = self.coming.take()
        {
            self.notify(joined(&title, &body));
        }
    }
}

/// Title and body as one text.
fn joined(title: &str, body: &str) -> String {
    match (title.is_empty(), body.is_empty()) {
        (false, false) => plain(&format!("{title}: {body}")),
        _ => plain(&format!("{title}{body}")),
    }
}

/// The text without control characters, cut to the maximum length.
fn plain(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

fn text(params: &[&[u8]]) -> String {
    plain(&String::from_utf8_lossy(&params.join(&b';')))
}

impl Callbacks for ScreenSignals {
    fn audible_bell(&mut self, _: &mut Screen) {
        // Several bells before they are taken count as one.
        if !self.calls.contains(&AttentionCall::Bell) && self.calls.len() < MAX_CALLS {
            self.calls.push(AttentionCall::Bell);
        }
    }

    fn on_scroll(&mut self, row: RowContents<'_>, alternate_screen: bool) {
        if alternate_screen {
            return;
        }
        let mut line = String::new();
        // Each line starts with the default colours, so that it can be shown alone.
        if row.write_formatted_basic(&mut line, &mut BasicFormattedCaptureState::new()).is_ok() {
            self.scrolled.push(line);
        }
    }

    fn set_window_title(&mut self, _: &mut Screen, title: &[u8]) {
        self.title = Some(text(&[title]));
    }

    fn unhandled_osc(&mut self, _: &mut Screen, params: &[&[u8]]) {
        match params {
            // A title that contains semicolons.
            [b"0" | b"2", rest @ ..] => self.title = Some(text(rest)),
            // The relay answers this query and does not pass it on.
            [b"7501", b"?"] => {}
            [b"7501", rest @ ..] => self.status.report(&String::from_utf8_lossy(&rest.join(&b';'))),
            [b"133", b"A", ..] => self.status.program_ended(),
            // 9;4 is a progress bar.
            [b"9", b"4", ..] => {}
            [b"9", rest @ ..] => self.notify(text(rest)),
            [b"777", b"notify", title, rest @ ..] => {
                let text = joined(&text(&[title]), &text(rest));
                self.notify(text);
            }
            [b"99", about, rest @ ..] => {
                let (about, text) = (text(&[about]), text(rest));
                self.kitty_notification(&about, &text);
            }
            [b"10", b"?"] => self.reply(b"\x1b]10;rgb:dddd/dddd/dddd\x1b\\"),
            [b"11", b"?"] => self.reply(b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
            _ => {}
        }
    }

    fn unhandled_escape(&mut self, _: &mut Screen, i1: Option<u8>, _: Option<u8>, b: u8) {
        if i1 == Some(b'(') {
            self.charset = b != b'B';
        }
    }

    /// Replies like a plain terminal of the xterm family. Queries for the kitty keyboard protocol get no reply, so that
    /// the program keeps using the keys every terminal has.
    fn unhandled_csi(&mut self, screen: &mut Screen, i1: Option<u8>, i2: Option<u8>, params: &[&[u16]], c: char) {
        let first = params.first().and_then(|p| p.first()).copied().unwrap_or(0);
        let keyboard = &mut self.keyboard[usize::from(screen.alternate_screen())];
        match (i1, i2, c) {
            (None, None, 'n') if first == 6 => {
                let (row, column) = screen.cursor_position();
                self.reply(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes());
            }
            (None, None, 'n') if first == 5 => self.reply(b"\x1b[0n"),
            (None, None, 'c') if first == 0 => self.reply(b"\x1b[?62;22c"),
            (Some(b'>'), None, 'c') if first == 0 => self.reply(b"\x1b[>0;10;1c"),
            (Some(b'>'), None, 'q') if first == 0 => self.reply(b"\x1bP>|capture\x1b\\"),
            (Some(b'?'), Some(b'$'), 'p') => self.reply(format!("\x1b[?{first};0$y").as_bytes()),
            (Some(b'?'), None, 'h') => self.mode(params, true),
            (Some(b'?'), None, 'l') => self.mode(params, false),
            (Some(b'>'), None, 'u') if keyboard.len() < 64 => keyboard.push(first),
            (Some(b'<'), None, 'u') => keyboard.truncate(keyboard.len().saturating_sub(usize::from(first.max(1)))),
            (Some(b'='), None, 'u') => match keyboard.last_mut() {
                Some(flags) => *flags = first,
                None if first != 0 => keyboard.push(first),
                None => {}
            },
            (Some(b'>'), None, 'm') if first == 4 => {
                self.other_keys = params.get(1).and_then(|p| p.first()).copied().unwrap_or(0);
            }
            _ => {}
        }
    }
}
