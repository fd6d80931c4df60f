//! Dialogs that agents show on their screens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval_kind::ApprovalKind;

/// A dialog an agent shows: what it asks, and how it can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Dialog {
    /// The kind of approval it asks for; absent for a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<ApprovalKind>,
    /// The question it asks: `Do you want to proceed?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The subject of the question: command, file or URL. Read from a screen, so it may be cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Its options, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// Tells this dialog from every other of its run: from one with other words, and from one with the
    /// same words that came before or after it. Who answers names the mark, so that what was decided for
    /// one dialog never reaches another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Why keys cannot answer it, when they cannot whatever the screen shows: the version of the agent was not
    /// tested, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswerable: Option<String>,
}

/// An option of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Its text on the screen.
    pub label: String,
    /// The key that gives this answer at once: `1`, `y`, `esc`; absent when it can only be selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the cursor is on it, so that Enter gives it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub selected: bool,
    /// What it means for the approval that is asked for; absent where the rules do not say, as for a
    /// question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ChoiceAnswer>,
}

/// The answer that an option of a dialog gives to its approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Answer")]
pub enum ChoiceAnswer {
    /// Allows the request once.
    AllowOnce,
    /// Allows the request, and more: later, elsewhere, or of the same kind.
    AllowAlways,
    /// Denies the request.
    Deny,
    /// Another answer, or not known.
    Other,
}
