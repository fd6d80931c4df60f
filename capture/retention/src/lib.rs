//! Removes sessions that the user wants forgotten, or that are old, from everywhere they are stored.
//!
//! A removal has two parts. First ingest removes the sessions from everything shown and records what must still be
//! erased, in one transaction. Then the [`Eraser`], a low-priority thread, erases events, texts, entries of the search
//! index, files, free pages and the write-ahead log in small steps. It continues after a restart.
//!
//! Only the [`PrunePolicy`] removes sessions automatically. This crate writes to the store only through ingest. Nothing
//! is removed because of its age while the machine's clock is in doubt (`clock`). A request that was answered with an
//! error removed nothing and will not do so later, or the error says how many sessions were removed.

pub mod backups;
mod clock;
mod eraser;
mod files;
mod plan;

use std::{
    future::Future,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::retention::{PruneRequest, RemovalReport, RemovedSession, RetentionStatus};
use crossbeam_channel::{Sender, TrySendError, bounded};
use events::{SessionId, Timestamp};
use ingest::{IngestHandle, IngestInput, RemovalRequest, RemovalTicket};
use live_view::Refusal;
use search::SearchIndex;
use store::{About, ReadError, Reader, RemovalKind, SessionFilter};
use tokio::{sync::oneshot, time::timeout};

use clock::{ClockCheck, ClockDoubt};
pub use clock::{ClockReading, ReadClocks};
pub use eraser::{Eraser, THREAD};
use plan::{Plan, all_sessions};
pub use plan::{PrunePolicy, PruneRule};

/// Maximum number of sessions removed in one transaction.
const AT_ONCE: usize = 100;
/// Interval between attempts to withdraw a request that timed out while it was being carried out, which may still fail.
const WITHDRAW_EVERY: Duration = Duration::from_millis(20);
/// Longest wait of a request for ingest, which itself may wait for another program's database lock.
const CARRIED_OUT_WITHIN: Duration = Duration::from_secs(5);

/// The parts that the removal of sessions needs.
#[derive(Clone)]
pub struct RetentionParts {
    /// The data directory.
    pub data: PathBuf,
    /// Reads the store.
    pub reader: Reader,
    /// Sends inputs to ingest.
    pub inputs: IngestHandle,
    /// The search index; `None` if search is turned off.
    pub index: Option<SearchIndex>,
    /// Reads the wall clock and the boot clock.
    pub clocks: ReadClocks,
    /// The policy for automatic removals.
    pub policy: PrunePolicy,
}

/// Removes sessions. Clones share the state.
#[derive(Clone)]
pub struct Retention(Arc<Shared>);

struct Shared {
    parts: RetentionParts,
    clock: ClockCheck,
    wake: Sender<()>,
    trouble: Mutex<Option<String>>,
    is_stopped: AtomicBool,
}

impl Retention {
    /// Creates the handle and the eraser, which needs its own thread. Must be called before new events are stored: the
    /// time of the newest stored event is evidence about the clock.
    #[must_use]
    pub fn new(parts: RetentionParts) -> (Self, Eraser) {
        let (wake, woken) = bounded(1);
        let newest = parts.reader.sessions(&SessionFilter { before: None, limit: 1 }).unwrap_or_default();
        let newest = newest.first().map(|session| session.last_event_at);
        let clock = ClockCheck::open(&parts.data, Arc::clone(&parts.clocks), newest);
        let (trouble, is_stopped) = (Mutex::default(), AtomicBool::new(false));
        let retention = Self(Arc::new(Shared { parts, clock, wake, trouble, is_stopped }));
        let eraser = Eraser::new(retention.clone(), woken);
        (retention, eraser)
    }

    /// Forgets a session with its sub-agents, including pruned ones. Returns once the sessions are no longer shown;
    /// [`Self::status`] reports when all traces in files are gone. If the future is dropped before, nothing is removed.
    ///
    /// # Errors
    /// When the store cannot be read or written in time, the session is unknown, or the server is stopping.
    pub async fn forget(&self, session: SessionId, dry_run: bool) -> Result<RemovalReport, Refusal> {
        self.commit_shown().await?;
        let own = self.clone();
        let plan = blocking(move || Plan::of_family(&own.0.parts.reader, session)).await?;
        let plan = plan.ok_or_else(|| Refusal::NotFound(format!("no session `{session}`")))?;
        self.carry_out(plan, RemovalKind::Forgotten, dry_run).await
    }

    /// Removes old sessions. If the future is dropped, sessions not removed yet stay.
    ///
    /// # Errors
    /// When the request has no criteria, the clock is in doubt, the store cannot be read or written in time, or the
    /// server is stopping.
    pub async fn prune(&self, request: PruneRequest) -> Result<RemovalReport, Refusal> {
        let PruneRequest { older_than_s, larger_than_bytes, project, clock_is_right, dry_run } = request;
        if older_than_s.is_none() && larger_than_bytes.is_none() && project.is_none() {
            let reason = "expected an age (`older_than_s`), a size (`larger_than_bytes`) or a directory (`project`)";
            return Err(Refusal::Invalid { name: "older_than_s", reason: reason.into() });
        }
        if older_than_s.is_some() && !clock_is_right {
            let trusted = if dry_run { self.0.clock.peek() } else { self.0.clock.check() };
            if let Some(doubt) = trusted.err().filter(ClockDoubt::is_contradicted) {
                let why = format!(
                    "no session is removed by age: {doubt}. If the clock is right, repeat this with \
                     `--clock-is-right` (`clock_is_right` over HTTP)"
                );
                return Err(Refusal::Conflict(why));
            }
        }
        let rule = plan::PruneRule {
            older_than_ms: older_than_s.map(|s| i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(1_000)),
            larger_than_bytes,
            project: project.map(PathBuf::from),
        };
        self.commit_shown().await?;
        let own = self.clone();
        let plan = blocking(move || own.plan(&[rule], own.0.clock.wall())).await?;
        let report = self.carry_out(plan, RemovalKind::Pruned, dry_run).await?;
        if clock_is_right && !dry_run {
            self.0.clock.confirm();
        }
        Ok(report)
    }

    /// The state of pending erasures.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn status(&self) -> Result<RetentionStatus, Refusal> {
        let own = self.clone();
        blocking(move || {
            let parts = &own.0.parts;
            let database = parts.data.join("capture.db");
            Ok(RetentionStatus {
                erasing: parts.reader.erasing()?.len() as u64,
                trouble: own.trouble().clone(),
                database_bytes: std::fs::metadata(database).map_or(0, |file| file.len()),
                used_bytes: parts.reader.used_bytes()?,
                clock: own.clock_doubt(),
            })
        })
        .await
    }

    /// Why nothing is currently removed because of its age; `None` if the clock is trusted, or if nothing is removed
    /// automatically and there is no evidence against the clock.
    #[must_use]
    pub fn clock_doubt(&self) -> Option<String> {
        let has_rules = self.removes_by_itself();
        let doubt = self.0.clock.peek().err().filter(|doubt| has_rules || doubt.is_contradicted())?;
        Some(format!("{doubt}. Until then, old sessions are not removed. If the clock is right: {CONFIRM}"))
    }

    /// Whether the configuration removes old sessions automatically.
    #[must_use]
    pub fn removes_by_itself(&self) -> bool {
        !self.0.parts.policy.rules().is_empty()
    }

    /// Stops the eraser; pending erasures continue after the next start.
    pub fn stop(&self) {
        // The time the machine is off is measured from this reading.
        let _trusted = self.0.clock.check();
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn plan(&self, rules: &[plan::PruneRule], now: Timestamp) -> Result<Plan, ReadError> {
        let parts = &self.0.parts;
        let sessions = all_sessions(&parts.reader)?;
        Plan::of_rules(&parts.reader, &sessions, rules, now)
    }

    /// Commits changes that lists already show, so that the store contains them.
    async fn commit_shown(&self) -> Result<(), Refusal> {
        match timeout(CARRIED_OUT_WITHIN, self.0.parts.inputs.commit()).await {
            Ok(committed) => committed.map_err(|_| Refusal::Unavailable),
            Err(_) => Err(busy("nothing was removed")),
        }
    }

    async fn carry_out(&self, plan: Plan, kind: RemovalKind, dry_run: bool) -> Result<RemovalReport, Refusal> {
        let (own, plan) = (self.clone(), Arc::new(plan));
        let reported = Arc::clone(&plan);
        let report = blocking(move || Ok(own.report(&reported, kind, dry_run))).await?;
        if !dry_run {
            self.remove_in_time(&plan, kind).await?;
        }
        Ok(report)
    }

    fn report(&self, plan: &Plan, kind: RemovalKind, dry_run: bool) -> RemovalReport {
        let data = &self.0.parts.data;
        let is_forgotten = kind == RemovalKind::Forgotten;
        let files = if is_forgotten { files::of_sessions(data, plan.about()) } else { Vec::new() };
        let elsewhere = if is_forgotten { backups::elsewhere(data) } else { Vec::new() };
        let shown = |paths: Vec<PathBuf>| paths.iter().map(|path| path.display().to_string()).collect();
        RemovalReport {
            dry_run,
            events: plan.sessions.iter().map(|(session, _)| session.events).sum(),
            bytes: plan.sessions.iter().map(|(session, _)| session.bytes).sum(),
            sessions: plan.sessions.iter().map(|(session, _)| session.clone()).collect(),
            files: shown(files),
            backups_elsewhere: shown(elsewhere),
        }
    }

    /// Removes the sessions through ingest and wakes the eraser. Waits without a limit.
    fn remove(&self, plan: &Plan, kind: RemovalKind) -> Result<(), Refusal> {
        for sessions in plan.sessions.chunks(AT_ONCE) {
            let (_ticket, input, removed) = requested(sessions, kind);
            self.0.parts.inputs.send(input).map_err(|_| Refusal::Unavailable)?;
            removed.blocking_recv().map_err(|_| Refusal::Unavailable)?;
        }
        self.wake();
        Ok(())
    }

    /// Like [`remove`](Self::remove), but withdraws removals that ingest cannot carry out in time.
    async fn remove_in_time(&self, plan: &Plan, kind: RemovalKind) -> Result<(), Refusal> {
        let mut done = 0;
        for sessions in plan.sessions.chunks(AT_ONCE) {
            if let Err(refusal) = self.remove_some(sessions, kind).await {
                let all = plan.sessions.len();
                return Err(match (refusal, done) {
                    (refusal, 0) => refusal,
                    (_, done) => busy(&format!("{done} of {all} sessions were removed; the others were not")),
                });
            }
            done += sessions.len();
            self.wake();
        }
        Ok(())
    }

    async fn remove_some(&self, sessions: &[(RemovedSession, About)], kind: RemovalKind) -> Result<(), Refusal> {
        let (ticket, input, mut removed) = requested(sessions, kind);
        let ticket = Withdrawn(ticket);
        let carried_out = async {
            self.0.parts.inputs.send_async(input).await.map_err(|_| Refusal::Unavailable)?;
            (&mut removed).await.map_err(|_| Refusal::Unavailable)
        };
        within(CARRIED_OUT_WITHIN, carried_out, || ticket.0.withdraw())
            .await
            .unwrap_or_else(|| Err(busy("nothing was removed")))
    }

    fn wake(&self) {
        match self.0.wake.try_send(()) {
            // One pending wake-up is enough.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The command with which the user confirms the clock.
const CONFIRM: &str = "`capture prune --older-than AGE --clock-is-right`";

/// A refusal because the database cannot be written now; `what` describes the consequence for the request.
fn busy(what: &str) -> Refusal {
    Refusal::Busy(format!("the database cannot be written at the moment: {what}; try again later"))
}

/// A request to ingest, the ticket that withdraws it, and the receiver notified when it is carried out.
fn requested(
    sessions: &[(RemovedSession, About)],
    kind: RemovalKind,
) -> (RemovalTicket, IngestInput, oneshot::Receiver<()>) {
    let sessions = sessions.iter().map(|(session, about)| (session.id, about.clone())).collect();
    let (ticket, (done, removed)) = (RemovalTicket::default(), oneshot::channel());
    let request = RemovalRequest { sessions, kind, ticket: ticket.clone(), done };
    (ticket, IngestInput::Remove(Box::new(request)), removed)
}

/// Withdraws a request when its sender stops waiting.
struct Withdrawn(RemovalTicket);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        let _is_late = !self.0.withdraw();
    }
}

/// Waits for a request until the limit, then until it can be withdrawn; `None` if it was withdrawn.
async fn within<T>(limit: Duration, carried_out: impl Future<Output = T>, withdraw: impl Fn() -> bool) -> Option<T> {
    tokio::pin!(carried_out);
    let mut limit = limit;
    loop {
        if let Ok(done) = timeout(limit, &mut carried_out).await {
            return Some(done);
        }
        if withdraw() {
            return None;
        }
        limit = WITHDRAW_EVERY;
    }
}

/// Reads the store on a blocking thread.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(read).await;
    let read = done.map_err(|error| Refusal::Failed(error.to_string()))?;
    read.map_err(|error| Refusal::Failed(error.to_string()))
}

#[cfg(test)]
mod tests;
