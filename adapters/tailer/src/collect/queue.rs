//! The history queue: files that worker threads read to their end.
//!
//! Files that report on live sessions come first, then recently changed files, then the rest; within each class the
//! newest first. Between two batches a worker returns its file if a more important one waits.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use events::{Cursor, Provider};

use super::{control::CollectorShared, files::FileId};
use crate::{
    collect::{batch::Batch, control::Progress, finished_job::FinishedJob, reading::is_past},
    tail::{FileSpec, Now, Tail, TailError, TailReader, disk::RootedPath},
};
use agents::Stopped;

/// The nice value of threads that read history.
const NICE: i32 = 5;

/// The order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadPriority {
    Live,
    Recent,
    Rest,
}

/// Order in the queue: class, newest first, index.
type Rank = (ReadPriority, std::cmp::Reverse<i64>, FileId);

/// A waiting file. The tail is created when the file is read, because fifty thousand may wait.
#[derive(Debug)]
pub(super) enum QueuedTail {
    Cursor { place: RootedPath, provider: Provider, spec: FileSpec, cursor: Option<Box<Cursor>> },
    Tail(Box<Tail>),
}

/// A file to be read to its end.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) file: FileId,
    pub(super) class: ReadPriority,
    pub(super) modified_ns: i64,
    pub(super) waiting: QueuedTail,
    /// Bytes that the progress expects from it and that were not read yet.
    pub(super) expected: u64,
    /// Whether no part of the file had been read before: its batches without a recent record are history.
    pub(super) is_new: bool,
}

impl Job {
    fn rank(&self) -> Rank {
        (self.class, std::cmp::Reverse(self.modified_ns), self.file)
    }

    fn path(&self) -> &Path {
        match &self.waiting {
            QueuedTail::Cursor { place, .. } => Path::new(&**place.path()),
            QueuedTail::Tail(tail) => Path::new(&**tail.place().path()),
        }
    }

    pub(super) fn tail(self) -> Box<Tail> {
        match self.waiting {
            QueuedTail::Tail(tail) => tail,
            QueuedTail::Cursor { place, provider, spec, cursor } => {
                Box::new(Tail::new(place, provider, spec, cursor.map(|cursor| *cursor)))
            }
        }
    }
}

#[derive(Debug)]
struct QueueState {
    jobs: BTreeMap<Rank, Job>,
    ignored: Arc<[PathBuf]>,
    closed: bool,
}

impl Default for QueueState {
    fn default() -> Self {
        Self { jobs: BTreeMap::new(), ignored: Arc::from([]), closed: false }
    }
}

/// Files waiting to be read.
#[derive(Debug, Default)]
pub(super) struct HistoryQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

/// The next action of a worker after a batch.
#[derive(Debug, PartialEq, Eq)]
enum NextJob {
    GoOn,
    GiveWay,
    GiveBack,
    Stop,
}

impl HistoryQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, job: Job) {
        self.lock().jobs.insert(job.rank(), job);
        self.changed.notify_one();
    }

    /// The most important job, without waiting.
    pub(super) fn pop(&self) -> Option<Job> {
        self.lock().jobs.pop_first().map(|(_, job)| job)
    }

    fn wait(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some((_, job)) = state.jobs.pop_first() {
                return Some(job);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Moves a waiting file to the front because it changed.
    pub(super) fn lift(&self, file: FileId, modified_ns: i64) {
        let mut state = self.lock();
        let Some(rank) = state.jobs.keys().find(|rank| rank.2 == file && rank.0 > ReadPriority::Recent).copied() else {
            return;
        };
        if let Some(mut job) = state.jobs.remove(&rank) {
            job.class = ReadPriority::Recent;
            job.modified_ns = modified_ns;
            state.jobs.insert(job.rank(), job);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    pub(super) fn ignore(&self, paths: Arc<[PathBuf]>) {
        self.lock().ignored = paths;
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn next(&self, class: ReadPriority, path: &Path) -> NextJob {
        let state = self.lock();
        if state.closed {
            NextJob::Stop
        } else if is_ignored(&state.ignored, path) {
            NextJob::GiveBack
        } else if state.jobs.first_key_value().is_some_and(|(rank, _)| rank.0 < class) {
            NextJob::GiveWay
        } else {
            NextJob::GoOn
        }
    }
}

/// Whether a path is one of the ignored paths, or below one.
pub(super) fn is_ignored(ignored: &[PathBuf], path: &Path) -> bool {
    ignored.iter().any(|one| path.starts_with(one))
}

/// A thread that reads history.
pub(super) struct HistoryWorker {
    pub(super) queue: Arc<HistoryQueue>,
    pub(super) shared: Arc<CollectorShared>,
    pub(super) clock: fn() -> Now,
    pub(super) reader: TailReader,
}

impl HistoryWorker {
    pub(super) fn run(&mut self, sink: &mut impl FnMut(Batch) -> Result<(), Stopped>) {
        // Ingest is the bottleneck, and another thread reads the live files.
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "cannot lower the priority of a thread that reads history");
        }
        while let Some(job) = self.next_job() {
            if self.work(job, sink).is_err() {
                self.shared.stop.store(true, std::sync::atomic::Ordering::Release);
                self.queue.close();
                self.shared.inbox.close();
                return;
            }
        }
    }

    fn next_job(&mut self) -> Option<Job> {
        self.reader.set_busy(self.queue.len() > 0);
        self.queue.wait()
    }

    fn work(&mut self, job: Job, sink: &mut impl FnMut(Batch) -> Result<(), Stopped>) -> Result<(), Stopped> {
        let Job { file, class, modified_ns, mut expected, is_new, .. } = job;
        let mut next = self.queue.next(class, job.path());
        let mut tail = job.tail();
        loop {
            match next {
                NextJob::GoOn => {}
                NextJob::Stop => return Ok(()),
                NextJob::GiveBack => {
                    self.return_tail(file, tail, None, expected);
                    return Ok(());
                }
                NextJob::GiveWay => {
                    self.queue.push(Job {
                        file,
                        class,
                        modified_ns,
                        waiting: QueuedTail::Tail(tail),
                        expected,
                        is_new,
                    });
                    return Ok(());
                }
            }
            let kind = (class, is_new);
            match step(&mut tail, &mut self.reader, (self.clock)(), kind, &mut expected, &self.shared.progress, sink)? {
                BatchOutcome::More => next = self.queue.next(class, Path::new(&**tail.place().path())),
                BatchOutcome::Done(error) => {
                    self.return_tail(file, tail, error, expected);
                    return Ok(());
                }
            }
        }
    }

    fn return_tail(&self, file: FileId, tail: Box<Tail>, error: Option<TailError>, expected: u64) {
        finish(&self.shared.progress, expected);
        self.shared.inbox.push_result(FinishedJob { file, tail, error });
    }
}

/// The outcome of one batch.
#[derive(Debug)]
pub(super) enum BatchOutcome {
    More,
    Done(Option<TailError>),
}

/// Reads and sends one batch.
pub(super) fn step(
    tail: &mut Tail,
    reader: &mut TailReader,
    now: Now,
    (class, is_new): (ReadPriority, bool),
    expected: &mut u64,
    progress: &Progress,
    sink: &mut (impl FnMut(Batch) -> Result<(), Stopped> + ?Sized),
) -> Result<BatchOutcome, Stopped> {
    let before = tail.cursor().offset;
    let look = match tail.read(reader, now) {
        Ok(look) => look,
        Err(error) => return Ok(BatchOutcome::Done(Some(error))),
    };
    let read = tail.cursor().offset.saturating_sub(before).min(*expected);
    *expected -= read;
    Progress::add(&progress.bytes_done, read);
    if !look.events.is_empty() || look.vanished || !look.more {
        let history = class != ReadPriority::Live || is_new && is_past(&look, now);
        sink(Batch {
            cursor: tail.cursor().clone(),
            provider: tail.provider(),
            events: look.events,
            vanished: look.vanished,
            modified_at: look.modified_at,
            backfill: class == ReadPriority::Rest,
            history,
        })?;
    }
    Ok(if look.more { BatchOutcome::More } else { BatchOutcome::Done(None) })
}

/// Counts a file as read, with the expected bytes that were not read.
pub(super) fn finish(progress: &Progress, expected: u64) {
    Progress::add(&progress.bytes_done, expected);
    Progress::add(&progress.files_done, 1);
}
