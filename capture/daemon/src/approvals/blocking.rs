//! Limits how many of the runtime's blocking threads approvals use, so that a disk that hangs cannot block all of them.

use std::sync::Arc;

use server::Refusal;
use tokio::{sync::Semaphore, task::spawn_blocking};

/// Maximum number of concurrent blocking calls of one pool; further ones wait for their turn.
const AT_ONCE: usize = 16;

/// Runs what blocks, a few calls at once.
pub(super) struct BlockingPool {
    permits: Arc<Semaphore>,
}

impl BlockingPool {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Runs `call` on a blocking thread. Dropped, the call still ends by itself, and counts until then.
    ///
    /// # Errors
    /// When it panicked, or the runtime ends.
    pub(super) async fn run<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| Refusal::Failed(error.to_string()))?;
        let (result, _permit) =
            spawn_blocking(move || (call(), permit)).await.map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(result)
    }

    /// Occupies all threads, as a hanging disk would, until the returned guard is dropped.
    #[cfg(test)]
    pub(super) fn occupy(&self) -> tokio::sync::OwnedSemaphorePermit {
        Arc::clone(&self.permits).try_acquire_many_owned(AT_ONCE as u32).unwrap()
    }

    /// Whether no call runs.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.permits.available_permits() == AT_ONCE
    }
}
