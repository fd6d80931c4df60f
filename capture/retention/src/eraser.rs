//! The thread that erases what is left of removed sessions, and removes old ones when the policy says so.

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, bounded};
use events::{SessionId, Timestamp};
use ingest::{IngestInput, IngestStopped};
use live_view::Refusal;
use store::{About, CommitError, Compacted, ReadError, RemovalKind, SessionRow, Writer};

use crate::{
    CONFIRM, Retention,
    files::{self, FileError},
};

/// The name of the thread.
pub const THREAD: &str = "retention";

/// Events and texts that are deleted between two other transactions.
const STEP_EVENTS: usize = 1_000;
const STEP_TEXTS: usize = 500;
/// Pause between two steps, so that what happens now comes first.
const STEP_PAUSE: Duration = Duration::from_millis(2);
/// Longest wait for the search index.
const INDEX_WITHIN: Duration = Duration::from_secs(120);
/// First and longest wait after a failure.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_MOST: Duration = Duration::from_secs(300);
/// The policy is applied this long after a start, ms.
const FIRST_PRUNE_MS: i64 = 15 * 60_000;
/// Then it is applied this often, ms.
const PRUNE_EVERY_MS: i64 = 24 * 3_600_000;
/// While the clock is in doubt, it is looked at this often, ms.
const DOUBT_EVERY_MS: i64 = 3_600_000;
/// The clock is read at least this often, so that it is known how long the machine was off.
const READ_CLOCK_EVERY: Duration = Duration::from_secs(3_600);
/// Free pages are given back from this share of the database on, percent.
const FREE_PERCENT: u64 = 10;

/// Why something of a removed session is still there.
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
    #[error(transparent)]
    Stopped(#[from] IngestStopped),
}

/// When the policy is applied, by the boot clock: it goes on while the machine sleeps, and nobody sets it.
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

    /// It is due again in this time.
    const fn again_in(&mut self, now_ms: i64, ms: i64) {
        self.due_ms = now_ms + ms;
    }

    /// How long to wait until then.
    fn wait(self, now_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.due_ms - now_ms).unwrap_or(0))
    }
}

/// Erases. [`Eraser::run`] belongs on a thread of its own.
pub struct Eraser {
    retention: Retention,
    woken: Receiver<()>,
}

impl Eraser {
    pub(crate) const fn new(retention: Retention, woken: Receiver<()>) -> Self {
        Self { retention, woken }
    }

    /// Erases until it is stopped.
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
                                tracing::warn!("old sessions are not removed: {doubt}. If it is right: {CONFIRM}");
                                prune_times.again_in(since_boot_ms(), DOUBT_EVERY_MS);
                            }
                        }
                    }
                    (!rules.is_empty()).then(|| prune_times.wait(since_boot_ms()).min(READ_CLOCK_EVERY))
                }
                Err(EraseError::Stopped(_)) => {
                    // The service ends, and this thread is about to be told.
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
                // Whoever wakes it has removed something, or ends it.
                None => drop(self.woken.recv()),
                Some(wait) => drop(self.woken.recv_timeout(wait)),
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.retention.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Removes what the policy asks for.
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

    /// Erases all that is noted, if anything is.
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
        if !forgotten.is_empty() {
            files::remove(&parts.data, &forgotten)?;
        }
        // The texts first: their hashes are in the events.
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
        let sessions = erased.len();
        self.step(move |writer| writer.finish_erasing(&erased))?;
        let Compacted { before, after } = freed.unwrap_or_default();
        let freed = before.saturating_sub(after);
        tracing::info!(sessions, freed, ms = began.elapsed().as_millis(), "removed sessions are erased");
        Ok(())
    }

    fn erase_from_index(&self, ids: &[SessionId]) -> Result<(), EraseError> {
        let parts = &self.retention.0.parts;
        if let Some(index) = &parts.index {
            return if index.erase_sessions(ids, INDEX_WITHIN) { Ok(()) } else { Err(EraseError::IndexBusy) };
        }
        // One of a time when search was turned on.
        let path = parts.data.join("index");
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(EraseError::Index { path: path.display().to_string(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Gives free pages back, if there are many; says how large the database was and is.
    fn give_back(&self) -> Result<Option<Compacted>, EraseError> {
        let parts = &self.retention.0.parts;
        let size = || fs::metadata(parts.data.join("capture.db")).map_or(0, |file| file.len());
        let (before, used) = (size(), parts.reader.used_bytes()?);
        if before.saturating_sub(used) * 100 < before * FREE_PERCENT {
            return Ok(None);
        }
        loop {
            match self.step(Writer::give_back)? {
                // It is given back step by step from now on.
                None => return self.compact().map(Some),
                Some(0) => break,
                Some(_) => {}
            }
        }
        self.step(|writer| writer.empty_log())?;
        Ok(Some(Compacted { before, after: size() }))
    }

    fn compact(&self) -> Result<Compacted, EraseError> {
        self.step(Writer::compact)
    }

    /// Has ingest do something between two transactions.
    fn step<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, EraseError> {
        if self.is_stopped() {
            return Err(IngestStopped.into());
        }
        let (reply, done) = bounded(1);
        let work = move |writer: &mut Writer| {
            // Whoever asked may have ended.
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
    fn the_policy_is_applied_a_while_after_the_start_and_then_once_a_day() {
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
