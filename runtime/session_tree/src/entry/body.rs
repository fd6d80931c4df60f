//! Typed views of entries. Each view borrows the fields of its entry and reads them on request.

use crate::{
    entry::key::{EntryKey, whole},
    json::{Json, Object},
};

/// What an entry says. Borrows from the entry.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryBody<'a> {
    /// The message; nothing when the entry has none, which is damage.
    Message(Option<&'a Object>),
    /// The level, for instance `high`.
    ThinkingLevelChange(Option<&'a Json>),
    /// The model from here on.
    ModelChange(Model<'a>),
    /// A summary for what came before it.
    Compaction(Compaction<'a>),
    /// A summary of a branch that was left.
    BranchSummary(BranchSummary<'a>),
    /// State of an extension, or a move of the leaf ([`LEAF_TYPE`](super::LEAF_TYPE)).
    Custom(Custom<'a>),
    /// A message of an extension.
    CustomMessage(CustomMessage<'a>),
    /// A bookmark.
    Label(Label<'a>),
    /// The session's name.
    SessionInfo(Option<&'a str>),
    /// All fields.
    SessionInit(&'a Object),
    /// All fields.
    TtsrInjection(&'a Object),
    /// Another content for an earlier entry.
    ContextEdit(ContextEdit<'a>),
    /// All fields.
    Usage(&'a Object),
    /// All fields.
    Unknown(&'a Object),
}

/// A model, as entries and messages name it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model<'a> {
    /// The provider; a string but for damage.
    pub provider: Option<&'a Json>,
    /// The model's id; a string but for damage.
    pub id: Option<&'a Json>,
    /// `provider/id` in one, as oh-my-pi writes it.
    pub both: Option<&'a str>,
}

/// A compaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction<'a> {
    pub(super) fields: &'a Object,
}

impl<'a> Compaction<'a> {
    /// The summary.
    #[must_use]
    pub fn summary(&self) -> Option<&'a str> {
        self.fields.text("summary")
    }

    /// The first entry that is kept unchanged.
    #[must_use]
    pub fn first_kept(&self) -> EntryKey {
        EntryKey::of(self.fields.get("firstKeptEntryId"))
    }

    /// How many tokens the context had before.
    #[must_use]
    pub fn tokens_before(&self) -> Option<u64> {
        self.fields.get("tokensBefore").and_then(Json::as_f64).and_then(whole)
    }

    /// What the summarizer told beside the summary: `readFiles`, `modifiedFiles`.
    #[must_use]
    pub fn details(&self) -> Option<&'a Json> {
        self.fields.get("details").filter(|d| d.is_truthy())
    }

    /// Whether an extension made it.
    #[must_use]
    pub fn is_from_hook(&self) -> bool {
        self.fields.get("fromHook").is_some_and(Json::is_truthy)
    }

    /// The system prompt and tools as they stood.
    #[must_use]
    pub fn system_message(&self) -> Option<&'a Object> {
        self.fields.get("systemMessage").and_then(Json::as_object)
    }

    pub(crate) fn fields(&self) -> &'a Object {
        self.fields
    }
}

/// A summary of a branch that was left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BranchSummary<'a> {
    pub(super) fields: &'a Object,
}

impl<'a> BranchSummary<'a> {
    /// The summary.
    #[must_use]
    pub fn summary(&self) -> Option<&'a str> {
        self.fields.text("summary")
    }

    /// The leaf that was left (0.87), or the point of the branch (before); `root` for none.
    #[must_use]
    pub fn from_id(&self) -> Option<&'a str> {
        self.fields.text("fromId")
    }

    /// `readFiles`, `modifiedFiles`.
    #[must_use]
    pub fn details(&self) -> Option<&'a Json> {
        self.fields.get("details").filter(|d| d.is_truthy())
    }

    /// Whether an extension made it.
    #[must_use]
    pub fn is_from_hook(&self) -> bool {
        self.fields.get("fromHook").is_some_and(Json::is_truthy)
    }

    pub(crate) fn fields(&self) -> &'a Object {
        self.fields
    }
}

/// State of an extension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Custom<'a> {
    pub(super) fields: &'a Object,
}

impl<'a> Custom<'a> {
    /// Whose it is.
    #[must_use]
    pub fn custom_type(&self) -> Option<&'a str> {
        self.fields.text("customType")
    }

    /// The state.
    #[must_use]
    pub fn data(&self) -> Option<&'a Json> {
        self.fields.get("data")
    }
}

/// A message of an extension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CustomMessage<'a> {
    pub(super) fields: &'a Object,
}

impl<'a> CustomMessage<'a> {
    /// Whose it is.
    #[must_use]
    pub fn custom_type(&self) -> Option<&'a str> {
        self.fields.text("customType")
    }

    /// A string, or an array of blocks.
    #[must_use]
    pub fn content(&self) -> Option<&'a Json> {
        self.fields.get("content")
    }

    /// Whether people see it.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.fields.get("display").is_some_and(Json::is_truthy)
    }

    pub(crate) fn fields(&self) -> &'a Object {
        self.fields
    }
}

/// A bookmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Label<'a> {
    /// The entry it is on.
    pub target: EntryKey,
    /// The text; nothing when the label is taken off. A string but for what other programs wrote wrong.
    pub text: Option<&'a Json>,
}

/// Another content for an earlier entry.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextEdit<'a> {
    /// The entry.
    pub target: EntryKey,
    /// `{content}`; `null` leaves the entry out.
    pub replacement: Option<&'a Json>,
}
