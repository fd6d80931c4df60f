//! Appends entries and moves the leaf.
//!
//! The fields of an entry are in the order in which pi 0.87.1 writes them.

use crate::{
    context::{self, messages::Context},
    entry::{Entry, EntryKey, EntryKind, LEAF_TYPE, NewBranchSummary, NewCompaction, NewEntry},
    json::{Json, Object},
    stamp::{Stamp, entry_id},
    time::to_iso,
    tree::entries::Tree,
};

/// Why an operation on a tree failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// There is no such entry.
    #[error("no entry `{0}` in this session")]
    NotFound(String),
    /// The entry is not on the path from the root to the leaf.
    #[error("entry `{0}` is not on the active branch")]
    NotOnPath(String),
    /// The entry has no content for the model that could be replaced.
    #[error("entry `{0}` has no content for the model that could be edited")]
    NotEditable(String),
    /// The replacement is not valid content.
    #[error("the new content must be a string or an array of content blocks")]
    NoContent,
    /// The entry is not a user message, so it cannot be edited.
    #[error("entry `{0}` is not a user message")]
    NotAUserMessage(String),
}

impl Tree {
    /// Appends an entry after the leaf and makes it the new leaf. Returns its index.
    ///
    /// # Errors
    /// The target of a label or an edit is missing or not editable.
    pub fn append(&mut self, new: NewEntry, stamp: Stamp) -> Result<usize, TreeError> {
        let parent = self.leaf_key();
        let entry = self.make(new, &parent, stamp)?;
        Ok(self.append_entry(entry))
    }

    /// Moves the leaf to an entry: the next entry starts a branch there.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn branch(&mut self, id: &str) -> Result<(), TreeError> {
        self.leaf = Some(self.index(id)?);
        Ok(())
    }

    /// Moves the leaf before all entries: the next entry is a root.
    pub fn reset_leaf(&mut self) {
        self.leaf = None;
    }

    /// Moves the leaf (`None`: before all entries) and appends a summary of the abandoned branch there. Returns the
    /// index of the summary.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn branch_with_summary(
        &mut self,
        id: Option<&str>,
        new: NewBranchSummary,
        stamp: Stamp,
    ) -> Result<usize, TreeError> {
        let from = self.leaf_id().unwrap_or("root").to_owned();
        self.leaf = id.map(|id| self.index(id)).transpose()?;
        let own = Object::new()
            .with("fromId", from)
            .with("summary", new.summary)
            .with_some("details", new.details)
            .with_some("usage", new.usage)
            .with_some("fromHook", new.from_hook.then_some(true));
        let entry = self.stamped("branch_summary", own, &self.leaf_key(), stamp);
        Ok(self.append_entry(entry))
    }

    /// Appends the entry that records the position of the leaf as the last line of the file: a `custom` entry after the
    /// leaf, which does not move. pi, for which the last line is the leaf, is then at the same position.
    pub fn record_leaf(&mut self, stamp: Stamp) -> usize {
        let (leaf, key) = (self.leaf, self.leaf_key());
        let data = Object::new().with("leafId", json_of(&key));
        let own = Object::new().with("customType", LEAF_TYPE).with("data", data);
        let entry = self.stamped("custom", own, &key, stamp);
        let index = self.append_entry(entry);
        self.leaf = leaf;
        index
    }

    /// Whether a reader of a file that ends here finds the leaf at its current position.
    #[must_use]
    pub fn is_leaf_kept(&self) -> bool {
        self.leaf == self.leaf_of_last()
    }

    /// Removes the last entries, so that the tree has `len`, and restores the leaf: undoes a change that could not be
    /// written.
    pub(crate) fn roll_back(&mut self, len: usize, leaf: Option<usize>) {
        let header = self.header.clone();
        let mut entries = std::mem::take(&mut self.entries);
        entries.truncate(len);
        *self = Self::new(header, entries);
        self.leaf = leaf.filter(|leaf| *leaf < len);
    }

    /// Drops the texts of an entry, which are in the file.
    pub(crate) fn release(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.release();
        }
    }

    /// The same tree with the entries of a file; `None` if their ids differ.
    pub(crate) fn with_entries(&self, entries: Vec<Entry>) -> Option<Self> {
        let keys = |entries: &[Entry]| entries.iter().map(|entry| entry.key().clone()).collect::<Vec<_>>();
        if keys(&entries) != keys(&self.entries) {
            return None;
        }
        let mut tree = Self::new(self.header.clone(), entries);
        tree.leaf = self.leaf;
        Some(tree)
    }

    pub(crate) fn leaf_index(&self) -> Option<usize> {
        self.leaf
    }

    fn index(&self, id: &str) -> Result<usize, TreeError> {
        self.by_id.get(&EntryKey::from(id)).copied().ok_or_else(|| TreeError::NotFound(id.to_owned()))
    }

    fn leaf_key(&self) -> EntryKey {
        self.leaf().map_or(EntryKey::Null, |leaf| leaf.key().clone())
    }

    fn append_entry(&mut self, entry: Entry) -> usize {
        let index = self.entries.len();
        self.push(entry);
        self.leaf = Some(index);
        index
    }

    fn make(&self, new: NewEntry, parent: &EntryKey, stamp: Stamp) -> Result<Entry, TreeError> {
        let (name, own) = match new {
            NewEntry::Message(message) => ("message", Object::new().with("message", message)),
            NewEntry::ThinkingLevelChange(level) => {
                ("thinking_level_change", Object::new().with("thinkingLevel", level))
            }
            NewEntry::ModelChange { provider, model } => {
                ("model_change", Object::new().with("provider", provider).with("modelId", model))
            }
            NewEntry::Compaction(new) => return Ok(self.compaction(new, parent, stamp)),
            NewEntry::Custom { custom_type, data } => {
                return Ok(self.custom(
                    "custom",
                    Object::new().with("customType", custom_type).with_some("data", data),
                    parent,
                    stamp,
                ));
            }
            NewEntry::CustomMessage { custom_type, content, display, details } => {
                let own = Object::new()
                    .with("customType", custom_type)
                    .with("content", content)
                    .with("display", display)
                    .with_some("details", details);
                return Ok(self.custom("custom_message", own, parent, stamp));
            }
            NewEntry::Label { target, text } => {
                self.index(&target)?;
                ("label", Object::new().with("targetId", target).with_some("label", text.filter(|t| !t.is_empty())))
            }
            NewEntry::SessionInfo { name } => ("session_info", Object::new().with("name", one_line(&name))),
            NewEntry::ContextEdit { target, content } => ("context_edit", self.edit(target, content)?),
            NewEntry::Usage { kind, provider, model, usage, note } => {
                let own = Object::new().with("kind", kind).with("provider", provider).with("model", model);
                ("usage", own.with("usage", usage).with_some("note", note.filter(|n| !n.is_empty())))
            }
            NewEntry::Other { name, fields } => return Ok(self.stamped(&name, fields, parent, stamp)),
        };
        Ok(self.stamped(name, own, parent, stamp))
    }

    fn new_id(&self, stamp: Stamp) -> String {
        entry_id(stamp, |id| self.by_id.contains_key(&EntryKey::from(id)))
    }

    /// `type`, `id`, `parentId`, `timestamp`, then its own fields.
    fn stamped(&self, name: &str, own: Object, parent: &EntryKey, stamp: Stamp) -> Entry {
        let mut fields = Object::new()
            .with("type", name)
            .with("id", self.new_id(stamp))
            .with("parentId", json_of(parent))
            .with("timestamp", to_iso(stamp.now_ms));
        for (key, value) in own.iter().filter(|(key, _)| !matches!(*key, "type" | "id" | "parentId" | "timestamp")) {
            fields.set(key, value.clone());
        }
        Entry::read(fields)
    }

    /// `type`, its own fields, then `id`, `parentId`, `timestamp`.
    fn custom(&self, name: &str, own: Object, parent: &EntryKey, stamp: Stamp) -> Entry {
        let mut fields = Object::new().with("type", name);
        for (key, value) in own.iter() {
            fields.set(key, value.clone());
        }
        let fields = fields.with("id", self.new_id(stamp)).with("parentId", json_of(parent));
        Entry::read(fields.with("timestamp", to_iso(stamp.now_ms)))
    }

    fn compaction(&self, new: NewCompaction, parent: &EntryKey, stamp: Stamp) -> Entry {
        let system = context::system_message(&Context::of(self, self.leaf()));
        let own = Object::new().with("summary", new.summary);
        let entry = self.stamped("compaction", own, parent, stamp);
        // Its own id does not occur before it: nothing is kept.
        let first_kept = new.first_kept.or_else(|| entry.id().map(str::to_owned)).unwrap_or_default();
        let fields = entry
            .fields()
            .clone()
            .with("firstKeptEntryId", first_kept)
            .with("tokensBefore", new.tokens_before)
            .with_some("details", new.details)
            .with_some("usage", new.usage)
            .with_some("fromHook", new.from_hook.then_some(true))
            .with_some("systemMessage", system.map(|message| message.with("timestamp", stamp.now_ms)));
        Entry::read(fields)
    }

    fn edit(&self, target: String, content: Option<Json>) -> Result<Object, TreeError> {
        if content.as_ref().is_some_and(|c| c.as_str().is_none() && c.as_array().is_none()) {
            return Err(TreeError::NoContent);
        }
        let index = self.index(&target)?;
        let entry = &self.entries[index];
        if !self.leaf_path().iter().any(|on_path| on_path.key() == entry.key()) {
            return Err(TreeError::NotOnPath(target));
        }
        let role = entry.role();
        if entry.kind() != EntryKind::CustomMessage && !matches!(role, Some("user" | "assistant" | "toolResult")) {
            return Err(TreeError::NotEditable(target));
        }
        let replacement = content.map_or(Json::Null, |content| {
            let content =
                if matches!(role, Some("assistant" | "toolResult")) { context::blocks(content) } else { content };
            Object::new().with("content", content).into()
        });
        Ok(Object::new().with("targetId", target).with("replacement", replacement))
    }
}

fn json_of(key: &EntryKey) -> Json {
    match key {
        EntryKey::Text(id) => Json::String(id.clone()),
        // A parent that is not a string is never rewritten: the entry would be detached anyway.
        EntryKey::Absent | EntryKey::Null | EntryKey::Other(_) => Json::Null,
    }
}

/// A name reduced to one line.
fn one_line(name: &str) -> String {
    name.split(['\r', '\n']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ").trim().to_owned()
}
