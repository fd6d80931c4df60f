//! A dialog that stands on the screen.

use events::{ChoiceAnswer, Timestamp};

/// A dialog that stands on the screen and may be answered by keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingDialog {
    /// Tells it from every other.
    pub mark: String,
    /// When it was reported first.
    pub since: Timestamp,
    /// The key that denies, wherever the cursor is.
    pub deny_key: Option<String>,
    /// Whether they stand side by side.
    pub row: bool,
    /// The answers it offers, in order.
    pub options: Vec<StandingOption>,
}

/// An answer it offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingOption {
    /// What it means.
    pub answer: Option<ChoiceAnswer>,
    /// The keys that give it at once.
    pub keys: Vec<String>,
    /// Whether the cursor is on it.
    pub selected: bool,
}
