//! The store's cursors, as the collector reads them.

use std::io;

use events::Cursor;
use store::Reader;
use tailer::collect::CommittedCursors;

/// Cursors as the store has them.
pub(crate) struct StoredCursors(pub(crate) Reader);

impl CommittedCursors for StoredCursors {
    fn cursor(&self, path: &str) -> io::Result<Option<Cursor>> {
        self.0.cursor(path).map_err(io::Error::other)
    }
}
