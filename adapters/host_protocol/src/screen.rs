//! The screen of a run as its host reports it: plain data.

mod explain;
mod grid;

use events::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use explain::{Check, Explanation, FileUsed, Need, RegionText, RuleMatch, RuleOutcome};
pub use grid::{GridCursor, GridUpdate, Scrollback, Span, SpanColor, SpanFlags};

use crate::claim::ScreenClaim;

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TerminalSize")]
pub struct Size {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// The current screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Screen")]
pub struct Picture {
    /// Rows and columns.
    pub size: Size,
    /// The rows as text, from the top, without blanks at their ends.
    pub lines: Vec<String>,
    /// Row and column of the cursor, from 0; absent while it is hidden.
    pub cursor: Option<(u16, u16)>,
    /// The title (OSC 0, 2).
    pub title: Option<String>,
    /// The state that the program itself reports (OSC 7501), without its texts: `state=working:app=codex`.
    #[serde(default)]
    pub agent_state: Option<String>,
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// When the last bytes arrived.
    pub at: Timestamp,
    /// Bytes that were not parsed since the screen was last redrawn: it may be wrong.
    pub skipped_bytes: u64,
    /// The current claim.
    pub claim: Option<ScreenClaim>,
}
