//! A screen that shows a recording: it is not read by rules and sends no replies.

use host_protocol::screen::{GridUpdate, Size};

use super::{grid::Grid, terminal::Terminal};

/// A terminal fed from a recording.
pub struct PlaybackScreen {
    terminal: Terminal,
    grid: Grid,
    shown: u64,
}

impl PlaybackScreen {
    /// A blank screen.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self { terminal: Terminal::new(size), grid: Grid::default(), shown: 0 }
    }

    /// Processes output of the program.
    pub fn output(&mut self, text: &str) {
        self.terminal.feed(text.as_bytes());
        // The program that sent the queries has ended.
        self.terminal.signals_mut().replies.clear();
    }

    /// Changes its size.
    pub fn resize(&mut self, size: Size) {
        self.terminal.resize(size);
    }

    /// The whole screen.
    pub fn whole(&mut self) -> GridUpdate {
        let whole = self.grid.update(&self.terminal, 0, 0);
        self.shown = whole.rev;
        whole
    }

    /// The changes since the last call; `None` if there are none.
    pub fn changes(&mut self) -> Option<GridUpdate> {
        let changes = self.grid.update(&self.terminal, 0, self.shown);
        let is_new = changes.rev > self.shown;
        self.shown = changes.rev;
        is_new.then_some(changes)
    }
}
