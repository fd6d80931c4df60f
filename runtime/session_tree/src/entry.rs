//! One entry of a session: a line of its file.
//!
//! An [`Entry`] contains the object that was read, complete and in order, so that writing it again loses nothing, and
//! the fields the tree needs: id, parent, time, kind. [`Entry::body`] is a typed view that borrows from it.
//! [`NewEntry`] is an entry that has no id yet.
//!
//! Source of the format: pi 0.87.1 (`dist/core/session-manager.js`), which does not validate what it reads. Nothing
//! here does either: settings and labels of a wrong type are passed on unchanged, any other field of a wrong type
//! counts as absent.

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

/// Type of the `custom` entries that record a move of the leaf, see [`EntryBody::Custom`].
pub const LEAF_TYPE: &str = "capture.leaf";

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kinds of entries.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EntryKind {
            $($(#[$doc])* $kind,)*
            /// An unknown kind. It is preserved and has its place in the tree.
            Unknown,
        }

        impl EntryKind {
            /// The kind with this `type`.
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
    /// A change of the thinking level.
    ThinkingLevelChange = "thinking_level_change",
    /// A change of the model.
    ModelChange = "model_change",
    /// A summary that replaces the entries before it.
    Compaction = "compaction",
    /// A summary of an abandoned branch.
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
    /// A replacement for the content of an earlier entry, or its removal.
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
    /// Makes an entry of an object from a file.
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

    /// All fields that were read, including unknown ones, unless the entry [is released](Self::is_released).
    #[must_use]
    pub fn fields(&self) -> &Object {
        &self.fields
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The `type`, as written.
    #[must_use]
    pub fn type_name(&self) -> Option<&str> {
        self.fields.text("type")
    }

    /// The id; `None` if it is missing or not a string.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.key.as_str()
    }

    /// The id, as written.
    #[must_use]
    pub fn key(&self) -> &EntryKey {
        &self.key
    }

    /// The parent's id; `None` for a root.
    #[must_use]
    pub fn parent_id(&self) -> Option<&str> {
        self.parent.as_str()
    }

    /// The parent's id, as written.
    #[must_use]
    pub fn parent(&self) -> &EntryKey {
        &self.parent
    }

    /// The timestamp, as written.
    #[must_use]
    pub fn timestamp(&self) -> Option<&str> {
        self.fields.text("timestamp")
    }

    /// The timestamp in milliseconds since 1970; `None` if it is invalid.
    #[must_use]
    pub fn at_ms(&self) -> Option<i64> {
        self.at_ms
    }

    /// The line of the file, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        self.fields.to_text()
    }

    /// The typed view of the entry.
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

    /// The message, if the entry is a message entry and has one.
    #[must_use]
    pub fn message(&self) -> Option<&Object> {
        if let EntryBody::Message(message) = self.body() { message } else { None }
    }

    /// The role of the message, if there is one.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.message().and_then(|m| m.text("role"))
    }

    /// The target of a leaf move, if the entry records one: an id, or the position before all entries (`Key::Null`).
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

    /// The entry with one field changed.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.fields.set(key, value);
        Self::read(self.fields)
    }
}

fn label_of(fields: &Object) -> Option<&Json> {
    fields.get("label").filter(|text| text.is_truthy())
}
