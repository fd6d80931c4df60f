//! Typed views of entries. Each view borrows the fields of its entry and reads them on request.

use crate::{
    entry::key::{EntryKey, whole},
    json::{Json, Object},
};

/// The typed view of an entry. Borrows from the entry.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryBody<'a> {
    /// The message; `None` in a damaged entry without one.
    Message(Option<&'a Object>),
    /// The level, for instance `high`.
    ThinkingLevelChange(Option<&'a Json>),
    /// The model from this point on.
    ModelChange(Model<'a>),
    /// A summary that replaces the entries before it.
    Compaction(Compaction<'a>),
    /// A summary of an abandoned branch.
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
    /// A replacement for the content of an earlier entry.
    ContextEdit(ContextEdit<'a>),
    /// All fields.
    Usage(&'a Object),
    /// All fields.
    Unknown(&'a Object),
}

/// A model, as entries and messages name it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model<'a> {
    /// The provider; a string unless damaged.
    pub provider: Option<&'a Json>,
    /// The model's id; a string unless damaged.
    pub id: Option<&'a Json>,
    /// `provider/id` in one string, as oh-my-pi writes it.
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

    /// Number of tokens in the context before the compaction.
    #[must_use]
    pub fn tokens_before(&self) -> Option<u64> {
        self.fields.get("tokensBefore").and_then(Json::as_f64).and_then(whole)
    }

    /// Data of the summarizer besides the summary: `readFiles`, `modifiedFiles`.
    #[must_use]
    pub fn details(&self) -> Option<&'a Json> {
        self.fields.get("details").filter(|d| d.is_truthy())
    }

    /// Whether an extension made it.
    #[must_use]
    pub fn is_from_hook(&self) -> bool {
        self.fields.get("fromHook").is_some_and(Json::is_truthy)
    }

    /// The system prompt and tools at the time.
    #[must_use]
    pub fn system_message(&self) -> Option<&'a Object> {
        self.fields.get("systemMessage").and_then(Json::as_object)
    }

    pub(crate) fn fields(&self) -> &'a Object {
        self.fields
    }
}

/// A summary of an abandoned branch.
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

    /// The abandoned leaf (0.87), or the branching point (earlier versions); `root` for none.
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
    /// The type that identifies its extension.
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
    /// The type that identifies its extension.
    #[must_use]
    pub fn custom_type(&self) -> Option<&'a str> {
        self.fields.text("customType")
    }

    /// A string, or an array of blocks.
    #[must_use]
    pub fn content(&self) -> Option<&'a Json> {
        self.fields.get("content")
    }

    /// Whether users see it.
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
    /// The labelled entry.
    pub target: EntryKey,
    /// The text; `None` removes the label. A string unless another program wrote something else.
    pub text: Option<&'a Json>,
}

/// A replacement for the content of an earlier entry.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextEdit<'a> {
    /// The edited entry.
    pub target: EntryKey,
    /// `{content}`; `null` removes the entry from the context.
    pub replacement: Option<&'a Json>,
}
