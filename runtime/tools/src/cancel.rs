//! Cancels a running call.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use processes::wake::{self, Wake, WakeReceiver};

/// Cancels a call, from any thread and any number of times. Clones refer to the same call.
#[derive(Clone)]
pub struct Cancel(Arc<CancelState>);

struct CancelState {
    cancelled: AtomicBool,
    wake: Wake,
    // Never drained: once readable, it stays readable.
    woken: WakeReceiver,
    stop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl Cancel {
    /// A handle for a new call.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (wake, woken) = wake::pair()?;
        Ok(Self(Arc::new(CancelState { cancelled: AtomicBool::new(false), wake, woken, stop: Mutex::new(None) })))
    }

    /// Cancels the call. Returns at once; the call returns after ending everything it started.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.wake.wake();
        if let Some(stop) = self.0.stop.lock().unwrap_or_else(PoisonError::into_inner).take() {
            stop();
        }
    }

    /// Whether the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Readable once the call is cancelled.
    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.0.woken.as_fd()
    }

    /// Registers a function that also ends the call; it runs at once if the call was already cancelled.
    pub(crate) fn on_cancel(&self, stop: impl FnOnce() + Send + 'static) {
        *self.0.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
        if self.is_cancelled() {
            self.cancel();
        }
    }
}
