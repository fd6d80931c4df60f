//! Finds the agents' files, decides when to read them, and sends on what it read.
//!
//! A [`Collector`] owns the table of files and of directories. One call of [`Collector::round`]
//! is one turn: take in hints, look at the directories and files whose time has come, read what
//! changed, say when to come again. [`Collector::start`] is a thin shell round it: one thread for
//! what is live, and a few for the history, which take files from a queue. A file belongs to one
//! thread at a time, so its batches are in order.
//!
//! The poll is the truth and hints are hints: hot files are looked at every half second, quiet
//! ones and directories every few seconds, each by one `stat`; where hints arrive, directories every
//! minute and quiet files every five. See `round` for the turn, `tree`
//! for finding files, `queue` for the history, [`control`] for the handle.

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

/// How a collector works. [`CollectorConfig::new`] has the figures that were measured.
#[derive(Debug, Clone)]
pub struct CollectorConfig {
    /// Reads both clocks.
    pub clock: fn() -> Now,
    /// Bounds of reading.
    pub limits: ReadLimits,
    /// Interval between checks of hot files without hints.
    pub hot_poll: Duration,
    /// Interval between checks of hot files when hints arrive.
    pub hot_poll_watched: Duration,
    /// Interval between checks of quiet files and directories.
    pub quiet_poll: Duration,
    /// Interval between checks of directories that are watched, so that they only find what left no hint.
    pub watched_directories_poll: Duration,
    /// The same of quiet files in them; each check of the others looks at some of these.
    pub watched_files_poll: Duration,
    /// How long a file is hot after a change.
    pub hot_for: Duration,
    /// A file changed within this time before the start is read before the rest of the history.
    pub fresh_for: Duration,
    /// Most quiet files checked in one round; the others are checked in the next ones.
    pub quiet_files: usize,
    /// Most files kept open between checks.
    pub open_files: usize,
    /// Most directories watched, those changed last; 0 for polling alone.
    pub watches: usize,
    /// Threads that read the history; with 0 the rounds do it, one batch each.
    pub workers: usize,
}

impl CollectorConfig {
    /// The usual figures.
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

/// Says which files below a root are of interest, by their paths alone.
pub trait Recognize: Send + Sync {
    /// How to read the file with this path below the root; `None` for a file to leave alone.
    fn file(&self, relative: &Path) -> Option<FileSpec>;

    /// Whether files of interest can be in this directory or below it.
    fn enter(&self, _relative: &Path) -> bool {
        true
    }
}

impl<F: Fn(&Path) -> Option<FileSpec> + Send + Sync> Recognize for F {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        self(relative)
    }
}

/// A directory a provider keeps its sessions in. It need not exist yet. Roots must not lie in each
/// other.
#[derive(Clone)]
pub struct Root {
    /// The agent.
    pub provider: Provider,
    /// The directory, absolute. It may be a symbolic link, nothing below it may.
    pub dir: PathBuf,
    /// What in it is of interest.
    pub recognize: Arc<dyn Recognize>,
}

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Root").field("provider", &self.provider).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Owns what is known of all files.
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
    /// How far files were read that are not found yet.
    unclaimed: HashMap<String, CursorSummary>,
    committed: Arc<dyn CommittedCursors>,
    /// Closed files whose whole cursor is in memory, longest closed first.
    closed: VecDeque<FileId>,
    /// Files to read in this round.
    dirty: VecDeque<FileId>,
    /// Files looked at often.
    hot: Vec<FileId>,
    /// Files that are gone, longest gone first.
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

/// When what is done next, by the steady clock.
#[derive(Debug, Default)]
struct Due {
    hot: Duration,
    quiet: Duration,
    /// Watched directories are not looked at before.
    watched_directories: Duration,
    /// Where in the table the next turn over quiet files begins, and the next over all of them.
    quiet_from: FileId,
    sweep_from: FileId,
    /// The earliest time lost hints are answered by looking everywhere, and whether they are to be.
    everything: Duration,
    everything_wanted: bool,
    /// All roots were walked once.
    first_done: bool,
    /// The first round is over: what comes now happens now.
    first_over: bool,
    /// The errors that were reported.
    reported: u64,
}

impl Collector {
    /// Makes a collector of these roots that goes on where earlier ones ended.
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

    /// A handle to it.
    #[must_use]
    pub fn control(&self) -> CollectorHandle {
        CollectorHandle::new(Arc::clone(&self.shared))
    }

    /// Runs on threads of its own until stopped, or until `sink` says so. Each thread has its own
    /// clone of `sink`; it may block, then reading waits. For one path batches must be committed
    /// in the order they were given: one bounded channel does it.
    ///
    /// # Errors
    /// When a thread cannot be made.
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

/// A collector at work. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    control: CollectorHandle,
    queue: Arc<HistoryQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// A handle to it.
    #[must_use]
    pub fn control(&self) -> CollectorHandle {
        self.control.clone()
    }

    /// Whether all its threads still run.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops; no batch is given after it returned. A sink that blocks must be let go first.
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
