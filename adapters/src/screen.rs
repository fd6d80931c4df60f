//! The screen of a run: what the program's bytes make of it, and what a person would read from it.
//!
//! [`Observer`] takes the bytes of a terminal in, after they were passed on, and the time; out come
//! claims, notifications and, when asked, the screen itself ([`Picture`]) and why it is read the
//! way it is ([`Explanation`]). Pure: the time is an argument. Nothing it is fed can make it panic
//! or grow without bound.

use std::sync::Arc;

use events::{Provider, Timestamp};
use serde::{Deserialize, Serialize};

use crate::host::frame::{ScreenClaim, Told};

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// The rules for all providers.
#[derive(Debug, Default)]
pub struct Rules {}

/// The screen as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Rows and columns.
    pub size: Size,
    /// The rows as text, from the top, without blanks at their ends.
    pub lines: Vec<String>,
    /// Row and column of the cursor, from 0; absent while it is hidden.
    pub cursor: Option<(u16, u16)>,
    /// The title (OSC 0, 2).
    pub title: Option<String>,
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// When bytes came last.
    pub at: Timestamp,
    /// Bytes that were not parsed since the screen was last drawn anew: it may be wrong.
    pub skipped_bytes: u64,
    /// What is claimed now.
    pub claim: Option<ScreenClaim>,
}

/// Why the screen is read the way it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Whose rules.
    pub provider: Provider,
    /// The agent's version, as its screen says it.
    pub version: Option<String>,
}

/// Watches one terminal.
#[derive(Debug)]
pub struct Observer {
    size: Size,
}

impl Observer {
    /// A terminal of this size, blank.
    #[must_use]
    pub fn new(size: Size, provider: Provider, rules: Arc<Rules>, now: Timestamp) -> Self {
        let _ = (provider, rules, now);
        Self { size }
    }

    /// Takes in bytes the program wrote.
    pub fn output(&mut self, bytes: &[u8], now: Timestamp) {
        let _ = (bytes, now);
    }

    /// Bytes were not kept because there were too many: the screen may be wrong until it is drawn anew.
    pub fn skipped(&mut self, bytes: u64, now: Timestamp) {
        let _ = (bytes, now);
    }

    /// Takes in bytes somebody typed. Only their meaning for a dialog that is open is kept.
    pub fn input(&mut self, bytes: &[u8], now: Timestamp) {
        let _ = (bytes, now);
    }

    /// The terminal has another size.
    pub fn resize(&mut self, size: Size, now: Timestamp) {
        let _ = now;
        self.size = size;
    }

    /// Another program is in the foreground.
    pub fn set_provider(&mut self, provider: Provider, now: Timestamp) {
        let _ = (provider, now);
    }

    /// Lets time pass up to `now`.
    pub fn advance(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// When [`advance`](Self::advance) would next change something.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        None
    }

    /// What is to be told since the last call, in order.
    pub fn take(&mut self) -> Vec<(Timestamp, Told)> {
        Vec::new()
    }

    /// The agent's version, as its screen says it.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        None
    }

    /// The screen as it stands.
    #[must_use]
    pub fn picture(&self) -> Picture {
        Picture {
            size: self.size,
            lines: Vec::new(),
            cursor: None,
            title: None,
            alternate: false,
            at: Timestamp::MIN,
            skipped_bytes: 0,
            claim: None,
        }
    }

    /// Bytes that draw the screen as it stands on a terminal of the same size, modes included.
    #[must_use]
    pub fn repaint(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Bytes that undo the modes the program left on (alternate screen, mouse, bracketed paste, hidden
    /// cursor, keyboard protocols); empty when it left none.
    #[must_use]
    pub fn restore(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Answers to what the program asked its terminal (cursor position, device attributes); to be
    /// typed into it only while no terminal is attached that answers itself.
    pub fn take_replies(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Why the screen is read the way it is.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        Explanation { provider: Provider::Unknown, version: None }
    }
}
