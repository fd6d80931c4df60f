//! Removes sessions that a person wants to be forgotten, or that are old, everywhere they are stored.
//!
//! A removal has two halves. First ingest takes the sessions out of everything that is shown and notes what is still to
//! be erased; both are one transaction. Then the [`Eraser`], a thread of low priority, erases events, texts, what the
//! search index holds, files, free pages and the write-ahead log, in small parts. It goes on after a restart.
//!
//! Never decides by itself what is removed, but for the [`PrunePolicy`]; writes to the store only through ingest.

pub mod backups;
mod eraser;
mod files;
mod plan;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use api::retention::{PruneRequest, RemovalReport, RetentionStatus};
use crossbeam_channel::{Sender, TrySendError, bounded};
use events::SessionId;
use ingest::{Clock, IngestHandle, IngestInput, RemovalRequest};
use search::SearchIndex;
use server::Refusal;
use store::{ReadError, Reader, RemovalKind};
use tokio::sync::oneshot;

pub use eraser::{Eraser, THREAD};
use plan::{Plan, all_sessions};
pub use plan::{PrunePolicy, PruneRule};

/// Most sessions that are removed in one transaction.
const AT_ONCE: usize = 100;

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
    /// The clock.
    pub clock: Clock,
    /// What is removed without being asked for.
    pub policy: PrunePolicy,
}

/// Removes sessions. A handle: clones share it.
#[derive(Clone)]
pub struct Retention(Arc<Shared>);

struct Shared {
    parts: RetentionParts,
    wake: Sender<()>,
    trouble: Mutex<Option<String>>,
    is_stopped: AtomicBool,
}

impl Retention {
    /// The handle, and what erases, which the caller runs on a thread of its own.
    #[must_use]
    pub fn new(parts: RetentionParts) -> (Self, Eraser) {
        let (wake, woken) = bounded(1);
        let retention =
            Self(Arc::new(Shared { parts, wake, trouble: Mutex::default(), is_stopped: AtomicBool::new(false) }));
        let eraser = Eraser::new(retention.clone(), woken);
        (retention, eraser)
    }

    /// Forgets a session with its sub-agents. Answers once nobody sees them any more; [`Self::status`] says when nothing
    /// is left in the files.
    ///
    /// # Errors
    /// When the store cannot be read, the session is not known, or the server stops.
    pub async fn forget(&self, session: SessionId, dry_run: bool) -> Result<RemovalReport, Refusal> {
        // What lists show already is to be found.
        self.0.parts.inputs.commit().await.map_err(|_| Refusal::Unavailable)?;
        let own = self.clone();
        let plan = blocking(move || Plan::of_family(&own.0.parts.reader, session)).await?;
        let plan = plan.ok_or_else(|| Refusal::NotFound(format!("no session `{session}`")))?;
        self.carry_out(plan, RemovalKind::Forgotten, dry_run).await
    }

    /// Removes old sessions.
    ///
    /// # Errors
    /// When nothing says which, the store cannot be read, or the server stops.
    pub async fn prune(&self, request: PruneRequest) -> Result<RemovalReport, Refusal> {
        let PruneRequest { older_than_s, larger_than_bytes, project, dry_run } = request;
        if older_than_s.is_none() && larger_than_bytes.is_none() && project.is_none() {
            let reason = "expected an age (`older_than_s`), a size (`larger_than_bytes`) or a directory (`project`)";
            return Err(Refusal::Invalid { name: "older_than_s", reason: reason.into() });
        }
        let rule = plan::PruneRule {
            older_than_ms: older_than_s.map(|s| i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(1_000)),
            larger_than_bytes,
            project: project.map(PathBuf::from),
        };
        self.0.parts.inputs.commit().await.map_err(|_| Refusal::Unavailable)?;
        let own = self.clone();
        let plan = blocking(move || own.plan(&[rule])).await?;
        self.carry_out(plan, RemovalKind::Pruned, dry_run).await
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
            })
        })
        .await
    }

    /// Ends the eraser; what is left is erased after the next start.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn plan(&self, rules: &[plan::PruneRule]) -> Result<Plan, ReadError> {
        let parts = &self.0.parts;
        let sessions = all_sessions(&parts.reader)?;
        Plan::of_rules(&parts.reader, &sessions, rules, (parts.clock)())
    }

    async fn carry_out(&self, plan: Plan, kind: RemovalKind, dry_run: bool) -> Result<RemovalReport, Refusal> {
        let own = self.clone();
        // Not broken off half way when the client goes away.
        let done = tokio::task::spawn_blocking(move || {
            let report = own.report(&plan, kind, dry_run);
            if dry_run { Ok(report) } else { own.remove(&plan, kind).map(|()| report) }
        });
        done.await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
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

    /// Has ingest remove the sessions, and wakes the eraser.
    fn remove(&self, plan: &Plan, kind: RemovalKind) -> Result<(), Refusal> {
        for sessions in plan.sessions.chunks(AT_ONCE) {
            let sessions = sessions
                .iter()
                .map(|(session, about)| (session.id, serde_json::to_string(about).unwrap_or_default()))
                .collect();
            let (done, removed) = oneshot::channel();
            let request = RemovalRequest { sessions, kind, done };
            let sent = self.0.parts.inputs.send(IngestInput::Remove(Box::new(request)));
            sent.map_err(|_| Refusal::Unavailable)?;
            removed.blocking_recv().map_err(|_| Refusal::Unavailable)?;
        }
        self.wake();
        Ok(())
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
