//! Hints, requests and results that arrive between two rounds. Bounded: too many paths become one "check everything",
//! and history readers block until their results are collected.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{collect::finished_job::FinishedJob, watch::Hint};

/// Maximum number of paths remembered; more become one check of everything.
const PATHS: usize = 4096;
/// Maximum number of queued results of workers.
const RESULTS: usize = 64;

/// The content of the inbox.
#[derive(Debug, Default)]
pub(super) struct InboxContents {
    pub(super) paths: HashSet<PathBuf>,
    pub(super) everything: bool,
    pub(super) ignore: Option<Vec<PathBuf>>,
    pub(super) done: Vec<FinishedJob>,
    closed: bool,
}

impl InboxContents {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.everything && self.ignore.is_none() && self.done.is_empty() && !self.closed
    }
}

#[derive(Debug, Default)]
pub(super) struct HintInbox {
    news: Mutex<InboxContents>,
    arrived: Condvar,
    taken: Condvar,
}

impl HintInbox {
    fn lock(&self) -> MutexGuard<'_, InboxContents> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never blocks for long, because the watcher calls it.
    pub(super) fn hint(&self, hint: Hint) {
        let mut news = self.lock();
        let quiet = news.is_empty();
        match hint {
            Hint::Path(path) if news.paths.len() < PATHS => drop(news.paths.insert(path)),
            Hint::Path(_) | Hint::Everything => {
                news.everything = true;
                news.paths.clear();
            }
        }
        drop(news);
        if quiet {
            self.arrived.notify_one();
        }
    }

    pub(super) fn ignore(&self, paths: Vec<PathBuf>) {
        self.lock().ignore = Some(paths);
        self.arrived.notify_one();
    }

    /// Returns a file; blocks while too many results are queued.
    pub(super) fn push_result(&self, done: FinishedJob) {
        let mut news = self.lock();
        while news.done.len() >= RESULTS && !news.closed {
            news = self.taken.wait(news).unwrap_or_else(PoisonError::into_inner);
        }
        news.done.push(done);
        drop(news);
        self.arrived.notify_one();
    }

    /// Collects the queued results of workers, without waiting.
    pub(super) fn take_results(&self) -> Vec<FinishedJob> {
        let done = std::mem::take(&mut self.lock().done);
        if !done.is_empty() {
            self.taken.notify_all();
        }
        done
    }

    /// Takes the content of the inbox, without waiting.
    pub(super) fn drain(&self) -> InboxContents {
        let mut news = self.lock();
        let closed = news.closed;
        let taken = std::mem::take(&mut *news);
        news.closed = closed;
        drop(news);
        self.taken.notify_all();
        taken
    }

    /// Waits until something arrives, for `timeout` at most.
    pub(super) fn wait(&self, timeout: Duration) {
        let waited = self.arrived.wait_timeout_while(self.lock(), timeout, |news| news.is_empty());
        drop(waited);
    }

    /// Wakes all waiting threads permanently.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
        self.taken.notify_all();
    }
}
