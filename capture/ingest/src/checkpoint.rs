//! Tracks whether a checkpoint is running beside the transactions.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the write-ahead log is being moved into the database beside the transactions.
#[derive(Debug, Default)]
pub struct CheckpointProgress(AtomicBool);

impl CheckpointProgress {
    /// Runs a checkpoint and marks it as running.
    ///
    /// # Errors
    /// The error of the checkpoint.
    pub fn run<E>(&self, checkpoint: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.0.store(true, Ordering::Release);
        let done = checkpoint();
        self.0.store(false, Ordering::Release);
        done
    }

    /// Whether a checkpoint is running.
    pub(crate) fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
