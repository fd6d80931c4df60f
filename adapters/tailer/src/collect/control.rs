//! The handle to a running collector, and the status it reports.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use events::Provider;

use super::inbox::HintInbox;
use crate::watch::{Hint, Mode};

/// The progress of reading the history. Counts all work since the start.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files to read.
    pub files_total: AtomicU64,
    /// Files read to their end.
    pub files_done: AtomicU64,
    /// Bytes to read.
    pub bytes_total: AtomicU64,
    /// Bytes read.
    pub bytes_done: AtomicU64,
    /// Whether every directory was scanned once, so that all existing history is counted.
    pub is_counted: AtomicBool,
}

impl Progress {
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Whether all history that was found is read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_counted.load(Ordering::Relaxed)
            && self.files_done.load(Ordering::Relaxed) >= self.files_total.load(Ordering::Relaxed)
    }
}

/// A file or directory that is not read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadPath {
    /// Its path.
    pub path: String,
    /// The error.
    pub message: String,
}

/// The status of a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorHealth {
    /// Files known.
    pub files: u64,
    /// Number of these that changed recently or report on live sessions.
    pub active: u64,
    /// Number of these whose history is not read yet.
    pub queued: u64,
    /// Directories known.
    pub directories: u64,
    /// Bytes in files that are not read yet.
    pub lag_bytes: u64,
    /// Lines that could not be parsed, in the current files.
    pub issues: u64,
    /// Paths that cannot be read now; at most 64.
    pub errors: Vec<UnreadPath>,
    /// Total number of paths that cannot be read now.
    pub errors_total: u64,
    /// How changes are noticed.
    pub watch: Mode,
    /// Directories watched.
    pub watched: u64,
    /// The roots, in the order they were given.
    pub roots: Vec<RootHealth>,
}

/// The status of one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootHealth {
    /// The agent.
    pub provider: Provider,
    /// Files known.
    pub files: u64,
    /// Bytes in its files that are not read yet.
    pub lag_bytes: u64,
}

impl Default for CollectorHealth {
    fn default() -> Self {
        Self {
            files: 0,
            active: 0,
            queued: 0,
            directories: 0,
            lag_bytes: 0,
            issues: 0,
            errors: Vec::new(),
            errors_total: 0,
            watch: Mode::Polling("not started yet"),
            watched: 0,
            roots: Vec::new(),
        }
    }
}

/// State that the threads of a collector share with each other and with handles.
#[derive(Debug, Default)]
pub(super) struct CollectorShared {
    pub(super) inbox: HintInbox,
    pub(super) stop: AtomicBool,
    pub(super) progress: Arc<Progress>,
    pub(super) health: Mutex<CollectorHealth>,
}

/// A handle to a collector.
#[derive(Debug, Clone)]
pub struct CollectorHandle {
    shared: Arc<CollectorShared>,
}

impl CollectorHandle {
    pub(super) fn new(shared: Arc<CollectorShared>) -> Self {
        Self { shared }
    }

    pub(super) fn shared(&self) -> &CollectorShared {
        &self.shared
    }

    /// Checks a file or directory now. Only files that a root recognizes are read.
    pub fn check_path(&self, path: &Path) {
        self.shared.inbox.hint(Hint::Path(path.to_owned()));
    }

    /// Reads nothing in or below these files and directories of transcripts; replaces the previous list. Content
    /// written in the meantime is read when a path is removed from the list.
    pub fn ignore(&self, paths: Vec<PathBuf>) {
        self.shared.inbox.ignore(paths);
    }

    /// The progress of reading the history.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.shared.progress)
    }

    /// The status as of the last round.
    #[must_use]
    pub fn health(&self) -> CollectorHealth {
        self.shared.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
