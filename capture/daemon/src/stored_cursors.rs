//! The store's cursors, in the form the collector reads.

use std::io;

use events::Cursor;
use store::Reader;
use tailer::collect::CommittedCursors;

/// Reads cursors from the store.
pub(crate) struct StoredCursors(pub(crate) Reader);

impl CommittedCursors for StoredCursors {
    fn cursor(&self, path: &str) -> io::Result<Option<Cursor>> {
        self.0.cursor(path).map_err(io::Error::other)
    }
}
