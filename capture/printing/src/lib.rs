//! Standard output and standard error, with untrusted text escaped: a title must not move the cursor with an escape
//! sequence, nor reverse a command with a right-to-left mark.
//!
//! Commands escape each untrusted text where they put it into a line ([`safe`]). Text they miss is escaped on its way
//! to the terminal ([`stdout`], [`stderr`]), which lets only our own colour sequences pass. Output to a pipe or a file
//! is data and stays unchanged; JSON is escaped everywhere ([`safe_json`]), which changes no value.

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

/// A variable of the environment that is set and not empty: what programs on a terminal share, as `COLUMNS`, `PAGER` and
/// `NO_COLOR`.
#[expect(clippy::disallowed_methods, reason = "what the terminal is like is said nowhere else")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The text with everything that does not print, or prints something else than it is, escaped.
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

/// Lines that are safe each.
#[must_use]
pub fn safe_lines(text: &str) -> String {
    text.lines().flat_map(|line| [safe(line), "\n".to_owned()]).collect()
}

/// JSON with everything that does not print escaped, as JSON escapes it: the same value.
#[must_use]
pub fn safe_json(json: &str) -> Cow<'_, str> {
    // In JSON such characters can only be in strings.
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

/// The text as a terminal may have it: lines, tabs and our own colours, all else escaped.
#[must_use]
pub fn on_terminal(text: &str) -> String {
    escaped(text, Colours::Pass)
}

/// What becomes of sequences that are like our own colours.
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

/// The escape a person reads: `\n`, `\u{1b}`.
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

/// Whether a character shows, by itself or in what stands before it: U+FE0F makes a picture of an emoji.
fn prints(c: char) -> bool {
    shows(c) || c == '\u{fe0f}'
}

/// Length of one of our own colour sequences at the beginning of the text. What hides a text (concealed,
/// inverse, backgrounds, black) is not among them.
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

/// Whether the reader of standard output has gone. Then there is nothing left to do, and it is not an error.
#[must_use]
pub fn is_reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

/// Standard output, escaped where it is a terminal.
#[must_use]
pub fn stdout() -> Screen<StdoutLock<'static>> {
    let escapes = is_seen();
    let to = io::stdout().lock();
    Screen { escapes, colours: Colours::Pass, to, line: Vec::new(), gone: Some(&READER_GONE) }
}

/// Standard error, escaped wherever it goes: it is for people, and into logs.
#[must_use]
pub fn stderr() -> Screen<StderrLock<'static>> {
    let to = io::stderr().lock();
    let colours = if to.is_terminal() { Colours::Pass } else { Colours::Escape };
    Screen { to, escapes: true, colours, line: Vec::new(), gone: None }
}

/// Columns of text on standard output: `COLUMNS` where it is set, else the width of the terminal; `None` in a pipe or a
/// file, where lines may be of any length.
#[must_use]
pub fn width() -> Option<usize> {
    let columns = crate::variable("COLUMNS");
    let set = columns.and_then(|columns| columns.to_str()?.parse::<usize>().ok()).filter(|n| *n > 0);
    set.or_else(|| is_seen().then(|| crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns))))
        .map(|columns| columns.clamp(20, 1000))
}

/// Columns of text on standard error; `None` where it is not a terminal.
fn error_width() -> Option<usize> {
    io::stderr().is_terminal().then(|| error_size().0)
}

/// Columns and rows of the terminal on standard error; 80 and 24 where it does not say.
#[must_use]
pub fn error_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let of = |n: Option<u16>, otherwise: usize| n.filter(|n| *n > 0).map_or(otherwise, usize::from);
    (of(size.map(|size| size.ws_col), 80), of(size.map(|size| size.ws_row), 24))
}

/// A line of prose on standard output, broken between words where the terminal, or `COLUMNS`, is narrower; what follows
/// is indented by `hang` columns.
#[must_use]
pub fn prose(line: &str, hang: usize) -> String {
    wrapped(line, width(), hang)
}

/// Prints a text to standard error, on a terminal broken between words; a failure to do so is ignored.
pub fn print_error_line(text: &str) {
    writeln!(stderr(), "{}", error_prose(text, error_width())).ok();
}

/// Prints what is wrong with a command line to standard error, broken likewise. It repeats what was typed, so colours in
/// it are not ours.
pub fn print_usage_error(text: &str) {
    write!(stderr().without_colours(), "{}", error_prose(text, error_width())).ok();
}

/// The lines of a message, each broken between words where it is too wide.
fn error_prose(text: &str, width: Option<usize>) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = text.split('\n').map(|line| wrapped(line, width, indent(line) + ERROR_INDENT));
    lines.collect::<Vec<_>>().join("\n")
}

/// Indentation of what follows the first line of a message on standard error, columns.
const ERROR_INDENT: usize = 2;

/// Size at which an unfinished line is written without waiting for its end, bytes.
const LINE_BYTES: usize = 64 << 10;

/// A writer that escapes what a terminal must not have.
#[derive(Debug)]
pub struct Screen<W: Write> {
    to: W,
    escapes: bool,
    colours: Colours,
    /// What is held back: a sequence or a character may not be whole before the end of its line.
    line: Vec<u8>,
    gone: Option<&'static AtomicBool>,
}

impl<W: Write> Screen<W> {
    /// A writer, of a log for instance, that is always escaped.
    pub fn escaping(to: W) -> Self {
        Self { to, escapes: true, colours: Colours::Escape, line: Vec::new(), gone: None }
    }

    /// The same for text that is all untrusted: colours in it are not ours.
    pub fn without_colours(mut self) -> Self {
        self.colours = Colours::Escape;
        self
    }

    /// Whether what is written is escaped.
    #[must_use]
    pub fn escapes(&self) -> bool {
        self.escapes
    }

    /// Writes control sequences of our own as they are. Untrusted text among them is the caller's to escape.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn control(&mut self, sequences: &str) -> io::Result<()> {
        self.write_line(self.line.len())?;
        let written = self.to.write_all(sequences.as_bytes());
        self.noticed(written)
    }

    /// Writes the first `end` bytes of what is held back.
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
            // A character that is not whole yet waits for its end.
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
