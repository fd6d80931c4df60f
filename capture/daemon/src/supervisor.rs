//! Owns every thread and task of the service, by name.
//!
//! None of them may end while the service runs. A thread that ends, by a panic or by returning, is restarted if that
//! loses nothing. Otherwise the service has failed: the other parts are stopped in order, and the process exits with
//! the name of the part that ended, so that no client is served by a partial service.
//!
//! A [`Sentinel`] watches threads that other crates start: it is moved into the closure they run.

use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, ThreadId},
};

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

/// Maximum number of restarts of a restartable thread while the service runs.
const RESTARTS: u32 = 3;

const RETURNED: &str = "it returned";
const PANICKED: &str = "it panicked";

/// Owns the threads and tasks. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Supervisor(Arc<SupervisorState>);

#[derive(Debug, Default)]
struct SupervisorState {
    threads: Mutex<BTreeMap<&'static str, JoinHandle<()>>>,
    /// Whether the service is running: a thread or task that returns now has failed.
    whole: AtomicBool,
    failure: OnceLock<Ended>,
    failed: CancellationToken,
}

/// A thread or task that ended unexpectedly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{name}` ended: {why}")]
pub struct Ended {
    kind: &'static str,
    name: String,
    why: String,
}

impl Supervisor {
    /// Starts a thread that the service needs. `body` is called once; its captured values are dropped only after its
    /// end is recorded, so that threads that end as a consequence are not taken for the cause.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn spawn(&self, name: &'static str, body: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
        self.spawn_with(name, 0, body)
    }

    /// Starts a thread whose `body` is called again if it ends before the service stops. A restart must lose nothing.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn spawn_restarting(&self, name: &'static str, body: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
        self.spawn_with(name, RESTARTS, body)
    }

    fn spawn_with(
        &self,
        name: &'static str,
        restarts: u32,
        mut body: impl FnMut() + Send + 'static,
    ) -> anyhow::Result<()> {
        let own = self.clone();
        let run = move || {
            for left in (0..=restarts).rev() {
                let Some(ended) = own.run_once(name, &mut body) else { return };
                if left == 0 {
                    own.fail(ended);
                } else {
                    tracing::error!("{ended}; restarting it");
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        self.threads().insert(name, thread.with_context(|| format!("cannot start the {name} thread"))?);
        Ok(())
    }

    /// Runs `body` once; returns how it ended, unless the service was stopping.
    fn run_once(&self, name: &str, body: &mut impl FnMut()) -> Option<Ended> {
        let why = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(()) if !self.is_whole() => return None,
            Ok(()) => RETURNED.to_owned(),
            Err(panic) => message(panic.as_ref()),
        };
        Some(Ended { kind: "thread", name: name.to_owned(), why })
    }

    /// Starts a task that the service needs.
    pub fn spawn_task(
        &self,
        name: &'static str,
        runtime: &tokio::runtime::Handle,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.watch_task(name, runtime, runtime.spawn(task));
    }

    /// Watches a task that another crate started and the service needs.
    pub fn watch_task(&self, name: &'static str, runtime: &tokio::runtime::Handle, task: tokio::task::JoinHandle<()>) {
        let own = self.clone();
        runtime.spawn(async move {
            let why = match task.await {
                Ok(()) if !own.is_whole() => return,
                Ok(()) => RETURNED.to_owned(),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => message(panic.as_ref()),
                    // Only a shutdown of the runtime cancels the task.
                    Err(_) => return,
                },
            };
            own.fail(Ended { kind: "task", name: name.to_owned(), why });
        });
    }

    /// Watches threads that another crate starts: each thread's closure must own one sentinel while it runs.
    #[must_use]
    pub fn sentinel(&self) -> Sentinel {
        Sentinel { supervisor: self.clone(), made_on: std::thread::current().id() }
    }

    /// Marks the service as failed. The first cause counts; later ends are its consequences.
    fn fail(&self, ended: Ended) {
        let mut is_first = false;
        let cause = self.0.failure.get_or_init(|| {
            is_first = true;
            ended.clone()
        });
        self.stop();
        if is_first {
            tracing::error!("{cause}");
        } else {
            tracing::error!("{ended}, after {} `{}`", cause.kind, cause.name);
        }
        self.0.failed.cancel();
    }

    /// Lets a thread end the service with a reason, because it cannot continue.
    pub fn give_up(&self, name: &'static str, why: String) {
        self.fail(Ended { kind: "thread", name: name.to_owned(), why });
    }

    /// The first thread or task that ended unexpectedly.
    #[must_use]
    pub fn failure(&self) -> Option<Ended> {
        self.0.failure.get().cloned()
    }

    /// Waits until a thread or task ends unexpectedly.
    pub async fn failed(&self) {
        self.0.failed.cancelled().await;
    }

    /// Marks the service as started: from now on no thread or task may return. A panic counts as a failure even before
    /// this call.
    pub fn started(&self) {
        if self.failure().is_some() {
            return;
        }
        self.0.whole.store(true, Ordering::SeqCst);
        let over = self.threads().iter().find(|(_, thread)| thread.is_finished()).map(|(name, _)| (*name).to_owned());
        if let Some(name) = over {
            self.fail(Ended { kind: "thread", name, why: RETURNED.to_owned() });
        }
    }

    /// Marks the service as stopping: from now on threads and tasks may return.
    pub fn stop(&self) {
        self.0.whole.store(false, Ordering::SeqCst);
    }

    fn is_whole(&self) -> bool {
        self.0.whole.load(Ordering::SeqCst)
    }

    /// Waits for the end of a thread that was asked to stop.
    pub fn join(&self, name: &str) {
        let thread = self.threads().remove(name);
        if let Some(thread) = thread {
            // A panic is already recorded.
            thread.join().ok();
        }
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<&'static str, JoinHandle<()>>> {
        self.0.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Detects the end of a thread that another crate started: it is dropped with the thread's closure.
#[derive(Debug, Clone)]
pub struct Sentinel {
    supervisor: Supervisor,
    /// The thread that created the sentinel: if a thread cannot be started, its closure is dropped there.
    made_on: ThreadId,
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let thread = std::thread::current();
        if thread.id() == self.made_on || !self.supervisor.is_whole() && !std::thread::panicking() {
            return;
        }
        let why = if std::thread::panicking() { PANICKED } else { RETURNED };
        let name = thread.name().unwrap_or("unnamed").to_owned();
        self.supervisor.fail(Ended { kind: "thread", name, why: why.to_owned() });
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| PANICKED.to_owned())
}

#[cfg(test)]
mod tests;
