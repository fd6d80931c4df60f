//! Finds the agents' files, decides when to read them, and sends their events.
//!
//! A [`Collector`] owns the table of files and of directories. One call of [`Collector::round`] applies hints, checks
//! the directories and files that are due, reads the changed files, and returns the time of the next round.
//! [`Collector::start`] runs the rounds on one thread for live files, and a few threads for history, which get files
//! from a queue. A file belongs to one thread at a time, so its batches are in order.
//!
//! Polling finds every change; hints only find it sooner. Hot files are checked every half second, quiet files and
//! directories every few seconds, each with one `stat`. Where hints arrive, directories are checked every minute and
//! quiet files every five. See `round` for a round, `tree` for finding files, `queue` for the history, [`control`] for
//! the handle.

mod batch;
mod committed;
pub mod control;
mod directories;
mod files;
mod finished_job;
mod inbox;
mod queue;
mod reading;
mod report;
mod round;
#[cfg(test)]
mod tests;
mod tree;

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};

use events::{CursorSummary, Provider};

use crate::{
    tail::{FileSpec, Now, ReadLimits, TailReader},
    watch::{self, Watch},
};
pub use agents::Stopped;
pub use batch::Batch;
pub use committed::{CommittedCursors, KnownFiles};
use control::CollectorShared;
pub use control::{CollectorHandle, CollectorHealth, Progress, RootHealth, UnreadPath};
use directories::DirTree;
use files::{FileId, Files};
use queue::HistoryQueue;
use report::Errors;

/// The settings of a collector. [`CollectorConfig::new`] sets the measured values.
#[derive(Debug, Clone)]
pub struct CollectorConfig {
    /// Reads both clocks.
    pub clock: fn() -> Now,
    /// Limits of reading.
    pub limits: ReadLimits,
    /// Interval between checks of hot files without hints.
    pub hot_poll: Duration,
    /// Interval between checks of hot files when hints arrive.
    pub hot_poll_watched: Duration,
    /// Interval between checks of quiet files and directories.
    pub quiet_poll: Duration,
    /// Interval between checks of watched directories, which only find changes without a hint.
    pub watched_directories_poll: Duration,
    /// Interval between checks of quiet files in watched directories; each check of the other quiet files includes some
    /// of these.
    pub watched_files_poll: Duration,
    /// How long a file is hot after a change.
    pub hot_for: Duration,
    /// A file changed within this time before the start is read before the rest of the history.
    pub fresh_for: Duration,
    /// Maximum number of quiet files checked in one round; the rest are checked in later rounds.
    pub quiet_files: usize,
    /// Maximum number of files kept open between checks.
    pub open_files: usize,
    /// Maximum number of directories watched, the most recently changed ones; 0 means only polling.
    pub watches: usize,
    /// Number of threads that read history; with 0, each round reads one batch.
    pub workers: usize,
}

impl CollectorConfig {
    /// The default settings.
    #[must_use]
    pub fn new(clock: fn() -> Now) -> Self {
        Self {
            clock,
            limits: ReadLimits::default(),
            hot_poll: Duration::from_millis(500),
            hot_poll_watched: Duration::from_secs(1),
            quiet_poll: Duration::from_millis(4500),
            watched_directories_poll: Duration::from_secs(60),
            watched_files_poll: Duration::from_secs(300),
            hot_for: Duration::from_secs(60),
            fresh_for: Duration::from_secs(600),
            quiet_files: 5000,
            open_files: 64,
            watches: watch::most_directories(),
            workers: 2,
        }
    }
}

/// Decides which files below a root to read, by their paths alone.
pub trait Recognize: Send + Sync {
    /// How to read the file with this path below the root; `None` if the file is not to be read.
    fn file(&self, relative: &Path) -> Option<FileSpec>;

    /// Whether this directory may contain files to read, at any depth.
    fn enter(&self, _relative: &Path) -> bool {
        true
    }
}

impl<F: Fn(&Path) -> Option<FileSpec> + Send + Sync> Recognize for F {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        self(relative)
    }
}

/// A directory in which a provider keeps its sessions. It may not exist yet. Roots must not contain each other.
#[derive(Clone)]
pub struct Root {
    /// The agent.
    pub provider: Provider,
    /// The directory, absolute. The directory itself may be a symbolic link, but links below it are not followed.
    pub dir: PathBuf,
    /// Decides which of its files are read.
    pub recognize: Arc<dyn Recognize>,
}

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Root").field("provider", &self.provider).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Owns the state of all files.
pub struct Collector {
    config: CollectorConfig,
    roots: Vec<Root>,
    files: Files,
    tree: DirTree,
    watch: Watch,
    reader: TailReader,
    queue: Arc<HistoryQueue>,
    shared: Arc<CollectorShared>,
    errors: Errors,
    /// The cursors, in short form, of files that are not found yet.
    unclaimed: HashMap<String, CursorSummary>,
    committed: Arc<dyn CommittedCursors>,
    /// Closed files whose whole cursor is in memory; the one closed longest ago is first.
    closed: VecDeque<FileId>,
    /// Files to read in this round.
    dirty: VecDeque<FileId>,
    /// Files that are checked often.
    hot: Vec<FileId>,
    /// Files that disappeared; the one gone longest is first.
    gone: VecDeque<FileId>,
    ignored: Arc<[PathBuf]>,
    due: Due,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector")
            .field("roots", &self.roots)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

/// When each kind of work is due next, by the steady clock.
#[derive(Debug, Default)]
struct Due {
    hot: Duration,
    quiet: Duration,
    /// Watched directories are not checked before this time.
    watched_directories: Duration,
    /// The index in the table at which the next check of quiet files starts, and the next check of all files.
    quiet_from: FileId,
    sweep_from: FileId,
    /// The earliest time of the next check of everything after lost hints, and whether one is requested.
    everything: Duration,
    everything_wanted: bool,
    /// Whether all roots were walked once.
    first_done: bool,
    /// Whether the first round is over: later files are live.
    first_over: bool,
    /// The version of the errors that were reported.
    reported: u64,
}

impl Collector {
    /// Creates a collector for these roots that continues where earlier ones ended.
    #[must_use]
    pub fn new(config: CollectorConfig, roots: Vec<Root>, known: impl Into<KnownFiles>) -> Self {
        let KnownFiles { summaries, committed } = known.into();
        let shared = Arc::new(CollectorShared::default());
        let watch = if config.watches == 0 {
            Watch::off()
        } else {
            let told = Arc::clone(&shared);
            Watch::start(move |hint| told.inbox.hint(hint))
        };
        Self {
            reader: TailReader::new(config.limits),
            config,
            roots,
            files: Files::default(),
            tree: DirTree::default(),
            watch,
            queue: Arc::new(HistoryQueue::default()),
            shared,
            errors: Errors::default(),
            unclaimed: summaries.into_iter().collect(),
            committed,
            closed: VecDeque::new(),
            dirty: VecDeque::new(),
            hot: Vec::new(),
            gone: VecDeque::new(),
            ignored: Arc::from([]),
            due: Due::default(),
        }
    }

    /// A handle to this collector.
    #[must_use]
    pub fn control(&self) -> CollectorHandle {
        CollectorHandle::new(Arc::clone(&self.shared))
    }

    /// Runs on separate threads until stopped, or until `sink` returns [`Stopped`]. Each thread has a clone of `sink`.
    /// If `sink` blocks, reading waits. Batches of one path must be committed in the order in which they are sent: a
    /// single bounded channel is enough.
    ///
    /// # Errors
    /// If a thread cannot be created.
    pub fn start<S>(self, sink: S) -> io::Result<Running>
    where
        S: FnMut(Batch) -> Result<(), Stopped> + Clone + Send + 'static,
    {
        let mut running = Running { control: self.control(), queue: Arc::clone(&self.queue), threads: Vec::new() };
        for n in 0..self.config.workers {
            let mut worker = queue::HistoryWorker {
                queue: Arc::clone(&self.queue),
                shared: Arc::clone(&self.shared),
                clock: self.config.clock,
                reader: TailReader::new(self.config.limits),
            };
            let mut sink = sink.clone();
            let thread = std::thread::Builder::new().name(format!("backfill-{n}"));
            running.threads.push(thread.spawn(move || worker.run(&mut sink))?);
        }
        let thread = std::thread::Builder::new().name("files".into());
        running.threads.push(thread.spawn(move || self.run(sink))?);
        Ok(running)
    }

    fn run(mut self, mut sink: impl FnMut(Batch) -> Result<(), Stopped>) {
        while !self.shared.stop.load(Ordering::Acquire) {
            let Ok(next) = self.round((self.config.clock)(), &mut sink) else {
                break;
            };
            let now = (self.config.clock)().steady;
            self.shared.inbox.wait(next.saturating_sub(now));
        }
        self.shared.stop.store(true, Ordering::Release);
        self.queue.close();
        self.shared.inbox.close();
    }
}

/// A running collector. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    control: CollectorHandle,
    queue: Arc<HistoryQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// A handle to this collector.
    #[must_use]
    pub fn control(&self) -> CollectorHandle {
        self.control.clone()
    }

    /// Stops the collector; it sends no batch afterwards. Unblock the sink first.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.shared().stop.store(true, Ordering::Release);
        self.queue.close();
        self.control.shared().inbox.close();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that reads files panicked");
            }
        }
    }
}
