//! Entries to append, without id, parent and time.

use crate::json::{Json, Object};

/// What can be appended.
#[derive(Debug, Clone, PartialEq)]
pub enum NewEntry {
    /// A message, as the format has it: `role`, `content`, `timestamp` and what belongs to the role.
    Message(Object),
    /// Another level of thinking.
    ThinkingLevelChange(String),
    /// Another model.
    ModelChange {
        /// The provider.
        provider: String,
        /// The model's id.
        model: String,
    },
    /// A summary for what came before.
    Compaction(NewCompaction),
    /// State of an extension.
    Custom {
        /// Whose it is.
        custom_type: String,
        /// The state.
        data: Option<Json>,
    },
    /// A message of an extension.
    CustomMessage {
        /// Whose it is.
        custom_type: String,
        /// A string, or an array of blocks.
        content: Json,
        /// Whether people see it.
        display: bool,
        /// What no model sees.
        details: Option<Json>,
    },
    /// A label on an entry, or its end.
    Label {
        /// The entry.
        target: String,
        /// The text; nothing takes the label off.
        text: Option<String>,
    },
    /// The session's name; an empty one takes it away.
    SessionInfo {
        /// The name.
        name: String,
    },
    /// Another content for an entry on the path; `None` leaves it out.
    ContextEdit {
        /// The entry.
        target: String,
        /// A string, or an array of blocks.
        content: Option<Json>,
    },
    /// Usage outside the conversation.
    Usage {
        /// What for.
        kind: String,
        /// The provider.
        provider: String,
        /// The model's id.
        model: String,
        /// The numbers.
        usage: Json,
        /// A remark.
        note: Option<String>,
    },
    /// Any other: its `type` and its own fields (`session_init`, `ttsr_injection`, a foreign one).
    Other {
        /// The `type`.
        name: String,
        /// Its fields, without `type`, `id`, `parentId` and `timestamp`.
        fields: Object,
    },
}

/// A compaction that is to be appended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewCompaction {
    /// The summary.
    pub summary: String,
    /// The first entry that is kept; nothing keeps none.
    pub first_kept: Option<String>,
    /// How many tokens the context had before.
    pub tokens_before: u64,
    /// `readFiles`, `modifiedFiles`.
    pub details: Option<Json>,
    /// What the summary cost.
    pub usage: Option<Json>,
    /// Whether an extension made it.
    pub from_hook: bool,
}

/// What a branch that is left leaves behind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewBranchSummary {
    /// The summary.
    pub summary: String,
    /// `readFiles`, `modifiedFiles`.
    pub details: Option<Json>,
    /// What the summary cost.
    pub usage: Option<Json>,
    /// Whether an extension made it.
    pub from_hook: bool,
}
