//! Limits how many of the runtime's blocking threads approvals use, so that a hanging disk cannot block all of them.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use live_view::Refusal;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::spawn_blocking,
    time::timeout,
};

/// Maximum number of concurrent blocking calls per pool; further calls wait for a permit.
const AT_ONCE: usize = 16;
/// Maximum number of hanging calls per pool that do not count towards the limit.
const HUNG: usize = 48;
/// Time after which a call counts as hanging and releases its permit.
const HUNG_AFTER: Duration = Duration::from_secs(5);

/// Runs a limited number of blocking calls at a time.
pub(super) struct BlockingPool {
    permits: Arc<Semaphore>,
    hung: Arc<Semaphore>,
    hung_after: Duration,
}

/// The permit of a call: a regular one, or one for hanging calls.
type Place = Arc<Mutex<OwnedSemaphorePermit>>;

impl BlockingPool {
    pub(super) fn new() -> Self {
        Self::with_patience(HUNG_AFTER)
    }

    fn with_patience(hung_after: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)), hung: Arc::new(Semaphore::new(HUNG)), hung_after }
    }

    /// Runs `call` on a blocking thread. If the future is dropped, the call continues and keeps its permit until it
    /// ends.
    ///
    /// # Errors
    /// When `call` panicked, or the runtime is shutting down.
    pub(super) async fn run<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| Refusal::Failed(error.to_string()))?;
        let place: Place = Arc::new(Mutex::new(permit));
        let (done, is_done) = oneshot::channel::<()>();
        tokio::spawn(give_way(is_done, self.hung_after, Arc::downgrade(&place), Arc::clone(&self.hung)));
        let called = spawn_blocking(move || (call(), place, done)).await;
        let (result, _place, _done) = called.map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(result)
    }

    /// Occupies all regular permits, as a hanging disk would, until the returned guard is dropped.
    #[cfg(test)]
    pub(super) fn occupy(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.permits).try_acquire_many_owned(AT_ONCE as u32).unwrap()
    }

    /// Whether no call is running.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.permits.available_permits() == AT_ONCE
    }
}

/// Exchanges the permit of a hanging call for one of the limited permits for hanging calls. Ends with the call.
async fn give_way(
    is_done: oneshot::Receiver<()>,
    hung_after: Duration,
    place: std::sync::Weak<Mutex<OwnedSemaphorePermit>>,
    hung: Arc<Semaphore>,
) {
    if timeout(hung_after, is_done).await.is_err()
        && let Some(place) = place.upgrade()
        && let Ok(among_hung) = hung.try_acquire_owned()
    {
        *place.lock().unwrap_or_else(PoisonError::into_inner) = among_hung;
    }
}

#[cfg(test)]
mod tests;
