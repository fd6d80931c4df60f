//! The thread that erases the traces of removed sessions, and removes old sessions according to the policy.

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, bounded};
use events::{SessionId, Timestamp};
use ingest::{IngestInput, IngestStopped};
use live_view::Refusal;
use store::{About, CommitError, Compacted, ErasePending, ReadError, RemovalKind, SessionRow, Writer};

use crate::{
    CONFIRM, Retention,
    files::{self, FileError},
};

/// Name of the thread.
pub const THREAD: &str = "retention";

/// Number of events and of texts deleted in one step between two other transactions.
const STEP_EVENTS: usize = 1_000;
const STEP_TEXTS: usize = 500;
/// Pause between two steps, so that live input has priority.
const STEP_PAUSE: Duration = Duration::from_millis(2);
/// Longest wait for the search index.
const INDEX_WITHIN: Duration = Duration::from_secs(120);
/// Number of attempts to empty the write-ahead log, and the pause between them.
const LOG_ATTEMPTS: usize = 20;
const LOG_PAUSE: Duration = Duration::from_millis(100);
/// First and longest delay after a failure.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_MOST: Duration = Duration::from_secs(300);
/// Delay after a start before the policy is applied, ms.
const FIRST_PRUNE_MS: i64 = 15 * 60_000;
/// Interval between applications of the policy, ms.
const PRUNE_EVERY_MS: i64 = 24 * 3_600_000;
/// Interval between checks of a doubted clock, ms.
const DOUBT_EVERY_MS: i64 = 3_600_000;
/// Longest interval between readings of the clock, so that the time the machine was off can be estimated.
const READ_CLOCK_EVERY: Duration = Duration::from_secs(3_600);
/// Share of free pages from which they are released, percent.
const FREE_PERCENT: u64 = 10;

/// Why traces of a removed session still exist.
#[derive(Debug, thiserror::Error)]
enum EraseError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] CommitError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot remove {path}: {source}")]
    Index { path: String, source: std::io::Error },
    #[error("the search index was not written in time")]
    IndexBusy,
    #[error("a program has been reading the database for a long time, so the write-ahead log cannot be emptied")]
    LogBusy,
    #[error(transparent)]
    Stopped(#[from] IngestStopped),
}

/// When the policy is applied, by the boot clock, which runs while the machine sleeps and cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PruneTimes {
    due_ms: i64,
}

impl PruneTimes {
    const fn started(now_ms: i64) -> Self {
        Self { due_ms: now_ms + FIRST_PRUNE_MS }
    }

    const fn is_due(self, now_ms: i64) -> bool {
        now_ms >= self.due_ms
    }

    /// Schedules the next application after this time.
    const fn again_in(&mut self, now_ms: i64, ms: i64) {
        self.due_ms = now_ms + ms;
    }

    /// The time until the next application.
    fn wait(self, now_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.due_ms - now_ms).unwrap_or(0))
    }
}

/// Erases sessions. [`Eraser::run`] needs its own thread.
pub struct Eraser {
    retention: Retention,
    woken: Receiver<()>,
}

impl Eraser {
    pub(crate) const fn new(retention: Retention, woken: Receiver<()>) -> Self {
        Self { retention, woken }
    }

    /// Erases until the service stops.
    pub fn run(&mut self) {
        let mut retry = RETRY;
        let clock = Arc::clone(&self.retention.0);
        let since_boot_ms = || clock.clock.since_boot_ms();
        let mut prune_times = PruneTimes::started(since_boot_ms());
        while !self.is_stopped() {
            let trusted = clock.clock.check();
            let wait = match self.erase() {
                Ok(()) => {
                    *self.retention.trouble() = None;
                    retry = RETRY;
                    let rules = clock.parts.policy.rules();
                    if !rules.is_empty() && prune_times.is_due(since_boot_ms()) {
                        match trusted {
                            Ok(now) => {
                                self.prune(&rules, now);
                                prune_times.again_in(since_boot_ms(), PRUNE_EVERY_MS);
                                continue;
                            }
                            Err(doubt) => {
                                tracing::warn!(
                                    "old sessions are not removed: {doubt}. If the clock is right: {CONFIRM}"
                                );
                                prune_times.again_in(since_boot_ms(), DOUBT_EVERY_MS);
                            }
                        }
                    }
                    (!rules.is_empty()).then(|| prune_times.wait(since_boot_ms()).min(READ_CLOCK_EVERY))
                }
                Err(EraseError::Stopped(_)) => {
                    // The service is stopping, and this thread will be stopped next.
                    Some(RETRY)
                }
                Err(error) => {
                    tracing::warn!(%error, "removed sessions are not erased everywhere yet; trying again");
                    *self.retention.trouble() = Some(error.to_string());
                    let wait = retry;
                    retry = (retry * 2).min(RETRY_MOST);
                    Some(wait)
                }
            };
            match wait {
                _ if self.is_stopped() => {}
                // It is woken after a removal or when the service stops.
                None => drop(self.woken.recv()),
                Some(wait) => drop(self.woken.recv_timeout(wait)),
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.retention.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Removes the sessions the policy selects.
    fn prune(&self, rules: &[crate::plan::PruneRule], now: Timestamp) {
        let plan = self.retention.plan(rules, now).map_err(|error| Refusal::Failed(error.to_string()));
        match plan.and_then(|plan| self.retention.remove(&plan, RemovalKind::Pruned).map(|()| plan)) {
            Ok(plan) if plan.sessions.is_empty() => {}
            Ok(plan) => {
                let bytes: u64 = plan.sessions.iter().map(|(session, _)| session.bytes).sum();
                tracing::info!(
                    sessions = plan.sessions.len(),
                    bytes,
                    "removed old sessions, as the configuration says"
                );
            }
            Err(error) => tracing::warn!(%error, "cannot remove old sessions; trying again tomorrow"),
        }
    }

    /// Erases all removed sessions, if any.
    fn erase(&self) -> Result<(), EraseError> {
        let parts = &self.retention.0.parts;
        let pending = parts.reader.erasing()?;
        if pending.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let forgotten = pending.iter().filter(|pending| pending.kind == RemovalKind::Forgotten);
        let forgotten: Vec<About> = forgotten.map(|pending| pending.about.clone()).collect();
        let rows: Vec<SessionRow> = pending.iter().map(|pending| pending.row).collect();
        if pending.iter().all(|pending| pending.about.erased) {
            // Everything is erased, but for the write-ahead log.
            return self.finish(&pending);
        }
        if !forgotten.is_empty() {
            files::remove(&parts.data, &forgotten)?;
        }
        // Texts first, because the events contain their hashes.
        let (texts, until) = parts.reader.texts_only_of(&rows)?;
        for texts in texts.chunks(STEP_TEXTS) {
            let texts = texts.to_vec();
            self.step(move |writer| writer.erase_texts(&texts, until))?;
        }
        let all: Arc<[SessionRow]> = rows.clone().into();
        loop {
            let rows = Arc::clone(&all);
            if self.step(move |writer| writer.erase_events(&rows, STEP_EVENTS))? == 0 {
                break;
            }
        }
        let ids: Vec<SessionId> = pending.iter().map(|pending| pending.id).collect();
        self.erase_from_index(&ids)?;
        let freed = if forgotten.is_empty() { self.give_back()? } else { Some(self.compact()?) };
        let erased: Vec<(SessionRow, RemovalKind)> =
            pending.iter().map(|pending| (pending.row, pending.kind)).collect();
        self.step(move |writer| writer.overwrite_facts(&erased))?;
        self.finish(&pending)?;
        let sessions = pending.len();
        let Compacted { before, after } = freed.unwrap_or_default();
        let freed = before.saturating_sub(after);
        tracing::info!(sessions, freed, ms = began.elapsed().as_millis(), "removed sessions are erased");
        Ok(())
    }

    /// Empties the write-ahead log and takes the sessions off the list. Once no session is listed, capture
    /// reports the data as erased.
    fn finish(&self, pending: &[ErasePending]) -> Result<(), EraseError> {
        self.empty_log()?;
        let erased: Vec<_> = pending.iter().map(|pending| (pending.row, pending.kind)).collect();
        self.step(move |writer| writer.finish_erasing(&erased))
    }

    fn erase_from_index(&self, ids: &[SessionId]) -> Result<(), EraseError> {
        let parts = &self.retention.0.parts;
        if let Some(index) = &parts.index {
            return if index.erase_sessions(ids, INDEX_WITHIN) { Ok(()) } else { Err(EraseError::IndexBusy) };
        }
        // An index from a time when search was turned on.
        let path = parts.data.join("index");
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(EraseError::Index { path: path.display().to_string(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Releases free pages if there are many; returns the size of the database before and after.
    fn give_back(&self) -> Result<Option<Compacted>, EraseError> {
        let parts = &self.retention.0.parts;
        let size = || fs::metadata(parts.data.join("capture.db")).map_or(0, |file| file.len());
        let (before, used) = (size(), parts.reader.used_bytes()?);
        if before.saturating_sub(used) * 100 < before * FREE_PERCENT {
            return Ok(None);
        }
        loop {
            match self.step(Writer::give_back)? {
                // After this, pages can be released step by step.
                None => return self.compact().map(Some),
                Some(0) => break,
                Some(_) => {}
            }
        }
        self.step(|writer| writer.empty_log())?;
        Ok(Some(Compacted { before, after: size() }))
    }

    /// Empties the write-ahead log, whose pages contain what was erased.
    fn empty_log(&self) -> Result<(), EraseError> {
        for _ in 0..LOG_ATTEMPTS {
            if self.step(|writer| writer.empty_log())? {
                return Ok(());
            }
            std::thread::park_timeout(LOG_PAUSE);
        }
        Err(EraseError::LogBusy)
    }

    fn compact(&self) -> Result<Compacted, EraseError> {
        self.step(Writer::compact)
    }

    /// Runs work on the store between two transactions of ingest.
    fn step<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, EraseError> {
        if self.is_stopped() {
            return Err(IngestStopped.into());
        }
        let (reply, done) = bounded(1);
        let work = move |writer: &mut Writer| {
            // The receiver may be gone.
            reply.send(work(writer)).ok();
        };
        self.retention.0.parts.inputs.send(IngestInput::Maintain(Box::new(work)))?;
        let done = done.recv().map_err(|_| IngestStopped)??;
        std::thread::park_timeout(STEP_PAUSE);
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pruning_is_due_15_minutes_after_the_start_and_then_daily() {
        let at = |minutes: i64| minutes * 60_000;
        let minutes = |wait: Duration| wait.as_secs() / 60;
        let mut times = PruneTimes::started(at(0));
        assert!(!times.is_due(at(14)));
        assert_eq!(minutes(times.wait(at(14))), 1);
        assert!(times.is_due(at(15)));
        times.again_in(at(15), PRUNE_EVERY_MS);
        assert!(!times.is_due(at(15)));
        assert_eq!(minutes(times.wait(at(15))), 24 * 60);
        // The machine slept for days.
        assert!(times.is_due(at(15 + 3 * 24 * 60)));
        assert_eq!(minutes(times.wait(at(15 + 3 * 24 * 60))), 0);
    }
}
