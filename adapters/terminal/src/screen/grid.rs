//! The screen as rows of coloured text, for showing it elsewhere: first the whole screen, then the changed rows. Also
//! the lines that scrolled off the screen.
//!
//! Rows are compared only on request: an unwatched screen costs only its scrolled-off lines.

use std::collections::VecDeque;

use host_protocol::screen::{GridCursor, GridUpdate, Scrollback, Span, SpanColor, SpanFlags};

use super::terminal::Terminal;

/// Maximum number of scrolled-off lines kept.
const LINES: usize = 2_000;
/// Maximum size of the scrolled-off lines kept, bytes.
const BYTES: usize = 1 << 20;
/// Maximum length of a scrolled-off line kept whole, bytes.
const LINE_BYTES: usize = 16 << 10;

/// Stores the rows sent last, to compute changes.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    rev: u64,
    /// Each row with the revision of its last change.
    rows: Vec<(Vec<Span>, u64)>,
    /// All other parts of the update, with the revision of their last change.
    rest: (Option<Rest>, u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rest {
    columns: u16,
    cursor: GridCursor,
    alternate: bool,
    title: Option<String>,
    skipped_bytes: u64,
}

impl Grid {
    /// Compares the screen with the stored rows and returns the changes since a revision. For revision 0, and for a
    /// revision of an earlier run of this process, everything has changed.
    pub(crate) fn update(&mut self, terminal: &Terminal, skipped_bytes: u64, since: u64) -> GridUpdate {
        let screen = terminal.screen();
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let next = self.rev + 1;
        let mut changed = usize::from(rows) != self.rows.len();
        self.rows.resize_with(usize::from(rows), || (Vec::new(), next));
        for (at, row) in (0..rows).zip(&mut self.rows) {
            let spans = spans_of(screen, at, columns);
            if row.0 != spans {
                *row = (spans, next);
                changed = true;
            }
        }
        let (row, column) = screen.cursor_position();
        let rest = Rest {
            columns,
            cursor: GridCursor { row, column, visible: !screen.hide_cursor() },
            alternate: screen.alternate_screen(),
            title: terminal.signals().title.clone(),
            skipped_bytes,
        };
        if self.rest.0.as_ref() != Some(&rest) {
            self.rest = (Some(rest.clone()), next);
            changed = true;
        }
        if changed {
            self.rev = next;
        }
        let since = if since > self.rev { 0 } else { since };
        let news = (0..rows).zip(&self.rows).filter(|(_, (_, at))| *at > since);
        GridUpdate {
            rev: self.rev,
            columns,
            rows,
            cursor: rest.cursor,
            alternate: rest.alternate,
            title: rest.title,
            scrolled: terminal.signals().scrolled.count,
            skipped_bytes,
            lines: news.map(|(row, (spans, _))| (row, spans.clone())).collect(),
        }
    }
}

fn spans_of(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for cell in (0..columns).filter_map(|column| screen.cell(row, column)) {
        if cell.is_wide_continuation() {
            continue;
        }
        let style = (color(cell.fgcolor()), color(cell.bgcolor()), flags(cell));
        let text = if cell.has_contents() { cell.contents() } else { " " };
        match spans.last_mut().filter(|last| (last.1, last.2, last.3) == style) {
            Some(last) => last.0.push_str(text),
            None => spans.push(Span(text.to_owned(), style.0, style.1, style.2)),
        }
    }
    without_blank_end(&mut spans);
    spans
}

/// Removes invisible blanks at the end.
fn without_blank_end(spans: &mut Vec<Span>) {
    const SHOWN: u8 = SpanFlags::Underline as u8 | SpanFlags::Inverse as u8;
    while let Some(last) = spans.last_mut().filter(|last| last.2.is_none() && last.3 & SHOWN == 0) {
        last.0.truncate(last.0.trim_end_matches(' ').len());
        if !last.0.is_empty() {
            break;
        }
        spans.pop();
    }
}

const fn color(color: vt100::Color) -> Option<SpanColor> {
    match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(SpanColor::Index(index)),
        vt100::Color::Rgb(red, green, blue) => Some(SpanColor::Rgb(red, green, blue)),
    }
}

fn flags(cell: &vt100::Cell) -> u8 {
    [
        (cell.bold(), SpanFlags::Bold),
        (cell.dim(), SpanFlags::Dim),
        (cell.italic(), SpanFlags::Italic),
        (cell.underline(), SpanFlags::Underline),
        (cell.inverse(), SpanFlags::Inverse),
    ]
    .into_iter()
    .fold(0, |sum, (is_on, flag)| if is_on { sum | flag as u8 } else { sum })
}

/// The lines that scrolled off the main screen, stored as text with colour sequences, the most compact form.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScrolledLines {
    lines: VecDeque<String>,
    bytes: usize,
    /// Number of lines that scrolled off, whether still kept or not.
    pub(crate) count: u64,
}

impl ScrolledLines {
    /// Adds a line.
    pub(crate) fn push(&mut self, mut line: String) {
        if line.len() > LINE_BYTES {
            line.truncate(line.floor_char_boundary(LINE_BYTES));
        }
        line.shrink_to_fit();
        self.bytes += line.len();
        self.lines.push_back(line);
        self.count += 1;
        while self.lines.len() > LINES || self.bytes > BYTES {
            let Some(oldest) = self.lines.pop_front() else { return };
            self.bytes -= oldest.len();
        }
    }

    /// At most `count` lines before line number `before`.
    pub(crate) fn before(&self, before: u64, count: usize) -> Scrollback {
        let oldest = self.count - self.lines.len() as u64;
        let end = before.clamp(oldest, self.count);
        let from = end.saturating_sub(count as u64).max(oldest);
        let range = usize::try_from(from - oldest).unwrap_or(0)..usize::try_from(end - oldest).unwrap_or(0);
        Scrollback { from, oldest, lines: self.lines.range(range).map(|line| decoded(line)).collect() }
    }
}

/// Text with colour sequences (SGR) as spans.
fn decoded(line: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut style = Style::default();
    let mut pieces = line.split("\x1b[");
    let mut add = |style: &Style, text: &str| {
        // The parser stores characters; a control character among them would affect the terminal that shows the line.
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        if !text.is_empty() {
            spans.push(Span(text, style.foreground, style.background, style.flags));
        }
    };
    add(&style, pieces.next().unwrap_or_default());
    for piece in pieces {
        let Some((parameters, text)) = piece.split_once('m') else { continue };
        style.apply(parameters);
        add(&style, text);
    }
    without_blank_end(&mut spans);
    spans
}

#[derive(Debug, Clone, Copy, Default)]
struct Style {
    foreground: Option<SpanColor>,
    background: Option<SpanColor>,
    flags: u8,
}

impl Style {
    fn apply(&mut self, parameters: &str) {
        let mut numbers = parameters.split([';', ':']).map(|text| text.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            let byte = |number: u16| u8::try_from(number).unwrap_or(0);
            match number {
                0 => *self = Self::default(),
                1 => self.flags |= SpanFlags::Bold as u8,
                2 => self.flags |= SpanFlags::Dim as u8,
                3 => self.flags |= SpanFlags::Italic as u8,
                4 => self.flags |= SpanFlags::Underline as u8,
                7 => self.flags |= SpanFlags::Inverse as u8,
                22 => self.flags &= !(SpanFlags::Bold as u8 | SpanFlags::Dim as u8),
                23 => self.flags &= !(SpanFlags::Italic as u8),
                24 => self.flags &= !(SpanFlags::Underline as u8),
                27 => self.flags &= !(SpanFlags::Inverse as u8),
                30..=37 => self.foreground = Some(SpanColor::Index(byte(number - 30))),
                39 => self.foreground = None,
                40..=47 => self.background = Some(SpanColor::Index(byte(number - 40))),
                49 => self.background = None,
                90..=97 => self.foreground = Some(SpanColor::Index(byte(number - 90 + 8))),
                100..=107 => self.background = Some(SpanColor::Index(byte(number - 100 + 8))),
                38 | 48 => {
                    let color = match numbers.next() {
                        Some(5) => numbers.next().map(|index| SpanColor::Index(byte(index))),
                        Some(2) => {
                            let mut part = || byte(numbers.next().unwrap_or(0));
                            Some(SpanColor::Rgb(part(), part(), part()))
                        }
                        _ => None,
                    };
                    if number == 38 { self.foreground = color } else { self.background = color }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use host_protocol::screen::Size;

    fn terminal() -> Terminal {
        Terminal::new(Size { rows: 4, columns: 12 })
    }

    fn plain(text: &str) -> Span {
        Span(text.into(), None, None, 0)
    }

    #[test]
    fn grid_updates_contain_only_changed_rows_after_the_first() {
        let (mut terminal, mut grid) = (terminal(), Grid::default());
        terminal.feed(b"one\r\n\x1b[1;31mtwo\x1b[0m three  ");
        let whole = grid.update(&terminal, 0, 0);
        assert_eq!((whole.rev, whole.rows, whole.columns, whole.lines.len()), (1, 4, 12, 4));
        assert_eq!(whole.lines[&0], [plain("one")]);
        assert_eq!(whole.lines[&1], [Span("two".into(), Some(SpanColor::Index(1)), None, 1), plain(" three")]);
        let same = grid.update(&terminal, 0, whole.rev);
        assert_eq!((same.rev, same.lines.len()), (1, 0));
        terminal.feed(b"\x1b[3;1H\x1b[48;2;1;2;3m x \x1b[m");
        let changed = grid.update(&terminal, 0, whole.rev);
        assert_eq!(changed.rev, 2);
        assert_eq!(changed.cursor, GridCursor { row: 2, column: 3, visible: true });
        let only: Vec<_> = changed.lines.into_iter().collect();
        assert_eq!(only, [(2, vec![Span(" x ".into(), None, Some(SpanColor::Rgb(1, 2, 3)), 0)])]);
        assert_eq!(grid.update(&terminal, 0, 99).lines.len(), 4, "a revision of another life");
    }

    #[test]
    fn a_resize_sends_the_rows_of_the_new_size() {
        let (mut terminal, mut grid) = (terminal(), Grid::default());
        terminal.feed(b"abc");
        let before = grid.update(&terminal, 0, 0).rev;
        terminal.resize(Size { rows: 6, columns: 20 });
        let after = grid.update(&terminal, 0, before);
        assert_eq!((after.rows, after.columns), (6, 20));
        assert!(after.rev > before && after.lines.contains_key(&5), "{after:?}");
    }

    #[test]
    fn scrolled_off_lines_keep_their_colors() {
        let mut terminal = terminal();
        for n in 0..10 {
            terminal.feed(format!("\x1b[32mline {n}\x1b[m\r\n").as_bytes());
        }
        let scrolled = &terminal.signals().scrolled;
        assert_eq!(scrolled.count, 7);
        let last = scrolled.before(u64::MAX, 2);
        assert_eq!((last.from, last.oldest, last.lines.len()), (5, 0, 2));
        assert_eq!(last.lines[1], [Span("line 6".into(), Some(SpanColor::Index(2)), None, 0)]);
        let first = scrolled.before(last.from, 100);
        assert_eq!((first.from, first.lines.len()), (0, 5));
        assert_eq!(scrolled.before(0, 5).lines.len(), 0);
        // Nothing scrolls off the alternate screen.
        terminal.feed(b"\x1b[?1049h\r\n\r\n\r\n\r\n\r\n\r\n");
        assert_eq!(terminal.signals().scrolled.count, 7);
    }

    #[test]
    fn scrolled_off_lines_are_bounded() {
        let mut scrolled = ScrolledLines::default();
        for _ in 0..3 * LINES {
            scrolled.push("x".repeat(10));
        }
        assert_eq!((scrolled.lines.len(), scrolled.count), (LINES, 3 * LINES as u64));
        for _ in 0..200 {
            scrolled.push("é".repeat(LINE_BYTES));
        }
        assert!(scrolled.bytes <= BYTES && scrolled.lines.len() < 200);
        assert_eq!(scrolled.bytes, scrolled.lines.iter().map(String::len).sum::<usize>());
    }

    proptest! {
        /// Applying each update to the previous rows gives the current rows, however the output is split.
        #[test]
        fn grid_updates_applied_in_order_give_the_current_rows(output in proptest::collection::vec("[a-c \r\n]{0,8}|\u{1b}\\[[0-9]{1,2}m|\u{1b}\\[[1-5];[1-9]H", 0..40)) {
            let (mut terminal, mut grid) = (terminal(), Grid::default());
            let GridUpdate { lines: mut shown, mut rev, .. } = grid.update(&terminal, 0, 0);
            for piece in &output {
                terminal.feed(piece.as_bytes());
                let update = grid.update(&terminal, 0, rev);
                rev = update.rev;
                shown.extend(update.lines);
            }
            prop_assert_eq!(shown, Grid::default().update(&terminal, 0, 0).lines);
        }
    }
}
