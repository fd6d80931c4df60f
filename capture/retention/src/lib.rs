//! Removes sessions that a person wants to be forgotten, or that are old, everywhere they are stored.
//!
//! A removal has two halves. First ingest takes the sessions out of everything that is shown and notes what is still to
//! be erased; both are one transaction. Then the [`Eraser`], a thread of low priority, erases events, texts, what the
//! search index holds, files, free pages and the write-ahead log, in small parts. It goes on after a restart.
//!
//! Never decides by itself what is removed, but for the [`PrunePolicy`]; writes to the store only through ingest. Nothing
//! is removed for its age while the clock of the machine is in doubt (`clock`). A request that is answered with an error
//! has removed nothing and does so at no later time either, or the error says how far it came.

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

/// Most sessions that are removed in one transaction.
const AT_ONCE: usize = 100;
/// A request that is being carried out when its time has passed is tried to be taken back this often: it may fail.
const WITHDRAW_EVERY: Duration = Duration::from_millis(20);
/// Longest wait of a request for ingest, which may wait for a database that another program holds.
const CARRIED_OUT_WITHIN: Duration = Duration::from_secs(5);

/// What the removal of sessions works with.
#[derive(Clone)]
pub struct RetentionParts {
    /// The data directory.
    pub data: PathBuf,
    /// Reads the store.
    pub reader: Reader,
    /// Sends inputs to ingest.
    pub inputs: IngestHandle,
    /// The search index; `None` when search is turned off.
    pub index: Option<SearchIndex>,
    /// Reads the wall clock and the boot clock.
    pub clocks: ReadClocks,
    /// What is removed without being asked for.
    pub policy: PrunePolicy,
}

/// Removes sessions. A handle: clones share it.
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
    /// The handle, and what erases, which the caller runs on a thread of its own. To be called before new events are
    /// stored: the time of the newest one says something about the clock.
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

    /// Forgets a session with its sub-agents, also one that was pruned. Answers once nobody sees them any more;
    /// [`Self::status`] says when nothing is left in the files. If the future is dropped before, nothing is removed.
    ///
    /// # Errors
    /// When the store cannot be read or written in time, the session is not known, or the server stops.
    pub async fn forget(&self, session: SessionId, dry_run: bool) -> Result<RemovalReport, Refusal> {
        self.commit_shown().await?;
        let own = self.clone();
        let plan = blocking(move || Plan::of_family(&own.0.parts.reader, session)).await?;
        let plan = plan.ok_or_else(|| Refusal::NotFound(format!("no session `{session}`")))?;
        self.carry_out(plan, RemovalKind::Forgotten, dry_run).await
    }

    /// Removes old sessions. If the future is dropped, what is not removed yet stays.
    ///
    /// # Errors
    /// When nothing says which, the clock is in doubt, the store cannot be read or written in time, or the server stops.
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
                    "nothing is removed for its age: {doubt}. If the clock is right, repeat this with \
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

    /// What is still to be erased.
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

    /// Why nothing is removed for its age at the moment; `None` when the clock is trusted, or nothing asks for removals
    /// by themselves and nothing contradicts the clock.
    #[must_use]
    pub fn clock_doubt(&self) -> Option<String> {
        let has_rules = self.removes_by_itself();
        let doubt = self.0.clock.peek().err().filter(|doubt| has_rules || doubt.is_contradicted())?;
        Some(format!("{doubt}. Until then, old sessions are not removed. If the clock is right: {CONFIRM}"))
    }

    /// Whether the configuration says that old sessions are removed.
    #[must_use]
    pub fn removes_by_itself(&self) -> bool {
        !self.0.parts.policy.rules().is_empty()
    }

    /// Ends the eraser; what is left is erased after the next start.
    pub fn stop(&self) {
        // How long the machine is off is counted from now.
        let _trusted = self.0.clock.check();
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn plan(&self, rules: &[plan::PruneRule], now: Timestamp) -> Result<Plan, ReadError> {
        let parts = &self.0.parts;
        let sessions = all_sessions(&parts.reader)?;
        Plan::of_rules(&parts.reader, &sessions, rules, now)
    }

    /// Has committed what lists show already, so that it is found.
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

    /// Has ingest remove the sessions, and wakes the eraser. Waits as long as that takes.
    fn remove(&self, plan: &Plan, kind: RemovalKind) -> Result<(), Refusal> {
        for sessions in plan.sessions.chunks(AT_ONCE) {
            let (_ticket, input, removed) = requested(sessions, kind);
            self.0.parts.inputs.send(input).map_err(|_| Refusal::Unavailable)?;
            removed.blocking_recv().map_err(|_| Refusal::Unavailable)?;
        }
        self.wake();
        Ok(())
    }

    /// The same, but what ingest cannot do in time is not done.
    async fn remove_in_time(&self, plan: &Plan, kind: RemovalKind) -> Result<(), Refusal> {
        let mut done = 0;
        for sessions in plan.sessions.chunks(AT_ONCE) {
            if let Err(refusal) = self.remove_some(sessions, kind).await {
                let all = plan.sessions.len();
                return Err(match (refusal, done) {
                    (refusal, 0) => refusal,
                    (_, done) => busy(&format!("{done} of {all} sessions were removed, the others were not")),
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
            // One that waits is enough.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a person says that the clock is right.
const CONFIRM: &str = "`capture prune --older-than AGE --clock-is-right`";

/// The database cannot be written at the moment; `what` says what that means for the request.
fn busy(what: &str) -> Refusal {
    Refusal::Busy(format!("the database cannot be written at the moment: {what}; try again later"))
}

/// A request to ingest, what takes it back, and what is told when it is carried out.
fn requested(
    sessions: &[(RemovedSession, About)],
    kind: RemovalKind,
) -> (RemovalTicket, IngestInput, oneshot::Receiver<()>) {
    let sessions = sessions.iter().map(|(session, about)| (session.id, about.clone())).collect();
    let (ticket, (done, removed)) = (RemovalTicket::default(), oneshot::channel());
    let request = RemovalRequest { sessions, kind, ticket: ticket.clone(), done };
    (ticket, IngestInput::Remove(Box::new(request)), removed)
}

/// Takes a request back when its sender stopped waiting.
struct Withdrawn(RemovalTicket);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        let _is_late = !self.0.withdraw();
    }
}

/// Waits for a request until this time has passed, and then until it can be taken back; `None` when it was.
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

/// Reads the store on a thread that may block.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(read).await;
    let read = done.map_err(|error| Refusal::Failed(error.to_string()))?;
    read.map_err(|error| Refusal::Failed(error.to_string()))
}

#[cfg(test)]
mod tests;
