//! One entry of a session: a line of its file.
//!
//! An [`Entry`] is the object that was read, whole and in its order, so that writing it again loses nothing,
//! and what the tree needs of it: id, parent, moment, kind. [`Entry::body`] is the typed view; it borrows.
//! [`NewEntry`] is one that has no id yet.
//!
//! Source of the format: pi 0.87.1 (`dist/core/session-manager.js`), which does not check what it reads.
//! So nothing here does: settings and labels of a wrong type are handed on as they are, any other field of a
//! wrong type counts as absent.

mod body;
mod key;
mod new;
mod released;

pub use body::{BranchSummary, Compaction, ContextEdit, Custom, CustomMessage, EntryBody, Label, Model};
pub use key::EntryKey;
pub(crate) use key::whole;
pub use new::{NewBranchSummary, NewCompaction, NewEntry};

use crate::{
    json::{Json, Object},
    time,
};

/// Type of the `custom` entries by which a move of the leaf is kept, see [`EntryBody::Custom`].
pub const LEAF_TYPE: &str = "capture.leaf";

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kinds of entries.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EntryKind {
            $($(#[$doc])* $kind,)*
            /// One we do not know. It is kept, and has its place in the tree.
            Unknown,
        }

        impl EntryKind {
            /// The kind of a `type`.
            #[must_use]
            pub fn of(name: Option<&str>) -> Self {
                match name {
                    $(Some($name) => Self::$kind,)*
                    Some(_) | None => Self::Unknown,
                }
            }
        }
    };
}

kinds! {
    /// A message of the conversation.
    Message = "message",
    /// Another level of thinking.
    ThinkingLevelChange = "thinking_level_change",
    /// Another model.
    ModelChange = "model_change",
    /// A summary that stands for what came before it.
    Compaction = "compaction",
    /// A summary of a branch that was left.
    BranchSummary = "branch_summary",
    /// State of an extension; no model sees it.
    Custom = "custom",
    /// A message of an extension, which the model sees.
    CustomMessage = "custom_message",
    /// A bookmark on another entry.
    Label = "label",
    /// The session's name.
    SessionInfo = "session_info",
    /// How a session was set up (oh-my-pi).
    SessionInit = "session_init",
    /// Rules that were shown to the model (oh-my-pi).
    TtsrInjection = "ttsr_injection",
    /// Another content for an earlier entry, or none.
    ContextEdit = "context_edit",
    /// Usage outside the conversation.
    Usage = "usage",
}

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    fields: Object,
    kind: EntryKind,
    key: EntryKey,
    parent: EntryKey,
    at_ms: Option<i64>,
    is_released: bool,
}

impl Entry {
    /// Takes an object of a file for an entry.
    #[must_use]
    pub fn read(fields: Object) -> Self {
        Self {
            kind: EntryKind::of(fields.text("type")),
            key: EntryKey::of(fields.get("id")),
            parent: EntryKey::of(fields.get("parentId")),
            at_ms: time::of_json(fields.get("timestamp")),
            is_released: false,
            fields,
        }
    }

    /// All that was read, unknown fields too, unless it [is released](Self::is_released).
    #[must_use]
    pub fn fields(&self) -> &Object {
        &self.fields
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The `type` as it was written.
    #[must_use]
    pub fn type_name(&self) -> Option<&str> {
        self.fields.text("type")
    }

    /// The id; nothing when there is none, or none that is a string.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.key.as_str()
    }

    /// The id as it was written.
    #[must_use]
    pub fn key(&self) -> &EntryKey {
        &self.key
    }

    /// The parent's id; nothing for a root.
    #[must_use]
    pub fn parent_id(&self) -> Option<&str> {
        self.parent.as_str()
    }

    /// The parent's id as it was written.
    #[must_use]
    pub fn parent(&self) -> &EntryKey {
        &self.parent
    }

    /// The timestamp as it was written.
    #[must_use]
    pub fn timestamp(&self) -> Option<&str> {
        self.fields.text("timestamp")
    }

    /// The timestamp in milliseconds since 1970; nothing when it is none.
    #[must_use]
    pub fn at_ms(&self) -> Option<i64> {
        self.at_ms
    }

    /// The line of the file, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        self.fields.to_text()
    }

    /// What the entry says, typed.
    #[must_use]
    pub fn body(&self) -> EntryBody<'_> {
        let fields = &self.fields;
        match self.kind {
            EntryKind::Message => EntryBody::Message(fields.get("message").and_then(Json::as_object)),
            EntryKind::ThinkingLevelChange => EntryBody::ThinkingLevelChange(fields.get("thinkingLevel")),
            EntryKind::ModelChange => EntryBody::ModelChange(Model {
                provider: fields.get("provider"),
                id: fields.get("modelId"),
                both: fields.text("model"),
            }),
            EntryKind::Compaction => EntryBody::Compaction(Compaction { fields }),
            EntryKind::BranchSummary => EntryBody::BranchSummary(BranchSummary { fields }),
            EntryKind::Custom => EntryBody::Custom(Custom { fields }),
            EntryKind::CustomMessage => EntryBody::CustomMessage(CustomMessage { fields }),
            EntryKind::Label => {
                EntryBody::Label(Label { target: EntryKey::of(fields.get("targetId")), text: label_of(fields) })
            }
            EntryKind::SessionInfo => EntryBody::SessionInfo(fields.text("name")),
            EntryKind::SessionInit => EntryBody::SessionInit(fields),
            EntryKind::TtsrInjection => EntryBody::TtsrInjection(fields),
            EntryKind::ContextEdit => EntryBody::ContextEdit(ContextEdit {
                target: EntryKey::of(fields.get("targetId")),
                replacement: fields.get("replacement"),
            }),
            EntryKind::Usage => EntryBody::Usage(fields),
            EntryKind::Unknown => EntryBody::Unknown(fields),
        }
    }

    /// The message, when the entry is one and has one.
    #[must_use]
    pub fn message(&self) -> Option<&Object> {
        if let EntryBody::Message(message) = self.body() { message } else { None }
    }

    /// The role of the message, when the entry is one and has one.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.message().and_then(|m| m.text("role"))
    }

    /// Where the leaf was moved to, when the entry keeps such a move of ours: an id, or before all
    /// entries (`Key::Null`).
    #[must_use]
    pub fn leaf_move(&self) -> Option<EntryKey> {
        let EntryBody::Custom(custom) = self.body() else { return None };
        if custom.custom_type() != Some(LEAF_TYPE) {
            return None;
        }
        match EntryKey::of(custom.data()?.as_object()?.get("leafId")) {
            EntryKey::Absent | EntryKey::Other(_) => None,
            key @ (EntryKey::Null | EntryKey::Text(_)) => Some(key),
        }
    }

    /// The same entry with fields changed.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.fields.set(key, value);
        Self::read(self.fields)
    }
}

fn label_of(fields: &Object) -> Option<&Json> {
    fields.get("label").filter(|text| text.is_truthy())
}
