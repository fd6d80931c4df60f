//! A screen that shows what was recorded: no rules look at it, and it answers nothing.

use host_protocol::screen::{GridUpdate, Size};

use super::{grid::Grid, terminal::Terminal};

/// A terminal that is fed from a recording.
pub struct PlaybackScreen {
    terminal: Terminal,
    grid: Grid,
    shown: u64,
}

impl PlaybackScreen {
    /// A blank one.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self { terminal: Terminal::new(size), grid: Grid::default(), shown: 0 }
    }

    /// Takes in what the program wrote.
    pub fn output(&mut self, text: &str) {
        self.terminal.feed(text.as_bytes());
        // The program that asked has ended.
        self.terminal.signals_mut().replies.clear();
    }

    /// Gives it another size.
    pub fn resize(&mut self, size: Size) {
        self.terminal.resize(size);
    }

    /// All of the screen.
    pub fn whole(&mut self) -> GridUpdate {
        let whole = self.grid.update(&self.terminal, 0, 0);
        self.shown = whole.rev;
        whole
    }

    /// What changed since it was last told; `None` for nothing.
    pub fn changes(&mut self) -> Option<GridUpdate> {
        let changes = self.grid.update(&self.terminal, 0, self.shown);
        let is_new = changes.rev > self.shown;
        self.shown = changes.rev;
        is_new.then_some(changes)
    }
}
