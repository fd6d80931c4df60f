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
    /// Distinguishes this dialog from all others of its run, also from earlier and later ones with the same words. An
    /// answer names the mark, so that a decision about one dialog never reaches another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Why keys can never answer it, whatever the screen shows: for example, the agent's version was not tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswerable: Option<String>,
}

/// An option of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Its text on the screen.
    pub label: String,
    /// The key that gives this answer immediately: `1`, `y`, `esc`; absent if the option can only be selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the cursor is on it, so that Enter chooses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub selected: bool,
    /// Its effect on the requested approval; absent if the rules do not define it, as for a question.
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
