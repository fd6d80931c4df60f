//! Creates a new session from a path of another one: `createBranchedSession`, `/fork` and `forkFrom` of pi 0.87.1.
//!
//! Labels are part of the chain of entries, but refer to entries that may not be on the path. They are removed, the
//! chain is closed, and labels of copied entries are appended at its end.

use std::collections::{HashMap, HashSet};

use crate::{
    context::messages::text_of,
    document::SessionHeader,
    entry::{Entry, EntryKey, EntryKind},
    json::{Json, Object},
    stamp::{Stamp, entry_id},
    tree::{append::TreeError, entries::Tree},
};

/// A session forked before a user message.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The new session: the entries before the message.
    pub tree: Tree,
    /// The message's text, for editing.
    pub text: String,
}

impl Tree {
    /// A session with the path to an entry. Ids, timestamps and unknown fields are preserved.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn branched(&self, id: &str, header: SessionHeader, stamp: Stamp) -> Result<Self, TreeError> {
        let leaf = self.entry(id).ok_or_else(|| TreeError::NotFound(id.to_owned()))?;
        let mut entries = without_labels(&self.path(Some(leaf)));
        let mut taken: HashSet<EntryKey> = entries.iter().map(|entry| entry.key().clone()).collect();
        let mut parent = entries.last().map_or(EntryKey::Null, |entry| entry.key().clone());
        for (target, mark) in self.labels() {
            if !taken.contains(&EntryKey::from(target)) {
                continue;
            }
            let id = entry_id(stamp, |id| taken.contains(&EntryKey::from(id)));
            let fields = Object::new()
                .with("type", "label")
                .with("id", id.as_str())
                .with("parentId", parent.as_str().map_or(Json::Null, Json::from))
                .with_some("timestamp", mark.written_at().cloned())
                .with("targetId", target)
                .with("label", mark.label().clone());
            entries.push(Entry::read(fields));
            parent = EntryKey::from(id.as_str());
            taken.insert(parent.clone());
        }
        Ok(Self::new(header, entries))
    }

    /// A session with the entries before a message of the user or of an extension, and the message's text.
    ///
    /// # Errors
    /// There is no such entry, or it is not a user message.
    pub fn forked(&self, id: &str, header: SessionHeader, stamp: Stamp) -> Result<Forked, TreeError> {
        let entry = self.entry(id).ok_or_else(|| TreeError::NotFound(id.to_owned()))?;
        let content = match (entry.kind(), entry.role()) {
            (EntryKind::CustomMessage, _) => entry.fields().get("content"),
            (EntryKind::Message, Some("user")) => entry.message().and_then(|message| message.get("content")),
            _ => return Err(TreeError::NotAUserMessage(id.to_owned())),
        };
        let text = content.map(|content| text_of(content, "")).unwrap_or_default();
        let tree = match self.parent(entry).and_then(Entry::id) {
            Some(parent) => self.branched(parent, header, stamp)?,
            None => Self::new(header, Vec::new()),
        };
        Ok(Forked { tree, text })
    }

    /// A session with all entries, for instance for another directory.
    #[must_use]
    pub fn copied(&self, header: SessionHeader) -> Self {
        Self::new(header, self.entries.clone())
    }
}

/// The path without its labels; an entry after a label gets the label's predecessor as its parent.
fn without_labels(path: &[&Entry]) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::with_capacity(path.len());
    let (mut waiting, mut instead) = (Vec::new(), HashMap::new());
    for entry in path {
        if entry.kind() == EntryKind::Label {
            waiting.push(entry.key().clone());
            continue;
        }
        instead.extend(waiting.drain(..).map(|label| (label, entry.key().clone())));
        let parent = kept.last().map_or(Json::Null, |last| last.fields().get("id").cloned().unwrap_or(Json::Null));
        let mut entry = (*entry).clone().with("parentId", parent);
        if entry.kind() == EntryKind::Compaction {
            let first_kept = EntryKey::of(entry.fields().get("firstKeptEntryId"));
            if let Some(EntryKey::Text(id)) = instead.get(&first_kept).filter(|_| first_kept != *entry.key()) {
                entry = entry.with("firstKeptEntryId", id.as_str());
            }
        }
        kept.push(entry);
    }
    kept
}
