//! A session open for writing: a [`Tree`] and its file.
//!
//! The file is created atomically with the first user message. After that, every entry is appended as one line with one
//! write: a program killed during a write leaves a truncated line, which readers skip and the next write terminates. An
//! entry that could not be written is removed from memory, so that no entry follows a missing one. A file of an older
//! version is rewritten before the first append, by replacing it with a new file; reading changes nothing.
//!
//! A long session can drop texts that are in the file ([`Session::release`]) and read them again
//! ([`Session::whole_tree`]).
//!
//! There is one writer: the file is locked (`flock`) while a session has it open, and appending fails if another
//! program has changed the file. This module must not decide what is appended.

mod disk;

use std::{
    borrow::Cow,
    fs::File,
    path::{Path, PathBuf},
};

pub use crate::session_error::SessionError;

use crate::{
    document::{DocumentIssue, DocumentRefusal, SessionDocument, SessionHeader},
    entry::{Entry, EntryKind, NewBranchSummary, NewEntry},
    sessions,
    stamp::Stamp,
    time::to_iso,
    tree::Tree,
};

/// A session that is open for writing.
#[derive(Debug)]
pub struct Session {
    tree: Tree,
    path: PathBuf,
    issues: Vec<DocumentIssue>,
    disk: FileState,
    held: HeldEntries,
}

/// Entries whose texts are in memory.
#[derive(Debug, Default)]
struct HeldEntries {
    /// Entries before this index were released.
    from: usize,
    /// Entries before this index were counted.
    to: usize,
    /// The approximate size of the entries in between, in bytes.
    bytes: usize,
}

/// The state of the file on disk.
#[derive(Debug)]
enum FileState {
    /// The file does not exist yet.
    Absent,
    /// The file contains everything in memory, up to `len`.
    Held { file: File, len: u64, open_end: bool },
    /// The file has an older format and this length, and must be rewritten before an append.
    Old { file: File, len: u64, document: Box<SessionDocument> },
}

/// A forked session, with the text of the message at the fork.
#[derive(Debug)]
pub struct ForkedSession {
    /// The new session.
    pub session: Session,
    /// The text of the message before which it was forked, for editing.
    pub text: String,
}

impl Session {
    /// A new session in a directory. Its file is created with the first user message.
    #[must_use]
    pub fn create(directory: &Path, cwd: &str, parent_session: Option<&str>, stamp: Stamp) -> Self {
        Self::of(directory, Tree::new(SessionHeader::new(cwd, parent_session, stamp), Vec::new()), stamp)
    }

    /// Opens the session of a file. An empty file becomes a new session.
    ///
    /// # Errors
    /// The file does not exist, is not a session, or is open in another program. It is not changed in that case.
    pub fn open(path: &Path, cwd: &str, stamp: Stamp) -> Result<Self, SessionError> {
        let (file, bytes) = disk::open(path)?;
        let len = bytes.len() as u64;
        let document = match SessionDocument::read(&bytes) {
            Ok(document) => document,
            Err(DocumentRefusal::Empty) => {
                let tree = Tree::new(SessionHeader::new(cwd, None, stamp), Vec::new());
                let disk = FileState::held(disk::replace(path, &text_of(&tree))?, text_of(&tree).len());
                return Ok(Self {
                    tree,
                    path: path.to_owned(),
                    issues: Vec::new(),
                    disk,
                    held: HeldEntries::default(),
                });
            }
            Err(refusal) => return Err(SessionError::Refused { path: path.to_owned(), refusal }),
        };
        let issues = document.issues.clone();
        let tree = Tree::new(document.header.clone(), document.entries.clone());
        let disk = if document.migrated {
            FileState::Old { file, len, document: Box::new(document) }
        } else {
            FileState::Held { file, len, open_end: document.open_end }
        };
        Ok(Self { tree, path: path.to_owned(), issues, disk, held: HeldEntries::default() })
    }

    /// Opens the most recently written session of a directory, or creates one. With `only_here` its working directory
    /// must be `cwd`.
    ///
    /// # Errors
    /// The directory cannot be read, or the session cannot be opened.
    pub fn continue_recent(directory: &Path, cwd: &str, only_here: bool, stamp: Stamp) -> Result<Self, SessionError> {
        match sessions::most_recent(directory, only_here.then_some(cwd))? {
            Some(path) => Self::open(&path, cwd, stamp),
            None => Ok(Self::create(directory, cwd, None, stamp)),
        }
    }

    /// Reads a file without locking or changing it.
    ///
    /// # Errors
    /// The file cannot be read, or is not a session.
    pub fn read(path: &Path) -> Result<SessionDocument, SessionError> {
        let bytes = std::fs::read(path).map_err(SessionError::io("read", path))?;
        SessionDocument::read(&bytes).map_err(|refusal| SessionError::Refused { path: path.to_owned(), refusal })
    }

    /// The entries. [Released](Self::release) entries have no texts.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The entries with all their texts: released ones are read from the file.
    ///
    /// # Errors
    /// The file cannot be read, or differs from what was written.
    pub fn whole_tree(&self) -> Result<Cow<'_, Tree>, SessionError> {
        let FileState::Held { file, len, .. } = &self.disk else { return Ok(Cow::Borrowed(&self.tree)) };
        if self.held.from == 0 {
            return Ok(Cow::Borrowed(&self.tree));
        }
        disk::check_unchanged(file, &self.path, *len)?;
        let document = Self::read(&self.path)?;
        let whole = self.tree.with_entries(document.entries);
        whole.map(Cow::Owned).ok_or_else(|| SessionError::Changed { path: self.path.clone() })
    }

    /// Drops the texts of the oldest entries, which are in the file, until about `keep` bytes are left.
    pub fn release(&mut self, keep: usize) {
        if !matches!(self.disk, FileState::Held { .. }) {
            return;
        }
        let entries = self.tree.entries();
        self.held.bytes += entries[self.held.to..].iter().map(|entry| entry.fields().memory_bytes()).sum::<usize>();
        self.held.to = entries.len();
        while self.held.bytes > keep && self.held.from < self.held.to {
            let bytes = self.tree.entries()[self.held.from].fields().memory_bytes();
            self.held.bytes = self.held.bytes.saturating_sub(bytes);
            self.tree.release(self.held.from);
            self.held.from += 1;
        }
    }

    /// The path of the file, which may not exist yet.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problems found when the file was read.
    #[must_use]
    pub fn issues(&self) -> &[DocumentIssue] {
        &self.issues
    }

    /// Whether the file exists.
    #[must_use]
    pub fn is_saved(&self) -> bool {
        !matches!(self.disk, FileState::Absent)
    }

    /// Appends an entry after the leaf and makes it the new leaf.
    ///
    /// # Errors
    /// It refers to a missing entry, or could not be written; in that case nothing has changed.
    pub fn append(&mut self, new: NewEntry, stamp: Stamp) -> Result<&Entry, SessionError> {
        self.change(|tree| tree.append(new, stamp))
    }

    /// Like [`append`](Self::append), but waits until the entry is synced to disk.
    ///
    /// # Errors
    /// The same as for [`append`](Self::append); an entry that could not be synced is removed again.
    pub fn append_synced(&mut self, new: NewEntry, stamp: Stamp) -> Result<&Entry, SessionError> {
        let (entries, leaf) = (self.tree.entries().len(), self.tree.leaf_index());
        let before =
            if let FileState::Held { len, open_end, .. } = &self.disk { Some((*len, *open_end)) } else { None };
        let index = self.tree.append(new, stamp)?;
        let written = self.write_last().and_then(|()| self.sync_or_cut(before));
        written.inspect_err(|_| self.tree.roll_back(entries, leaf))?;
        Ok(&self.tree.entries()[index])
    }

    /// Moves the leaf to an entry and records the move in the file.
    ///
    /// # Errors
    /// There is no such entry, or the move could not be written.
    pub fn branch(&mut self, id: &str, stamp: Stamp) -> Result<(), SessionError> {
        let before = self.tree.leaf_index();
        self.tree.branch(id)?;
        self.record_leaf(before, stamp)
    }

    /// Moves the leaf before all entries and records the move in the file.
    ///
    /// # Errors
    /// The move could not be written.
    pub fn reset_leaf(&mut self, stamp: Stamp) -> Result<(), SessionError> {
        let before = self.tree.leaf_index();
        self.tree.reset_leaf();
        self.record_leaf(before, stamp)
    }

    /// Moves the leaf and appends a summary of the abandoned branch there.
    ///
    /// # Errors
    /// There is no such entry, or the summary could not be written.
    pub fn branch_with_summary(
        &mut self,
        id: Option<&str>,
        new: NewBranchSummary,
        stamp: Stamp,
    ) -> Result<&Entry, SessionError> {
        self.change(|tree| tree.branch_with_summary(id, new, stamp))
    }

    /// Writes the session even without a user message, in the current version.
    ///
    /// # Errors
    /// It could not be written.
    pub fn save(&mut self) -> Result<(), SessionError> {
        match &self.disk {
            FileState::Absent => {
                let text = text_of(&self.tree);
                self.disk = FileState::held(disk::create(&self.path, &text)?, text.len());
            }
            FileState::Old { file, len, document } => {
                disk::check_unchanged(file, &self.path, *len)?;
                let text = document.to_bytes();
                self.disk = FileState::held(disk::replace(&self.path, &text)?, text.len());
            }
            FileState::Held { .. } => {}
        }
        Ok(())
    }

    /// Creates a new session with the path to an entry, beside this one. It is written at once if it contains a user
    /// message.
    ///
    /// # Errors
    /// There is no such entry, or it could not be written.
    pub fn branched(&self, id: &str, stamp: Stamp) -> Result<Self, SessionError> {
        let tree = self.whole_tree()?.branched(id, self.header_of_child(stamp), stamp)?;
        Self::beside(&self.path, tree, stamp)
    }

    /// Creates a new session with the entries before a message, and returns that message's text.
    ///
    /// # Errors
    /// There is no such message, or it could not be written.
    pub fn forked(&self, id: &str, stamp: Stamp) -> Result<ForkedSession, SessionError> {
        let forked = self.whole_tree()?.forked(id, self.header_of_child(stamp), stamp)?;
        Ok(ForkedSession { session: Self::beside(&self.path, forked.tree, stamp)?, text: forked.text })
    }

    /// Creates a session with all entries in another directory, with another working directory.
    ///
    /// # Errors
    /// It could not be written.
    pub fn copied(&self, directory: &Path, cwd: &str, stamp: Stamp) -> Result<Self, SessionError> {
        let header = SessionHeader::new(cwd, Some(&self.path.to_string_lossy()), stamp);
        let mut session = Self::of(directory, self.whole_tree()?.copied(header), stamp);
        session.save()?;
        Ok(session)
    }

    /// Syncs the file. If that fails, truncates it to its previous length.
    fn sync_or_cut(&mut self, before: Option<(u64, bool)>) -> Result<(), SessionError> {
        // A file that was created or replaced in this step is already synced.
        let (FileState::Held { file, len, open_end }, Some((len_before, open_end_before))) = (&mut self.disk, before)
        else {
            return Ok(());
        };
        file.sync_data().map_err(|error| {
            if file.set_len(len_before).is_ok() {
                (*len, *open_end) = (len_before, open_end_before);
            }
            SessionError::io("write", &self.path)(error)
        })
    }

    fn of(directory: &Path, tree: Tree, stamp: Stamp) -> Self {
        let name = format!("{}_{}.jsonl", to_iso(stamp.now_ms).replace([':', '.'], "-"), tree.header().id());
        let held = HeldEntries::default();
        Self { tree, path: directory.join(name), issues: Vec::new(), disk: FileState::Absent, held }
    }

    fn beside(path: &Path, tree: Tree, stamp: Stamp) -> Result<Self, SessionError> {
        let is_worth_a_file = tree.entries().iter().any(is_from_user);
        let mut session = Self::of(path.parent().unwrap_or(Path::new("")), tree, stamp);
        if is_worth_a_file {
            session.save()?;
        }
        Ok(session)
    }

    fn header_of_child(&self, stamp: Stamp) -> SessionHeader {
        let cwd = self.tree.header().cwd().unwrap_or_default();
        SessionHeader::new(cwd, self.is_saved().then(|| self.path.to_string_lossy()).as_deref(), stamp)
    }

    /// Records the position of the leaf, unless the file already implies it.
    fn record_leaf(&mut self, before: Option<usize>, stamp: Stamp) -> Result<(), SessionError> {
        if !self.is_saved() || self.tree.is_leaf_kept() {
            return Ok(());
        }
        let len = self.tree.entries().len();
        self.tree.record_leaf(stamp);
        self.write_last().inspect_err(|_| self.tree.roll_back(len, before))
    }

    /// Changes the tree by one entry and writes it.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Tree) -> Result<usize, crate::tree::TreeError>,
    ) -> Result<&Entry, SessionError> {
        let (len, leaf) = (self.tree.entries().len(), self.tree.leaf_index());
        let index = change(&mut self.tree)?;
        self.write_last().inspect_err(|_| self.tree.roll_back(len, leaf))?;
        Ok(&self.tree.entries()[index])
    }

    /// Writes the last entry to the existing file, or creates the file if the entry is from the user.
    fn write_last(&mut self) -> Result<(), SessionError> {
        let Some(entry) = self.tree.entries().last() else { return Ok(()) };
        if matches!(self.disk, FileState::Absent) {
            return if is_from_user(entry) { self.save() } else { Ok(()) };
        }
        let line = entry.to_line();
        if matches!(self.disk, FileState::Old { .. }) {
            self.save()?;
        }
        let FileState::Held { file, len, open_end } = &mut self.disk else { return Ok(()) };
        let text = if *open_end { format!("\n{line}\n") } else { format!("{line}\n") };
        disk::append(file, &self.path, *len, text.as_bytes())?;
        *len += text.len() as u64;
        *open_end = false;
        Ok(())
    }
}

impl FileState {
    fn held(file: File, len: usize) -> Self {
        Self::Held { file, len: len as u64, open_end: false }
    }
}

fn is_from_user(entry: &Entry) -> bool {
    entry.kind() == EntryKind::Message && entry.role() == Some("user")
}

/// The whole file text of a tree.
fn text_of(tree: &Tree) -> Vec<u8> {
    let lines = tree.entries().iter().map(Entry::to_line);
    let mut text = tree.header().to_line();
    for line in lines {
        text.push('\n');
        text.push_str(&line);
    }
    text.push('\n');
    text.into_bytes()
}

#[cfg(test)]
mod tests;
