//! The reader of the index: opened for a search, and closed after some time without searches.
//!
//! Each segment of an open index uses memory even without searches: tens of megabytes after a large import, which
//! leaves hundreds of segments.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, TantivyError};

/// How long a reader stays open after a search.
const OPEN_FOR: Duration = Duration::from_secs(60);

/// Opens the segments of an index on demand.
#[derive(Default)]
pub(crate) struct OnDemandReader(Mutex<Option<OpenReader>>);

struct OpenReader {
    reader: IndexReader,
    used_at: Instant,
}

impl OnDemandReader {
    /// Opens and closes every segment once, so that a missing or damaged one is detected before a search.
    ///
    /// # Errors
    /// When a segment cannot be opened.
    pub(crate) fn checked(index: &Index) -> Result<Self, TantivyError> {
        open(index)?;
        Ok(Self::default())
    }

    /// A searcher on the current content, and whether the segments had to be opened.
    ///
    /// # Errors
    /// When a segment cannot be opened.
    pub(crate) fn searcher(&self, index: &Index) -> Result<(Searcher, bool), TantivyError> {
        let mut slot = self.lock();
        let used_at = Instant::now();
        if let Some(open) = &mut *slot {
            open.used_at = used_at;
            return Ok((open.reader.searcher(), false));
        }
        let reader = open(index)?;
        let searcher = reader.searcher();
        *slot = Some(OpenReader { reader, used_at });
        Ok((searcher, true))
    }

    /// Makes the last commit visible to the next search.
    ///
    /// # Errors
    /// When a segment cannot be opened.
    pub(crate) fn reload(&self) -> Result<(), TantivyError> {
        self.lock().as_ref().map_or(Ok(()), |open| open.reader.reload())
    }

    /// Closes the segments after some time without searches. Returns when to call again; `None` if they are closed.
    pub(crate) fn close_unused(&self, now: Instant) -> Option<Instant> {
        let mut slot = self.lock();
        let at = slot.as_ref()?.used_at + OPEN_FOR;
        if at > now {
            return Some(at);
        }
        *slot = None;
        None
    }

    fn lock(&self) -> MutexGuard<'_, Option<OpenReader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(index: &Index) -> Result<IndexReader, TantivyError> {
    // Tantivy's watcher would check the file every half second; the feeder knows when to reload.
    index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()
}

#[cfg(test)]
mod tests {
    use tantivy::{doc, schema::Schema};

    use super::*;

    #[test]
    fn the_reader_opens_for_a_search_and_sees_the_latest_commit() {
        let mut schema = Schema::builder();
        let number = schema.add_u64_field("number", tantivy::schema::INDEXED);
        let index = Index::create_in_ram(schema.build());
        let reader = OnDemandReader::checked(&index).unwrap();
        assert_eq!(reader.close_unused(Instant::now()), None, "nobody searched");
        let found = || {
            let (searcher, was_opened) = reader.searcher(&index).unwrap();
            (searcher.num_docs(), was_opened)
        };
        assert_eq!(found(), (0, true));
        let mut writer: tantivy::IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        writer.add_document(doc!(number => 1_u64)).unwrap();
        writer.commit().unwrap();
        reader.reload().unwrap();
        assert_eq!(found(), (1, false));
        let closes_at = reader.close_unused(Instant::now()).unwrap();
        assert_eq!(reader.close_unused(closes_at), None);
        writer.add_document(doc!(number => 2_u64)).unwrap();
        writer.commit().unwrap();
        reader.reload().unwrap();
        assert_eq!(found(), (2, true));
    }
}
