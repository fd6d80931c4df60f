//! What earlier runs committed, and what this one has committed so far.

use std::{collections::HashMap, io, sync::Arc};

use events::{Cursor, CursorSummary};

/// Where the cursors of files are committed. A whole cursor is read from there when its file has changed, so that memory
/// holds little of the many files that rest.
pub trait CommittedCursors: Send + Sync {
    /// The cursor of a file as last committed; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read. It is tried again.
    fn cursor(&self, path: &str) -> io::Result<Option<Cursor>>;
}

/// Where a collector goes on.
pub struct KnownFiles {
    /// The files that were read, by path, and how far.
    pub summaries: Vec<(String, CursorSummary)>,
    /// The whole cursors of these.
    pub committed: Arc<dyn CommittedCursors>,
}

impl std::fmt::Debug for KnownFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownFiles").field("summaries", &self.summaries.len()).finish_non_exhaustive()
    }
}

/// Cursors that stay as they are, in memory.
impl From<Vec<Cursor>> for KnownFiles {
    fn from(cursors: Vec<Cursor>) -> Self {
        let summaries = cursors.iter().map(|cursor| (cursor.path.clone(), cursor.into())).collect();
        let by_path: HashMap<_, _> = cursors.into_iter().map(|cursor| (cursor.path.clone(), cursor)).collect();
        Self { summaries, committed: Arc::new(by_path) }
    }
}

impl CommittedCursors for HashMap<String, Cursor> {
    fn cursor(&self, path: &str) -> io::Result<Option<Cursor>> {
        Ok(self.get(path).cloned())
    }
}
