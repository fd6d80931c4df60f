//! Entries to append, without id, parent and time.

use crate::json::{Json, Object};

/// An entry to append.
#[derive(Debug, Clone, PartialEq)]
pub enum NewEntry {
    /// A message in the form of the format: `role`, `content`, `timestamp` and the fields of the role.
    Message(Object),
    /// A change of the thinking level.
    ThinkingLevelChange(String),
    /// A change of the model.
    ModelChange {
        /// The provider.
        provider: String,
        /// The model's id.
        model: String,
    },
    /// A summary that replaces the entries before it.
    Compaction(NewCompaction),
    /// State of an extension.
    Custom {
        /// The type that identifies its extension.
        custom_type: String,
        /// The state.
        data: Option<Json>,
    },
    /// A message of an extension.
    CustomMessage {
        /// The type that identifies its extension.
        custom_type: String,
        /// A string, or an array of blocks.
        content: Json,
        /// Whether users see it.
        display: bool,
        /// Data that no model sees.
        details: Option<Json>,
    },
    /// Sets or removes a label.
    Label {
        /// The entry.
        target: String,
        /// The text; `None` removes the label.
        text: Option<String>,
    },
    /// The session's name; an empty name removes it.
    SessionInfo {
        /// The name.
        name: String,
    },
    /// A replacement for the content of an entry on the path; `None` removes the entry from the context.
    ContextEdit {
        /// The entry.
        target: String,
        /// A string, or an array of blocks.
        content: Option<Json>,
    },
    /// Usage outside the conversation.
    Usage {
        /// The purpose.
        kind: String,
        /// The provider.
        provider: String,
        /// The model's id.
        model: String,
        /// The token counts.
        usage: Json,
        /// A remark.
        note: Option<String>,
    },
    /// Any other entry: its `type` and its own fields (`session_init`, `ttsr_injection`, a foreign one).
    Other {
        /// The `type`.
        name: String,
        /// Its fields, without `type`, `id`, `parentId` and `timestamp`.
        fields: Object,
    },
}

/// A compaction to append.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewCompaction {
    /// The summary.
    pub summary: String,
    /// The first entry that is kept; `None` keeps none.
    pub first_kept: Option<String>,
    /// Number of tokens in the context before the compaction.
    pub tokens_before: u64,
    /// `readFiles`, `modifiedFiles`.
    pub details: Option<Json>,
    /// The usage of the summary.
    pub usage: Option<Json>,
    /// Whether an extension made it.
    pub from_hook: bool,
}

/// A branch summary to append.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewBranchSummary {
    /// The summary.
    pub summary: String,
    /// `readFiles`, `modifiedFiles`.
    pub details: Option<Json>,
    /// The usage of the summary.
    pub usage: Option<Json>,
    /// Whether an extension made it.
    pub from_hook: bool,
}
