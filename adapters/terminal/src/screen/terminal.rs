//! The terminal as the program sees it: the parser, guarded so that no input can make it panic or grow without bound,
//! and the bytes that redraw or restore a terminal.

use std::{
    num::NonZeroU16,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
};

use host_protocol::screen::Size;
use vt100::{CursorStyle, MouseProtocolMode, Parser};

use super::{
    guard::{Guard, Passed},
    signals::ScreenSignals,
};

/// The parser cannot store a wide character in a smaller terminal; a larger one would use too much memory.
const SMALLEST: u16 = 2;
const MOST_ROWS: u16 = 500;
const MOST_COLUMNS: u16 = 1000;

/// The parser with its guard.
pub(crate) struct Terminal {
    parser: Parser<ScreenSignals>,
    guard: Guard,
    /// How often the parser panicked and was replaced.
    pub(crate) panics: u64,
}

impl Terminal {
    /// A blank terminal.
    pub(crate) fn new(size: Size) -> Self {
        Self { parser: parser(size, ScreenSignals::default()), guard: Guard::default(), panics: 0 }
    }

    /// Processes bytes; returns whether they cleared the screen.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        let parser = &mut self.parser;
        let guard = &mut self.guard;
        // On a panic the parser is replaced, so its inconsistent state is never read.
        if catch_unwind(AssertUnwindSafe(|| {
            guard.pass(bytes, |passed| match passed {
                Passed::Bytes(bytes) => parser.process(bytes),
                Passed::Reset => parser.callbacks_mut().status.reset(),
            })
        }))
        .is_err()
        {
            self.begin_again();
        }
        std::mem::take(&mut self.guard.cleared)
    }

    /// Whether no control sequence, character or synchronized update is incomplete.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.guard.is_at_rest() && !self.signals().updating
    }

    /// Whether no control sequence or character is incomplete.
    pub(crate) fn is_between_sequences(&self) -> bool {
        self.guard.is_at_rest()
    }

    /// The kitty keyboard protocol flags set by the program.
    pub(crate) fn keyboard(&self) -> u16 {
        let screen = usize::from(self.screen().alternate_screen());
        self.signals().keyboard[screen].last().copied().unwrap_or(0)
    }

    /// Handles missing bytes: an incomplete sequence is cancelled.
    pub(crate) fn lost(&mut self) {
        self.guard.lost();
        self.feed(b"\x18");
    }

    /// Changes its size.
    pub(crate) fn resize(&mut self, size: Size) {
        let (rows, columns) = clamp(size);
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| parser.set_size(rows, columns))).is_err() {
            self.parser = self::parser(size, std::mem::take(self.parser.callbacks_mut()));
            self.panics += 1;
        }
    }

    fn begin_again(&mut self) {
        let (rows, columns) = self.parser.screen().size();
        let size = Size { rows: rows.get(), columns: columns.get() };
        self.parser = parser(size, std::mem::take(self.parser.callbacks_mut()));
        self.guard.lost();
        self.panics += 1;
    }

    /// The received signals.
    pub(crate) fn signals(&self) -> &ScreenSignals {
        self.parser.callbacks()
    }

    /// The received signals, for taking them.
    pub(crate) fn signals_mut(&mut self) -> &mut ScreenSignals {
        self.parser.callbacks_mut()
    }

    /// The parser's screen.
    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// The rows as text up to this column, without trailing blanks.
    pub(crate) fn lines(&self, columns: u16) -> Vec<String> {
        self.parser
            .screen()
            .rows(0, columns.min(MOST_COLUMNS))
            .map(|mut row| {
                row.truncate(row.trim_end().len());
                row
            })
            .collect()
    }

    /// The texts with a distinct background in these rows: each text whose background differs from that of the cells on
    /// both sides.
    pub(crate) fn shaded(&self, rows: Range<usize>, columns: u16) -> Vec<String> {
        let screen = self.parser.screen();
        let (_, width) = screen.size();
        let mut shaded = Vec::new();
        for row in rows.filter_map(|row| u16::try_from(row).ok()) {
            let mut runs: Vec<((vt100::Color, bool), String)> = Vec::new();
            for cell in (0..width.get().min(columns)).filter_map(|column| screen.cell(row, column)) {
                let background = (cell.bgcolor(), cell.inverse());
                let text = if cell.has_contents() { cell.contents() } else { " " };
                match runs.last_mut().filter(|(last, _)| *last == background) {
                    Some((_, run)) if !cell.is_wide_continuation() => run.push_str(text),
                    Some(_) => {}
                    None => runs.push((background, text.to_owned())),
                }
            }
            let islands = runs.windows(3).filter(|run| run[0].0 == run[2].0).map(|run| run[1].1.trim());
            shaded.extend(islands.filter(|text| !text.is_empty()).map(str::to_owned));
        }
        shaded
    }

    /// Bytes that draw the current screen on a terminal of the same size.
    pub(crate) fn repaint(&self) -> Vec<u8> {
        let (screen, signals) = (self.parser.screen(), self.parser.callbacks());
        let mut out = String::new();
        out.push_str(if screen.alternate_screen() { "\x1b[?1049h" } else { "\x1b[?1049l" });
        out.push_str("\x1b[r");
        out.push_str(&screen.state_formatted());
        for mode in &signals.modes {
            out.push_str(&format!("\x1b[?{mode}h"));
        }
        for flags in &signals.keyboard[usize::from(screen.alternate_screen())] {
            out.push_str(&format!("\x1b[>{flags}u"));
        }
        if signals.other_keys != 0 {
            out.push_str(&format!("\x1b[>4;{}m", signals.other_keys));
        }
        if let Some(title) = &signals.title {
            out.push_str(&format!("\x1b]0;{title}\x07"));
        }
        let status = signals.status.root();
        if !status.is_empty() {
            out.push_str(&format!("\x1b]7501;{status}\x1b\\"));
        }
        out.into_bytes()
    }

    /// Bytes that undo the modes the program left on; empty if there are none.
    pub(crate) fn restore(&self) -> Vec<u8> {
        let (screen, signals) = (self.parser.screen(), self.parser.callbacks());
        let alternate = screen.alternate_screen();
        let mut out = String::new();
        let pop = |out: &mut String, depth: usize| {
            if depth > 0 {
                out.push_str(&format!("\x1b[<{depth}u\x1b[=0u"));
            }
        };
        if signals.updating {
            out.push_str("\x1b[?2026l");
        }
        if !signals.status.is_empty() {
            out.push_str("\x1b]7501;state=clear\x1b\\");
        }
        if self.guard.scroll_region {
            out.push_str("\x1b7\x1b[r\x1b8");
        }
        if alternate {
            pop(&mut out, signals.keyboard[1].len());
            out.push_str("\x1b[?1049l");
        }
        pop(&mut out, signals.keyboard[0].len());
        if screen.mouse_protocol_mode() != MouseProtocolMode::None {
            out.push_str("\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?9l\x1b[?1006l\x1b[?1005l");
        }
        for mode in &signals.modes {
            out.push_str(&format!("\x1b[?{mode}l"));
        }
        if signals.other_keys != 0 {
            out.push_str("\x1b[>4m");
        }
        for (on, undo) in [
            (screen.bracketed_paste(), "\x1b[?2004l"),
            (screen.application_cursor(), "\x1b[?1l"),
            (screen.application_keypad(), "\x1b>"),
            (screen.hide_cursor(), "\x1b[?25h"),
            (screen.cursor_style() != CursorStyle::Default, "\x1b[0 q"),
            (signals.charset, "\x1b(B"),
            (!screen.attributes_formatted().trim_start_matches("\x1b[m").is_empty(), "\x1b[m"),
        ] {
            if on {
                out.push_str(undo);
            }
        }
        out.into_bytes()
    }
}

fn clamp(size: Size) -> (NonZeroU16, NonZeroU16) {
    let within = |n: u16, most: u16| NonZeroU16::new(n.clamp(SMALLEST, most)).unwrap_or(NonZeroU16::MIN);
    (within(size.rows, MOST_ROWS), within(size.columns, MOST_COLUMNS))
}

fn parser(size: Size, signals: ScreenSignals) -> Parser<ScreenSignals> {
    let (rows, columns) = clamp(size);
    Parser::new_with_callbacks(rows, columns, 0, signals)
}
