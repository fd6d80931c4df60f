//! The table of files. An entry is small: a quiet file has only a path and a summary of its cursor, and is neither open
//! nor decoded.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use events::{Cursor, CursorSummary, Provider};

use crate::{
    collect::committed::CommittedCursors,
    tail::{
        FileSpec, Tail, TailError,
        disk::{self, RootedPath, Stat},
    },
};

/// An index in the table.
pub(super) type FileId = u32;

/// The owner of a file's state.
#[derive(Debug)]
pub(super) enum FileOwner {
    /// The file was never read.
    Fresh,
    /// The file was read up to this cursor and is closed.
    Resting(Box<Cursor>),
    /// Like `Resting`, with the whole cursor committed.
    Committed(Box<CursorSummary>),
    /// The file is open.
    Open(Box<Tail>),
    /// The queue or a worker has the file.
    Away,
}

/// The part of the cursor that was not sent yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PendingCursor {
    Nothing,
    /// Size and time of the last check.
    Stat,
    /// The position after lines without events, since this time.
    Lines(Duration),
}

/// A file of the table.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) place: RootedPath,
    pub(super) root: u16,
    pub(super) spec: FileSpec,
    pub(super) slot: FileOwner,
    pub(super) owed: PendingCursor,
    pub(super) hot_until: Duration,
    /// When to check again, even without a change.
    pub(super) again_at: Option<Duration>,
    pub(super) looked_at: Duration,
    pub(super) lag: u64,
    pub(super) issues: u64,
    pub(super) hot: bool,
    pub(super) dirty: bool,
    pub(super) gone: bool,
    pub(super) ignored: bool,
    pub(super) troubled: bool,
    /// Whether its content was written before it was found.
    pub(super) past: bool,
}

impl FileEntry {
    pub(super) fn new(place: RootedPath, root: u16, spec: FileSpec, committed: Option<CursorSummary>) -> Self {
        let slot = committed.map_or(FileOwner::Fresh, |summary| FileOwner::Committed(Box::new(summary)));
        Self {
            place,
            root,
            spec,
            slot,
            owed: PendingCursor::Nothing,
            hot_until: Duration::ZERO,
            again_at: None,
            looked_at: Duration::ZERO,
            lag: 0,
            issues: 0,
            hot: false,
            dirty: false,
            gone: false,
            ignored: false,
            troubled: false,
            past: false,
        }
    }

    /// Its cursor in short form, unless the file is away or was never read.
    pub(super) fn summary(&self) -> Option<CursorSummary> {
        match &self.slot {
            FileOwner::Fresh | FileOwner::Away => None,
            FileOwner::Committed(summary) => Some(**summary),
            FileOwner::Resting(cursor) => Some((&**cursor).into()),
            FileOwner::Open(tail) => Some(tail.cursor().into()),
        }
    }

    /// Its whole cursor, unless it is committed, away, or the file was never read.
    pub(super) fn cursor(&self) -> Option<&Cursor> {
        match &self.slot {
            FileOwner::Fresh | FileOwner::Away | FileOwner::Committed(_) => None,
            FileOwner::Resting(cursor) => Some(cursor),
            FileOwner::Open(tail) => Some(tail.cursor()),
        }
    }

    /// The offset of the next read.
    pub(super) fn resume_offset(&self) -> u64 {
        match &self.slot {
            FileOwner::Fresh | FileOwner::Away => 0,
            FileOwner::Committed(summary) if summary.caught_up => summary.offset,
            FileOwner::Resting(cursor) if cursor.caught_up => cursor.offset,
            FileOwner::Committed(_) | FileOwner::Resting(_) => 0,
            FileOwner::Open(tail) => tail.cursor().offset,
        }
    }

    /// Reads its state on disk.
    pub(super) fn stat(&self) -> std::io::Result<Option<Stat>> {
        disk::stat_file(&self.place, self.spec.format)
    }

    /// Whether the state on disk differs from the last check.
    pub(super) fn differs(&self, stat: Option<&Stat>) -> bool {
        match (stat, self.summary()) {
            (None, Some(_)) => !self.gone,
            (None, None) => false,
            (Some(_), None) => true,
            (Some(stat), Some(last)) => {
                self.gone
                    || !last.caught_up
                    || (stat.key, stat.size, stat.changed_ns) != (last.key, last.size, last.changed_ns)
            }
        }
    }

    /// Loads the whole cursor into memory for a read. If the store no longer has it, the file is read from its start,
    /// and its summary is not stored again.
    pub(super) fn load_cursor(&mut self, committed: &dyn CommittedCursors) -> Result<(), TailError> {
        let FileOwner::Committed(summary) = &self.slot else { return Ok(()) };
        let path = self.place.path();
        let failed = |source| TailError::Io { path: Arc::clone(path), offset: summary.offset, source };
        self.slot = match committed.cursor(path).map_err(failed)? {
            Some(cursor) => FileOwner::Resting(rest(cursor)),
            None => FileOwner::Fresh,
        };
        Ok(())
    }

    /// Drops the whole cursor from memory if it is committed.
    pub(super) fn release_cursor(&mut self, committed: &dyn CommittedCursors) -> io::Result<()> {
        if let FileOwner::Resting(cursor) = &self.slot
            && self.owed == PendingCursor::Nothing
            && committed.cursor(self.place.path())?.is_some_and(|committed| *rest(committed) == **cursor)
        {
            self.slot = FileOwner::Committed(Box::new((&**cursor).into()));
        }
        Ok(())
    }

    /// Removes the tail from the entry, creating it if the file was closed; its cursor must be loaded. `None` if the
    /// file is away.
    pub(super) fn take_tail(&mut self, provider: Provider) -> Option<Box<Tail>> {
        let cursor = match std::mem::replace(&mut self.slot, FileOwner::Away) {
            FileOwner::Away => return None,
            committed @ FileOwner::Committed(_) => {
                self.slot = committed;
                return None;
            }
            FileOwner::Open(tail) => return Some(tail),
            FileOwner::Resting(cursor) => Some(*cursor),
            FileOwner::Fresh => None,
        };
        Some(Box::new(Tail::new(self.place.clone(), provider, self.spec, cursor)))
    }

    /// Closes the file, unless its first pass is incomplete.
    pub(super) fn close(&mut self) {
        let slot = std::mem::replace(&mut self.slot, FileOwner::Away);
        self.slot = match slot {
            FileOwner::Open(tail) if tail.cursor().generation == 0 => FileOwner::Fresh,
            FileOwner::Open(tail) if !tail.is_passing() => FileOwner::Resting(rest(tail.into_cursor())),
            FileOwner::Open(_)
            | FileOwner::Fresh
            | FileOwner::Resting(_)
            | FileOwner::Committed(_)
            | FileOwner::Away => slot,
        };
    }
}

/// A resting cursor needs no path, because the table has it.
fn rest(mut cursor: Cursor) -> Box<Cursor> {
    cursor.path = String::new();
    Box::new(cursor)
}

/// All files, by path and by index.
#[derive(Debug, Default)]
pub(super) struct Files {
    table: Vec<Option<FileEntry>>,
    free: Vec<FileId>,
    index: HashMap<Arc<str>, FileId>,
    lag: u64,
    issues: u64,
    /// Number of files and of unread bytes, by root.
    by_root: Vec<(u64, u64)>,
}

impl Files {
    pub(super) fn find(&self, path: &str) -> Option<FileId> {
        self.index.get(path).copied()
    }

    pub(super) fn get_mut(&mut self, id: FileId) -> Option<&mut FileEntry> {
        self.table.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn add(&mut self, file: FileEntry) -> FileId {
        let path = Arc::clone(file.place.path());
        let id = self.free.pop().unwrap_or_else(|| {
            self.table.push(None);
            self.table.len() as FileId - 1
        });
        let root = usize::from(file.root);
        if self.by_root.len() <= root {
            self.by_root.resize(root + 1, (0, 0));
        }
        self.by_root[root].0 += 1;
        self.table[id as usize] = Some(file);
        self.index.insert(path, id);
        id
    }

    /// Number of files of a root, and of their unread bytes.
    pub(super) fn of_root(&self, root: usize) -> (u64, u64) {
        self.by_root.get(root).copied().unwrap_or_default()
    }

    pub(super) fn remove(&mut self, id: FileId) {
        self.measure(id, 0, 0);
        if let Some(file) = self.table.get_mut(id as usize).and_then(Option::take) {
            self.index.remove(file.place.path());
            self.by_root[usize::from(file.root)].0 -= 1;
            self.free.push(id);
        }
    }

    /// Records the unread bytes of a file, and its issues.
    pub(super) fn measure(&mut self, id: FileId, lag: u64, issues: u64) {
        let Some(file) = self.table.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        self.lag = self.lag - file.lag + lag;
        let of_root = &mut self.by_root[usize::from(file.root)].1;
        *of_root = *of_root - file.lag + lag;
        self.issues = self.issues - file.issues + issues;
        (file.lag, file.issues) = (lag, issues);
    }

    pub(super) fn lag(&self) -> u64 {
        self.lag
    }

    pub(super) fn issues(&self) -> u64 {
        self.issues
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Size of the table: all indices are below it.
    pub(super) fn room(&self) -> FileId {
        self.table.len() as FileId
    }

    /// The files at or below a path.
    pub(super) fn below(&self, path: &std::path::Path) -> Vec<FileId> {
        let inside = |(name, id): (&Arc<str>, &FileId)| std::path::Path::new(&**name).starts_with(path).then_some(*id);
        self.index.iter().filter_map(inside).collect()
    }
}
