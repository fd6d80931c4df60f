//! Rows and columns of a terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TerminalSize")]
pub struct Size {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}
