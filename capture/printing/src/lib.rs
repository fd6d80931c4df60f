//! Standard output and standard error, with untrusted text escaped: a title must not move the cursor with an escape
//! sequence, nor reverse a command with a right-to-left mark.
//!
//! Commands escape each untrusted text when they insert it into a line ([`safe`]). Text they miss is escaped on its way
//! to the terminal ([`stdout`], [`stderr`]), which passes only our own colour sequences. Output to a pipe or a file is
//! data and is not changed; JSON is always escaped ([`safe_json`]), which does not change its value.

pub mod asked;
pub mod display;
pub mod markdown;
mod pager;
pub mod style;
mod wrap;

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, IsTerminal, StderrLock, StdoutLock, Write},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use events::visible::shows;

pub use self::{
    pager::{Pager, is_seen, is_with_a_person},
    wrap::wrapped,
};

/// An environment variable that is set and not empty. Used for variables shared by terminal programs, such as
/// `COLUMNS`, `PAGER` and `NO_COLOR`.
#[expect(clippy::disallowed_methods, reason = "what the terminal is like is said nowhere else")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The text with invisible and misleading characters escaped.
#[must_use]
pub fn safe(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain || text.chars().all(prints) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if prints(c) {
            shown.push(c);
        } else {
            shown.extend(escape(c));
        }
    }
    shown
}

/// The text with each line escaped.
#[must_use]
pub fn safe_lines(text: &str) -> String {
    text.lines().flat_map(|line| [safe(line), "\n".to_owned()]).collect()
}

/// JSON with all unprintable characters escaped as JSON escapes; the value is the same.
#[must_use]
pub fn safe_json(json: &str) -> Cow<'_, str> {
    // In JSON, such characters can occur only in strings.
    let is_escaped = |c: char| c == '\x7f' || !c.is_ascii() && !prints(c);
    let mut escaped = json.match_indices(is_escaped).peekable();
    if escaped.peek().is_none() {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 64);
    let mut rest = 0;
    for (at, unseen) in escaped {
        shown.push_str(json.get(rest..at).unwrap_or_default());
        for unit in unseen.encode_utf16() {
            let _ = write!(shown, "\\u{unit:04x}");
        }
        rest = at + unseen.len();
    }
    shown.push_str(json.get(rest..).unwrap_or_default());
    Cow::Owned(shown)
}

/// The text as it may be written to a terminal: lines, tabs and our own colours; everything else is escaped.
#[must_use]
pub fn on_terminal(text: &str) -> String {
    escaped(text, Colours::Pass)
}

/// How to treat sequences that look like our own colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colours {
    Pass,
    Escape,
}

fn escaped(text: &str, colours: Colours) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = (colours == Colours::Pass).then(|| colour_at(rest)).flatten();
        let length = colour.unwrap_or(c.len_utf8());
        let (this, behind) = rest.split_at(length);
        if colour.is_some() || matches!(c, '\n' | '\t') || prints(c) {
            shown.push_str(this);
        } else {
            shown.extend(escape(c));
        }
        rest = behind;
    }
    shown
}

/// The escape as users read it: `\n`, `\u{1b}`.
fn escape(c: char) -> impl Iterator<Item = char> {
    let short = match c {
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    };
    let long = short.is_none().then(|| c.escape_unicode());
    short.into_iter().flat_map(|c| ['\\', c]).chain(long.into_iter().flatten())
}

/// Whether a character is visible by itself or through the character before it: U+FE0F turns a character into an emoji.
fn prints(c: char) -> bool {
    shows(c) || c == '\u{fe0f}'
}

/// The length of one of our own colour sequences at the beginning of the text. Sequences that can hide text (concealed,
/// inverse, backgrounds, black) are not ours.
fn colour_at(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find('m').filter(|end| *end <= "38;5;15".len())?;
    let parameters = &parameters[..end];
    let number = |text: &str| {
        let plain = matches!(text.len(), 1..=2) && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<u8>().ok()).flatten()
    };
    let is_ours = match parameters.strip_prefix("38;5;") {
        Some(colour) => matches!(number(colour), Some(1..=15)),
        None => parameters.split(';').all(|one| matches!(number(one), Some(0..=4 | 22..=24 | 31..=37 | 39 | 91..=97))),
    };
    is_ours.then_some("\x1b[".len() + end + 1)
}

/// Set when the reader of standard output has gone.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output has gone. Then the program can stop, which is not an error.
#[must_use]
pub fn is_reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

/// Standard output, escaped if it is a terminal.
#[must_use]
pub fn stdout() -> Screen<StdoutLock<'static>> {
    let escapes = is_seen();
    let to = io::stdout().lock();
    Screen { escapes, colours: Colours::Pass, to, line: Vec::new(), gone: Some(&READER_GONE) }
}

/// Standard error, always escaped, because users and logs read it.
#[must_use]
pub fn stderr() -> Screen<StderrLock<'static>> {
    let to = io::stderr().lock();
    let colours = if to.is_terminal() { Colours::Pass } else { Colours::Escape };
    Screen { to, escapes: true, colours, line: Vec::new(), gone: None }
}

/// The width of standard output in columns of text: `COLUMNS` if it is set, otherwise the terminal's width; `None` in a
/// pipe or a file, where lines may have any length.
#[must_use]
pub fn width() -> Option<usize> {
    let columns = crate::variable("COLUMNS");
    let set = columns.and_then(|columns| columns.to_str()?.parse::<usize>().ok()).filter(|n| *n > 0);
    set.or_else(|| is_seen().then(|| crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns))))
        .map(|columns| columns.clamp(20, 1000))
}

/// The width of standard error in columns of text; `None` if it is not a terminal.
fn error_width() -> Option<usize> {
    io::stderr().is_terminal().then(|| error_size().0)
}

/// Columns and rows of the terminal on standard error; 80 and 24 if it does not report them.
#[must_use]
pub fn error_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let of = |n: Option<u16>, otherwise: usize| n.filter(|n| *n > 0).map_or(otherwise, usize::from);
    (of(size.map(|size| size.ws_col), 80), of(size.map(|size| size.ws_row), 24))
}

/// A line of prose for standard output, wrapped between words if the terminal, or `COLUMNS`, is narrower; continuation
/// lines are indented by `hang` columns.
#[must_use]
pub fn prose(line: &str, hang: usize) -> String {
    wrapped(line, width(), hang)
}

/// Prints a text to standard error, wrapped between words on a terminal. Failures are ignored.
pub fn print_error_line(text: &str) {
    writeln!(stderr(), "{}", error_prose(text, error_width())).ok();
}

/// Prints an error in the command line to standard error, wrapped in the same way. The text repeats the user's input,
/// so colours in it are not ours.
pub fn print_usage_error(text: &str) {
    write!(stderr().without_colours(), "{}", error_prose(text, error_width())).ok();
}

/// The lines of a message, each wrapped between words if it is too wide.
fn error_prose(text: &str, width: Option<usize>) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = text.split('\n').map(|line| wrapped(line, width, indent(line) + ERROR_INDENT));
    lines.collect::<Vec<_>>().join("\n")
}

/// Indentation of the continuation lines of a message on standard error, columns.
const ERROR_INDENT: usize = 2;

/// Size at which an incomplete line is written without waiting for its end, bytes.
const LINE_BYTES: usize = 64 << 10;

/// A writer that escapes characters unsafe for a terminal.
#[derive(Debug)]
pub struct Screen<W: Write> {
    to: W,
    escapes: bool,
    colours: Colours,
    /// Held-back output: a sequence or a character may be incomplete before the end of its line.
    line: Vec<u8>,
    gone: Option<&'static AtomicBool>,
}

impl<W: Write> Screen<W> {
    /// A writer, for example of a log, that always escapes.
    pub fn escaping(to: W) -> Self {
        Self { to, escapes: true, colours: Colours::Escape, line: Vec::new(), gone: None }
    }

    /// The same writer for entirely untrusted text, in which colours are not ours.
    pub fn without_colours(mut self) -> Self {
        self.colours = Colours::Escape;
        self
    }

    /// Whether output is escaped.
    #[must_use]
    pub fn escapes(&self) -> bool {
        self.escapes
    }

    /// Writes our own control sequences unchanged. The caller must escape untrusted text in them.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn control(&mut self, sequences: &str) -> io::Result<()> {
        self.write_line(self.line.len())?;
        let written = self.to.write_all(sequences.as_bytes());
        self.noticed(written)
    }

    /// Writes the first `end` bytes of the held-back output.
    fn write_line(&mut self, end: usize) -> io::Result<()> {
        if end == 0 {
            return Ok(());
        }
        let line: Vec<u8> = self.line.drain(..end).collect();
        let mut shown = String::with_capacity(line.len());
        for chunk in line.utf8_chunks() {
            shown.push_str(&escaped(chunk.valid(), self.colours));
            for byte in chunk.invalid() {
                let _ = write!(shown, "\\x{byte:02x}");
            }
        }
        let written = self.to.write_all(shown.as_bytes());
        self.noticed(written)
    }

    fn noticed<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let (Err(error), Some(gone)) = (&result, self.gone)
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            gone.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.escapes {
            let written = self.to.write(bytes);
            return self.noticed(written);
        }
        let held = self.line.len();
        self.line.extend_from_slice(bytes);
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            self.write_line(held + end + 1)?;
        }
        if self.line.len() > LINE_BYTES {
            // Hold back an incomplete character until the rest arrives.
            let whole = self.line.utf8_chunks().last().map_or(0, |last| match last.invalid().len() {
                1..=3 if self.line.ends_with(last.invalid()) => self.line.len() - last.invalid().len(),
                _ => self.line.len(),
            });
            self.write_line(whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_line(self.line.len())?;
        let flushed = self.to.flush();
        self.noticed(flushed)
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        self.write_line(self.line.len()).ok();
    }
}

#[cfg(test)]
mod tests;
