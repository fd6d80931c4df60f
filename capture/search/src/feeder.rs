//! Feeds the index from the store, in log order, on its own thread.
//!
//! Reads only committed events, in small batches, and sleeps without a timer while there is nothing to do. During a
//! backlog it uses more memory and commits rarely; otherwise new texts are read and committed on a search, or every ten
//! seconds: each commit creates files, which are rewritten when they are merged, and an open writer uses megabytes of
//! memory. If writing fails, the feeder reports it, discards uncommitted texts and retries later.
//!
//! # Removed sessions
//!
//! A text is stored under the id of its session, which is never reused. The store returns a session's events until the
//! transaction that removes the session, and none afterwards: an event and its session id are read by one statement, so
//! there is no third case, even while the feeder is behind, after a restart and while the index is rebuilt. The order
//! to erase a session is given after that transaction and repeated until it is carried out. The feeder carries it out
//! between two batches, so everything it read of the session is in the index or in its writer by then, and nothing is
//! read later: deleting by id deletes everything. Then the files that contained the texts are rewritten without them.
//! Until that is done, searches exclude the session (`searcher::without`).

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use events::{Event, SessionId};
use store::Reader;
use tantivy::{
    IndexWriter, TantivyError, Term,
    indexer::{IndexWriterOptions, NoMergePolicy, UserOperation},
    query::RangeQuery,
};

use crate::{
    document::{Contexts, KINDS, texts_of},
    fields::IndexedText,
    in_flight::InFlight,
    index::{self, IndexError, IndexParts, Mark, OpenIndex, Woken},
    merging::SmallMerges,
};

/// Name of the thread.
pub const THREAD: &str = "search";

/// Maximum number of events read at once.
const BATCH: usize = 256;
/// Size of collected texts from which they are passed to the writer, bytes.
const BATCH_BYTES: usize = 256 << 10;
/// Number of threads that write a backlog.
const BACKLOG_THREADS: usize = 2;
/// Memory for texts that are not in the index yet, bytes per thread: with and without a backlog.
const BACKLOG_HEAP: usize = 16 << 20;
const LIVE_HEAP: usize = 15_000_000;
/// Number of unread events from which they are read at once without a backlog, so that a search has to wait for few.
const LIVE_EVENTS: u64 = 512;
/// Delay after a commit before the writer is closed, because it may still be merging.
const WRITER_RESTS: Duration = Duration::from_secs(1);
/// Number of events without a text after which a commit is made, so that they are not read again after a start.
const EMPTY_EVENTS: u64 = 50_000;
/// First and longest delay after a failure.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);
/// Niceness of the thread.
const NICE: i32 = 10;

/// When texts are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Number of unread events from which there is a backlog.
    pub backlog: u64,
    /// Shortest time between two commits during a backlog.
    pub behind: Duration,
    /// Shortest time between two commits right after a backlog was read.
    pub caught_up: Duration,
    /// Shortest time between two commits without a backlog, while there are no searches.
    pub live: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            backlog: 4096,
            behind: Duration::from_secs(10),
            caught_up: Duration::from_secs(1),
            live: Duration::from_secs(10),
        }
    }
}

/// Feeds the index. [`Feeder::run`] needs its own thread.
pub struct Feeder {
    shared: Arc<IndexParts>,
    store: Reader,
    woken: Woken,
    pace: Pace,
    open: Option<OpenIndex>,
    writer: Option<BatchWriter>,
    contexts: Contexts,
    in_flight: InFlight,
    /// Position up to which events were read.
    read: u64,
    /// Position recorded in the last commit.
    marked: u64,
    /// Whether the writer has uncommitted texts.
    is_dirty: bool,
    last_commit: Option<Instant>,
    /// End of the store's log at the start, until the index is open.
    first_end: Option<u64>,
    /// End of the store's log, if the index extends beyond it: later texts are removed first.
    cut: Option<u64>,
}

impl std::fmt::Debug for Feeder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feeder").field("read", &self.read).field("marked", &self.marked).finish_non_exhaustive()
    }
}

struct BatchWriter {
    writer: IndexWriter<IndexedText>,
    has_backlog: bool,
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Continue: there is more to do.
    Continue,
    /// Wait until something is committed.
    Rest,
    /// Wait until this time.
    At(Instant),
}

impl Feeder {
    pub(crate) fn new(shared: Arc<IndexParts>, store: Reader, woken: Woken, pace: Pace) -> Self {
        let first_end = store.position().ok();
        Self {
            shared,
            store,
            woken,
            pace,
            open: None,
            writer: None,
            contexts: Contexts::default(),
            in_flight: InFlight::default(),
            read: 0,
            marked: 0,
            is_dirty: false,
            last_commit: None,
            first_end,
            cut: None,
        }
    }

    /// Feeds the index until it is stopped.
    pub fn run(&mut self) {
        // Threads started by the writer inherit the priority. Without permission, the priority stays unchanged.
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "cannot lower the priority of the search thread");
        }
        let mut retry = RETRY;
        while !self.is_stopped() {
            match self.step() {
                Ok(next) => {
                    if mem::take(&mut *self.shared.trouble()).is_some() {
                        tracing::info!("rebuilding the search index");
                    }
                    retry = RETRY;
                    self.wait(next);
                }
                Err(error) => {
                    self.failed(&error);
                    self.wait(Next::At(Instant::now() + retry));
                    retry = (retry * 2).min(RETRY_MOST);
                }
            }
        }
        if let Err(error) = self.commit() {
            tracing::debug!(%error, "the last texts are indexed after the next start");
        }
        self.close_writer();
    }

    fn is_stopped(&self) -> bool {
        self.shared.orders.stop.load(Ordering::Relaxed)
    }

    fn wait(&self, next: Next) {
        match next {
            Next::Continue => {}
            Next::Rest => drop(self.woken.recv()),
            Next::At(at) => drop(self.woken.recv_deadline(at)),
        }
    }

    /// Discards uncommitted texts, which are read again.
    fn failed(&mut self, error: &IndexError) {
        let mut trouble = self.shared.trouble();
        if trouble.is_none() {
            tracing::warn!(%error, "cannot write the search index; trying again");
        }
        *trouble = Some(error.to_string());
        drop(trouble);
        self.shared.set_opened();
        self.writer = None;
        self.is_dirty = false;
        let is_damaged = matches!(error, IndexError::Tantivy(error) if !index::is_of_the_system(error));
        if is_damaged && !matches!(error, IndexError::Tantivy(TantivyError::ErrorInThread(_))) {
            self.shared.orders.check.store(true, Ordering::Relaxed);
        }
        self.open = None;
    }

    fn open(&mut self) -> Result<(), IndexError> {
        let log = self.store.log_id()?;
        let end = self.first_end.map_or_else(|| self.store.position(), Ok)?;
        let (open, position) = index::open(&self.shared.directory, log)?;
        // After a power failure the store may have lost events that the index still contains.
        self.cut = self.cut.or((position > end).then_some(end));
        self.begin_at(open, position.min(self.cut.unwrap_or(end)));
        self.shared.committed.fetch_max(end, Ordering::Relaxed);
        Ok(())
    }

    fn begin_at(&mut self, open: OpenIndex, position: u64) {
        self.read = position;
        self.marked = position;
        self.is_dirty = false;
        self.last_commit = None;
        self.first_end = None;
        self.contexts = Contexts::default();
        self.shared.measure(&open);
        self.shared.set_indexed(position);
        self.shared.set_open(Some(open.clone()));
        self.open = Some(open);
    }

    /// Does one unit of work.
    fn step(&mut self) -> Result<Next, IndexError> {
        let take = |order: &AtomicBool| order.swap(false, Ordering::Relaxed);
        if take(&self.shared.orders.rebuild) {
            self.replace()?;
        }
        if self.open.is_none() {
            self.open()?;
        }
        self.shared.set_opened();
        if take(&self.shared.orders.check) {
            self.check()?;
        }
        if let Some(end) = self.cut {
            tracing::info!(end, "the search index is ahead of the store; removing what the store does not have");
            self.remove_behind(end)?;
            self.cut = None;
        }
        let (erased, number) = {
            let orders = self.shared.erase_orders();
            (orders.sessions.clone(), orders.given)
        };
        if !erased.is_empty() {
            self.erase_sessions(&erased)?;
            self.shared.erase_orders().sessions.drain(..erased.len());
            self.shared.set_erased(number);
        }
        // Taken before the end is read: a later order refers to later events.
        let flush = take(&self.shared.orders.flush);
        let end = self.store.position()?;
        self.shared.committed.fetch_max(end, Ordering::Relaxed);
        let has_backlog = self.writer.as_ref().map(|writer| writer.has_backlog);
        if has_backlog == Some(false) && end.saturating_sub(self.read) >= self.pace.backlog {
            self.commit()?;
            self.close_writer();
        }
        if self.read < end {
            if let Some(due) = self.read_due(end).filter(|_| !flush) {
                return Ok(Next::At(self.close_writer_in_time().map_or(due, |at| at.min(due))));
            }
            self.feed(end)?;
        }
        let is_behind = self.read < end;
        if is_behind {
            self.shared.orders.flush.fetch_or(flush, Ordering::Relaxed);
        }
        if let Some(due) = self.commit_due(is_behind, flush) {
            if due > Instant::now() {
                return Ok(if is_behind { Next::Continue } else { Next::At(due) });
            }
            self.commit()?;
        }
        if is_behind {
            return Ok(Next::Continue);
        }
        // Events without a text need no commit.
        self.shared.set_indexed(self.read);
        self.shared.is_ready.store(true, Ordering::Relaxed);
        let writer_closes_at = self.close_writer_in_time();
        let reader_closes_at = self.open.as_ref().and_then(|open| open.reader.close_unused(Instant::now()));
        let closes_at = writer_closes_at.into_iter().chain(reader_closes_at).min();
        Ok(closes_at.map_or(Next::Rest, Next::At))
    }

    /// When to read the next events; `None` means now.
    fn read_due(&self, end: u64) -> Option<Instant> {
        if self.is_dirty || self.writes_backlog() || end - self.read >= LIVE_EVENTS {
            return None;
        }
        // Before the first commit, events are read at once, so that an index exists.
        self.last_commit.map(|last| last + self.pace.live).filter(|due| *due > Instant::now())
    }

    fn writes_backlog(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.has_backlog)
    }

    /// Closes an idle writer when its time has come or a backlog was read. Returns when an open writer should be
    /// closed.
    fn close_writer_in_time(&mut self) -> Option<Instant> {
        let closes_at = self.last_commit? + WRITER_RESTS;
        if self.writer.is_some() && !self.is_dirty && (self.writes_backlog() || closes_at <= Instant::now()) {
            self.close_writer();
        }
        self.writer.is_some().then_some(closes_at)
    }

    /// When to commit the texts read so far; `None` if there is nothing to commit. `flush` means that a search is
    /// waiting.
    fn commit_due(&self, is_behind: bool, flush: bool) -> Option<Instant> {
        if !self.is_dirty && self.read - self.marked <= EMPTY_EVENTS {
            return None;
        }
        if !is_behind && flush {
            return Some(Instant::now());
        }
        let every = match (self.writes_backlog(), is_behind) {
            (true, true) => self.pace.behind,
            (true, false) => self.pace.caught_up,
            (false, _) => self.pace.live,
        };
        // The first commit is made at once, so that an index exists.
        Some(self.last_commit.map_or_else(Instant::now, |last| last + every))
    }

    /// Adds the next texts up to a position.
    fn feed(&mut self, end: u64) -> Result<(), IndexError> {
        let Some(open) = self.open.clone() else { return Ok(()) };
        let events = self.store.log_of(self.read, end, BATCH, KINDS)?;
        let mut documents = Vec::new();
        let mut bytes = 0;
        for event in &events {
            let backlog = end.saturating_sub(event.position);
            bytes += self.add(&open, event, &mut documents)?;
            if bytes >= BATCH_BYTES {
                self.send(&mut documents, backlog)?;
                bytes = 0;
            }
        }
        match events.last().filter(|_| events.len() == BATCH) {
            Some(last) => self.read = last.position,
            None => self.read = end,
        }
        self.send(&mut documents, end - self.read)
    }

    /// Creates documents from the texts of an event; returns the total size of the texts in bytes.
    fn add(
        &mut self,
        open: &OpenIndex,
        event: &Event,
        documents: &mut Vec<UserOperation<IndexedText>>,
    ) -> Result<usize, IndexError> {
        let context = self.contexts.of(event, &self.store)?;
        let texts = texts_of(event, &self.store)?;
        if texts.is_empty() {
            return Ok(0);
        }
        let tool = context.tool_of(event, &self.store)?;
        let mut bytes = 0;
        for text in texts {
            bytes += text.text.len();
            let permit = self.in_flight.enter(text.text.len());
            if permit.is_late {
                // Makes the caller send the documents at once.
                bytes = BATCH_BYTES;
            }
            documents.push(UserOperation::Add(open.fields.document(event, text, context, tool.as_ref(), permit)));
        }
        Ok(bytes)
    }

    /// Passes documents to the writer's threads.
    fn send(&mut self, documents: &mut Vec<UserOperation<IndexedText>>, backlog: u64) -> Result<(), IndexError> {
        if !documents.is_empty() {
            self.writer(backlog)?.run(mem::take(documents))?;
            self.is_dirty = true;
        }
        Ok(())
    }

    /// The writer suited to a backlog of this many events.
    fn writer(&mut self, backlog: u64) -> Result<&IndexWriter<IndexedText>, IndexError> {
        if self.writer.is_none() {
            let has_backlog = backlog >= self.pace.backlog;
            let open = self.open.as_ref().ok_or_else(|| TantivyError::InternalError("no index is open".into()))?;
            let (threads, heap) = if has_backlog { (BACKLOG_THREADS, BACKLOG_HEAP) } else { (1, LIVE_HEAP) };
            let options = IndexWriterOptions::builder()
                .num_worker_threads(threads)
                .memory_budget_per_thread(heap)
                .num_merge_threads(1)
                .build();
            let writer = open.index.writer_with_options(options)?;
            if has_backlog {
                // Merges wait until the backlog is read.
                writer.set_merge_policy(Box::new(NoMergePolicy));
                self.shared.is_ready.store(false, Ordering::Relaxed);
            } else {
                writer.set_merge_policy(Box::new(SmallMerges::default()));
            }
            self.writer = Some(BatchWriter { writer, has_backlog });
        }
        let writer = self.writer.as_ref().map(|writer| &writer.writer);
        writer.ok_or_else(|| TantivyError::InternalError("no writer".into()).into())
    }

    /// Commits the texts read so far, with the position.
    fn commit(&mut self) -> Result<(), IndexError> {
        if !self.is_dirty && self.read == self.marked {
            return Ok(());
        }
        let Some(open) = self.open.clone() else { return Ok(()) };
        self.writer(0)?;
        let Some(BatchWriter { writer, .. }) = &mut self.writer else { return Ok(()) };
        let mark = serde_json::to_string(&Mark::new(open.log, self.read)).unwrap_or_default();
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&mark);
        commit.commit()?;
        open.reader.reload()?;
        self.marked = self.read;
        self.is_dirty = false;
        self.last_commit = Some(Instant::now());
        self.shared.measure(&open);
        self.shared.set_indexed(self.read);
        Ok(())
    }

    /// Closes the writer and releases its memory.
    fn close_writer(&mut self) {
        let Some(BatchWriter { writer, .. }) = self.writer.take() else { return };
        if let Err(error) = writer.wait_merging_threads() {
            tracing::debug!(%error, "parts of the search index were not merged");
        }
        if let Some(open) = &self.open {
            self.shared.measure(open);
        }
    }

    /// Removes the index and creates an empty one.
    fn replace(&mut self) -> Result<(), IndexError> {
        self.writer = None;
        self.open = None;
        self.shared.set_open(None);
        let open = index::create(&self.shared.directory, self.store.log_id()?)?;
        self.shared.is_ready.store(false, Ordering::Relaxed);
        self.cut = None;
        self.begin_at(open, 0);
        Ok(())
    }

    /// Compares the index files with their checksums after a failure.
    fn check(&mut self) -> Result<(), IndexError> {
        let Some(open) = &self.open else { return Ok(()) };
        match open.index.validate_checksum() {
            Ok(damaged) if damaged.is_empty() => Ok(()),
            Err(error) if index::is_of_the_system(&error) => Err(error.into()),
            found => {
                tracing::warn!(?found, "the search index is damaged and is being rebuilt");
                self.replace()
            }
        }
    }

    fn remove_behind(&mut self, end: u64) -> Result<(), IndexError> {
        let Some(open) = self.open.clone() else { return Ok(()) };
        let behind = Term::from_field_u64(open.fields.position, end);
        let query = RangeQuery::new(std::ops::Bound::Excluded(behind), std::ops::Bound::Unbounded);
        self.writer(0)?.delete_query(Box::new(query))?;
        self.is_dirty = true;
        self.commit()
    }

    /// Removes the texts of sessions, and rewrites the files that contained them.
    fn erase_sessions(&mut self, sessions: &[SessionId]) -> Result<(), IndexError> {
        let Some(open) = self.open.clone() else { return Ok(()) };
        for session in sessions {
            let term = Term::from_field_text(open.fields.session, &session.to_string().to_lowercase());
            self.writer(0)?.delete_term(term);
        }
        self.is_dirty = true;
        self.commit()?;
        // Merges in progress may include the files that must be rewritten.
        self.close_writer();
        let with_deletes: Vec<_> =
            open.index.searchable_segment_metas()?.into_iter().filter(|segment| segment.has_deletes()).collect();
        for segment in with_deletes {
            let merged = {
                self.writer(0)?;
                let writer = self.writer.as_mut().map(|writer| &mut writer.writer);
                let writer = writer.ok_or_else(|| TantivyError::InternalError("no writer".into()))?;
                // Merged alone, so that no other file is rewritten with it.
                writer.set_merge_policy(Box::new(NoMergePolicy));
                writer.merge(&[segment.id()])
            };
            merged.wait()?;
        }
        open.reader.reload()?;
        self.writer(0)?.garbage_collect_files().wait()?;
        self.close_writer();
        Ok(())
    }
}
