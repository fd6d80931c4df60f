//! The entries of a session as a tree: paths, children, labels, the leaf.

use std::collections::{HashMap, HashSet};

use crate::{
    document::{SessionDocument, SessionHeader},
    entry::{Entry, EntryBody, EntryKey},
    json::Json,
};

/// A session's entries.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(super) header: SessionHeader,
    pub(super) entries: Vec<Entry>,
    pub(super) by_id: HashMap<EntryKey, usize>,
    pub(super) children: HashMap<EntryKey, Vec<usize>>,
    pub(super) labels: HashMap<EntryKey, EntryLabel>,
    /// Number of labels ever set: it orders them.
    pub(super) marked: u64,
    pub(super) leaf: Option<usize>,
    /// Whether an id is duplicated: then an entry may not follow the one before it in the file.
    has_repeated_ids: bool,
}

/// A label on an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryLabel {
    /// The text.
    pub text: String,
    /// When it was set, as written.
    pub timestamp: Option<String>,
    pub(super) label: Json,
    pub(super) written_at: Option<Json>,
    pub(super) order: u64,
}

impl EntryLabel {
    /// The label as written, even if it is not a string.
    #[must_use]
    pub fn label(&self) -> &Json {
        &self.label
    }

    /// When it was set, even if it is not a string.
    #[must_use]
    pub fn written_at(&self) -> Option<&Json> {
        self.written_at.as_ref()
    }
}

impl From<SessionDocument> for Tree {
    fn from(document: SessionDocument) -> Self {
        Self::new(document.header, document.entries)
    }
}

impl Tree {
    /// A tree of entries in the order of their file. The leaf is the last entry, or the target of a later move.
    #[must_use]
    pub fn new(header: SessionHeader, entries: Vec<Entry>) -> Self {
        let mut tree = Self {
            header,
            entries: Vec::with_capacity(entries.len()),
            by_id: HashMap::with_capacity(entries.len()),
            children: HashMap::with_capacity(entries.len()),
            labels: HashMap::new(),
            marked: 0,
            leaf: None,
            has_repeated_ids: false,
        };
        for entry in entries {
            tree.push(entry);
        }
        tree.leaf = tree.leaf_of_last();
        tree
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// The entries in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry with an id.
    #[must_use]
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.by_key(&EntryKey::from(id))
    }

    /// The entry with an id, as written.
    #[must_use]
    pub fn by_key(&self, key: &EntryKey) -> Option<&Entry> {
        self.by_id.get(key).map(|index| &self.entries[*index])
    }

    /// The entry that the next one will follow; `None` before all entries.
    #[must_use]
    pub fn leaf(&self) -> Option<&Entry> {
        self.leaf.map(|index| &self.entries[index])
    }

    /// The leaf's id.
    #[must_use]
    pub fn leaf_id(&self) -> Option<&str> {
        self.leaf().and_then(Entry::id)
    }

    /// The entry's parent; `None` for a root or if the parent is missing.
    #[must_use]
    pub fn parent(&self, entry: &Entry) -> Option<&Entry> {
        match entry.parent() {
            EntryKey::Absent | EntryKey::Null => None,
            EntryKey::Text(id) if id.is_empty() => None,
            // Values that are falsy in JavaScript.
            EntryKey::Other(text) if text == "0" || text == "false" => None,
            key @ (EntryKey::Text(_) | EntryKey::Other(_)) => self.by_key(key).filter(|_| key.finds()),
        }
    }

    /// The entries whose parent has this id, in the order of the file; for `None`, those whose parent is `null`.
    pub fn children(&self, id: Option<&str>) -> impl Iterator<Item = &Entry> {
        let key = id.map_or(EntryKey::Null, EntryKey::from);
        let found = self.children.get(&key).map_or(&[][..], Vec::as_slice);
        // Of entries with the same id, only the last counts.
        found
            .iter()
            .filter(|index| self.by_id.get(self.entries[**index].key()) == Some(index))
            .map(|i| &self.entries[*i])
    }

    /// The entries from the root to this one. Ends before an entry would be repeated.
    #[must_use]
    pub fn path<'a>(&'a self, entry: Option<&'a Entry>) -> Vec<&'a Entry> {
        let (mut path, mut seen, mut at) = (Vec::new(), HashSet::new(), entry);
        while let Some(entry) = at.filter(|e| seen.insert(std::ptr::from_ref::<Entry>(e))) {
            path.push(entry);
            at = self.parent(entry);
        }
        path.reverse();
        path
    }

    /// The entries from the root to the leaf.
    #[must_use]
    pub fn leaf_path(&self) -> Vec<&Entry> {
        // Most entries follow the preceding one in the file; those need no lookup.
        let follows = |index: usize| {
            let before = index.checked_sub(1).map(|before| &self.entries[before])?;
            let is_before = !self.has_repeated_ids
                && matches!(before.key(), EntryKey::Text(id) if !id.is_empty())
                && self.entries[index].parent() == before.key();
            is_before.then_some(index - 1)
        };
        let (mut tail, mut at) = (Vec::new(), self.leaf);
        while let Some((index, before)) = at.and_then(|index| Some((index, follows(index)?))) {
            tail.push(&self.entries[index]);
            at = Some(before);
        }
        let mut path = self.path(at.map(|index| &self.entries[index]));
        // In a damaged file an entry may follow a later one and form a cycle.
        let is_later = |entry: &&Entry| tail.iter().any(|passed| std::ptr::eq(*passed, *entry));
        let goes_forward = at.is_some_and(|at| path.iter().any(|entry| self.index_of(entry) > Some(at)));
        if goes_forward && path.iter().any(is_later) {
            return self.path(self.leaf());
        }
        path.extend(tail.into_iter().rev());
        path
    }

    /// The index of an entry; of entries with the same id, the last.
    fn index_of(&self, entry: &Entry) -> Option<usize> {
        self.by_id.get(entry.key()).copied()
    }

    /// The label on an entry.
    #[must_use]
    pub fn label(&self, id: &str) -> Option<&EntryLabel> {
        self.labels.get(&EntryKey::from(id))
    }

    pub(crate) fn mark(&self, key: &EntryKey) -> Option<&EntryLabel> {
        self.labels.get(key)
    }

    /// All labels with the ids they are on, in the order in which they were set, including labels of missing entries.
    #[must_use]
    pub fn labels(&self) -> Vec<(&str, &EntryLabel)> {
        let mut all: Vec<_> = self.labels.iter().filter_map(|(key, mark)| Some((key.as_str()?, mark))).collect();
        all.sort_by_key(|(_, mark)| mark.order);
        all
    }

    /// The session's name: the last one set anywhere in the tree.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let last = self.entries.iter().rev().find_map(|entry| match entry.body() {
            EntryBody::SessionInfo(name) => Some(name),
            EntryBody::Message(_)
            | EntryBody::ThinkingLevelChange(_)
            | EntryBody::ModelChange(_)
            | EntryBody::Compaction(_)
            | EntryBody::BranchSummary(_)
            | EntryBody::Custom(_)
            | EntryBody::CustomMessage(_)
            | EntryBody::Label(_)
            | EntryBody::SessionInit(_)
            | EntryBody::TtsrInjection(_)
            | EntryBody::ContextEdit(_)
            | EntryBody::Usage(_)
            | EntryBody::Unknown(_) => None,
        });
        last.flatten().map(str::trim).filter(|name| !name.is_empty())
    }

    /// The deepest entry on the paths of both.
    #[must_use]
    pub fn common_ancestor<'a>(&'a self, a: Option<&'a Entry>, b: Option<&'a Entry>) -> Option<&'a Entry> {
        let of_a: HashSet<&EntryKey> = self.path(a).into_iter().map(Entry::key).collect();
        self.path(b).into_iter().rev().find(|entry| of_a.contains(entry.key()))
    }

    /// Adds an entry at the end of the file. Does not move the leaf.
    pub(super) fn push(&mut self, entry: Entry) {
        let index = self.entries.len();
        if let EntryBody::Label(label) = entry.body() {
            self.marked += 1;
            match label.text {
                None => drop(self.labels.remove(&label.target)),
                Some(label_text) => {
                    let text = label_text.as_str().map_or_else(|| label_text.to_text(), str::to_owned);
                    let order = self.labels.get(&label.target).map_or(self.marked, |mark| mark.order);
                    let timestamp = entry.timestamp().map(str::to_owned);
                    let written_at = entry.fields().get("timestamp").cloned();
                    self.labels.insert(
                        label.target,
                        EntryLabel { text, timestamp, label: label_text.clone(), written_at, order },
                    );
                }
            }
        }
        self.has_repeated_ids |= self.by_id.insert(entry.key().clone(), index).is_some();
        self.children.entry(entry.parent().clone()).or_default().push(index);
        self.entries.push(entry);
    }

    /// The position of the leaf after the last line: that entry, or the target of the move it records.
    pub(super) fn leaf_of_last(&self) -> Option<usize> {
        let last = self.entries.len().checked_sub(1)?;
        // The leaf's id is `null`: the position before all entries.
        if *self.entries[last].key() == EntryKey::Null {
            return None;
        }
        match self.entries[last].leaf_move() {
            None => Some(last),
            Some(EntryKey::Null) => None,
            // A move to a missing entry was not written by this program.
            Some(key) => Some(self.by_id.get(&key).copied().unwrap_or(last)),
        }
    }
}
