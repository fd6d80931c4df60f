//! The cursors committed by earlier runs and by this one.

use std::{collections::HashMap, io, sync::Arc};

use events::{Cursor, CursorSummary};

/// The store of committed cursors. A whole cursor is read from it when its file has changed, so that the many unchanged
/// files need little memory.
pub trait CommittedCursors: Send + Sync {
    /// The last committed cursor of a file; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read. The collector tries again.
    fn cursor(&self, path: &str) -> io::Result<Option<Cursor>>;
}

/// The starting point of a collector.
pub struct KnownFiles {
    /// The files that were read, by path, with a summary of their cursors.
    pub summaries: Vec<(String, CursorSummary)>,
    /// The whole cursors of these files.
    pub committed: Arc<dyn CommittedCursors>,
}

impl std::fmt::Debug for KnownFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownFiles").field("summaries", &self.summaries.len()).finish_non_exhaustive()
    }
}

/// Fixed cursors in memory.
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
