//! The thread that erases what is left of removed sessions, and removes old ones when the policy says so.

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, bounded};
use events::SessionId;
use ingest::{IngestInput, IngestStopped};
use server::Refusal;
use store::{CommitError, Compacted, ErasePending, ReadError, RemovalKind, SessionRow, Writer};

use crate::{
    Retention,
    files::{self, FileError},
    plan::About,
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
/// The policy is applied this long after a start, then this often.
const FIRST_PRUNE: Duration = Duration::from_secs(15 * 60);
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
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
        let mut prune_at = Instant::now() + FIRST_PRUNE;
        while !self.is_stopped() {
            let wait = match self.erase() {
                Ok(()) => {
                    *self.retention.trouble() = None;
                    retry = RETRY;
                    let rules = self.retention.0.parts.policy.rules();
                    if !rules.is_empty() && Instant::now() >= prune_at {
                        prune_at = Instant::now() + PRUNE_EVERY;
                        self.prune(&rules);
                        continue;
                    }
                    if rules.is_empty() { None } else { Some(prune_at.saturating_duration_since(Instant::now())) }
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
    fn prune(&self, rules: &[crate::plan::PruneRule]) {
        let plan = self.retention.plan(rules).map_err(|error| Refusal::Failed(error.to_string()));
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
        let forgotten: Vec<About> = pending.iter().filter(|p| p.kind == RemovalKind::Forgotten).map(about).collect();
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
        let erased = rows.len();
        self.step(move |writer| writer.finish_erasing(&rows))?;
        let Compacted { before, after } = freed.unwrap_or_default();
        let freed = before.saturating_sub(after);
        tracing::info!(sessions = erased, freed, ms = began.elapsed().as_millis(), "removed sessions are erased");
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

/// What was noted of a session.
fn about(pending: &ErasePending) -> About {
    serde_json::from_str(&pending.about).unwrap_or_default()
}
