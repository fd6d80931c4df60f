//! Limits how many of the runtime's blocking threads approvals use, so that a disk that hangs cannot block all of them.

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

/// Maximum number of concurrent blocking calls of one pool; further ones wait for their turn.
const AT_ONCE: usize = 16;
/// Maximum number of calls of one pool that hang and whose places others have taken.
const HUNG: usize = 48;
/// Time after which a call counts as hanging: its place is given to another one.
const HUNG_AFTER: Duration = Duration::from_secs(5);

/// Runs what blocks, a few calls at once.
pub(super) struct BlockingPool {
    permits: Arc<Semaphore>,
    hung: Arc<Semaphore>,
    hung_after: Duration,
}

/// The place of a call: among those at work, or among those that hang.
type Place = Arc<Mutex<OwnedSemaphorePermit>>;

impl BlockingPool {
    pub(super) fn new() -> Self {
        Self::with_patience(HUNG_AFTER)
    }

    fn with_patience(hung_after: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)), hung: Arc::new(Semaphore::new(HUNG)), hung_after }
    }

    /// Runs `call` on a blocking thread. Dropped, the call still ends by itself, and counts until then.
    ///
    /// # Errors
    /// When it panicked, or the runtime ends.
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

    /// Occupies all threads, as a hanging disk would, until the returned guard is dropped.
    #[cfg(test)]
    pub(super) fn occupy(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.permits).try_acquire_many_owned(AT_ONCE as u32).unwrap()
    }

    /// Whether no call runs.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.permits.available_permits() == AT_ONCE
    }
}

/// Gives the place of a call that hangs to another one, while there are not too many of them. Ends with the call.
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
