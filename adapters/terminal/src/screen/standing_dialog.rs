//! A dialog that is open on the screen.

use events::{ChoiceAnswer, Timestamp};

/// A dialog that is open on the screen and may be answered by keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingDialog {
    /// Distinguishes the dialog from every other.
    pub mark: String,
    /// When the dialog was first reported.
    pub since: Timestamp,
    /// The key that denies regardless of the cursor.
    pub deny_key: Option<String>,
    /// Whether the options are side by side.
    pub row: bool,
    /// The options, in order.
    pub options: Vec<StandingOption>,
}

/// An option of the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingOption {
    /// The meaning of the option.
    pub answer: Option<ChoiceAnswer>,
    /// The keys that choose it immediately.
    pub keys: Vec<String>,
    /// Whether the cursor is on it.
    pub selected: bool,
}
