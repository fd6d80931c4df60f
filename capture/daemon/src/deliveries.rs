//! Reads hook deliveries from the spool, sends them to ingest, and removes those that are stored.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use events::DeliveryId;
use home::{clock, redacted_only};
use hooks::delivery::{Delivery, Spool};
use ingest::{HookInput, IngestHandle, IngestInput};

use crate::supervisor::Supervisor;

/// Name of the thread that scans the spool.
pub const THREAD: &str = "spool";
/// Interval between scans of the spool for deliveries that were not announced.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Sends deliveries to ingest. Clones share the state.
#[derive(Clone)]
pub struct Deliveries {
    data: PathBuf,
    spool: Spool,
    inputs: IngestHandle,
    /// Deliveries that ingest is processing.
    under_way: Arc<Mutex<HashSet<DeliveryId>>>,
}

impl Deliveries {
    /// The deliveries of a data directory.
    #[must_use]
    pub fn new(data: &Path, inputs: IngestHandle) -> Self {
        Self { data: data.to_owned(), spool: Spool::of(data), inputs, under_way: Arc::default() }
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<DeliveryId>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a delivery to ingest; blocks while ingest is busy. Returns false if ingest has stopped.
    pub fn submit(&self, id: DeliveryId) -> bool {
        if !self.under_way().insert(id) {
            return true;
        }
        let delivery = match self.spool.get(id) {
            Ok(Some(delivery)) => delivery,
            Ok(None) => {
                self.under_way().remove(&id);
                return true;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read a hook delivery; it is set aside");
                self.put_aside(id);
                self.under_way().remove(&id);
                return true;
            }
        };
        let (own, under_way) = (self.clone(), Arc::clone(&self.under_way));
        let stored = Box::new(move |outcome: Result<(), String>| {
            match outcome {
                Ok(()) => own.spool.remove(id),
                Err(error) => {
                    tracing::warn!(%id, %error, "cannot decode a hook delivery; it is set aside");
                    own.put_aside(id);
                }
            }
            under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
        self.send_to_ingest(delivery, stored)
    }

    /// Sets aside a file that is not a delivery, for inspection; secrets are removed if `store.redacted_only` is on.
    fn put_aside(&self, id: DeliveryId) {
        if redacted_only::is_recorded(&self.data) {
            redacted_only::put_aside(&self.spool, id);
        } else {
            self.spool.reject(id);
        }
    }

    fn send_to_ingest(&self, delivery: Delivery, stored: Box<dyn FnOnce(Result<(), String>) + Send>) -> bool {
        self.inputs.send(IngestInput::Delivery(Box::new(HookInput::new(delivery, clock::now(), stored)))).is_ok()
    }

    /// Starts the thread that finds deliveries that were not announced: those from before the start, or from hooks that
    /// could not reach the server. It ends when the returned sender is dropped.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn watch(self, supervisor: &Supervisor) -> anyhow::Result<Sender<()>> {
        let (stop, stopped) = bounded::<()>(1);
        // A delivery stays in the spool until it is stored, so restarting the thread loses nothing.
        supervisor.spawn_restarting(THREAD, move || {
            let mut wait = Duration::ZERO;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                wait = LOOK_EVERY;
                self.spool.remove_drafts(clock::now());
                if !self.spool.waiting().into_iter().all(|id| self.submit(id)) {
                    return;
                }
            }
        })?;
        Ok(stop)
    }
}
