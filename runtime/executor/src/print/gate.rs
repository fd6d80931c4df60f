//! Delays a question to the user until earlier output is printed, and later output until the question is answered.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

/// Maximum number of waiting questions.
const WAITING: usize = 16;

/// The printing side.
#[derive(Debug)]
pub struct PrintGate {
    passes: Option<mpsc::Receiver<oneshot::Sender<PrintHold>>>,
    holds: Arc<watch::Sender<usize>>,
    changes: watch::Receiver<usize>,
}

/// The waiting side. Clones wait at the same gate.
#[derive(Debug, Clone)]
pub struct PrintPass(mpsc::Sender<oneshot::Sender<PrintHold>>);

/// Delays progress output until it is dropped.
#[derive(Debug)]
pub struct PrintHold(Arc<watch::Sender<usize>>);

impl PrintHold {
    fn new(holds: &Arc<watch::Sender<usize>>) -> Self {
        holds.send_modify(|count| *count += 1);
        Self(Arc::clone(holds))
    }
}

impl Drop for PrintHold {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl PrintGate {
    /// A gate and its pass.
    #[must_use]
    pub fn new() -> (Self, PrintPass) {
        let (pass, passes) = mpsc::channel(WAITING);
        (Self { passes: Some(passes), ..Self::closed() }, PrintPass(pass))
    }

    /// A gate without passes.
    #[must_use]
    pub fn closed() -> Self {
        let (holds, changes) = watch::channel(0);
        Self { passes: None, holds: Arc::new(holds), changes }
    }

    /// Whether a question still delays output.
    pub(super) fn is_held(&self) -> bool {
        *self.changes.borrow() > 0
    }

    /// Waits until no question delays output.
    pub(super) async fn free(&mut self) {
        // The sender is in this struct, so this cannot fail.
        self.changes.wait_for(|count| *count == 0).await.ok();
    }

    /// Lets the next question pass, or waits until the gate becomes held or free. Never completes if nothing happens.
    pub(super) async fn open(&mut self) {
        let next = async {
            match &mut self.passes {
                Some(passes) => passes.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            next = next => match next {
                // If the waiting side is gone, the hold is dropped at once.
                Some(waiting) => drop(waiting.send(PrintHold::new(&self.holds))),
                None => self.passes = None,
            },
            // The sender is in this struct, so this cannot fail.
            _ = self.changes.changed() => {}
        }
    }
}

impl PrintPass {
    /// Waits until all earlier updates are printed, or printing has stopped. Progress is not printed until the returned
    /// hold is dropped.
    pub async fn wait(&self) -> Option<PrintHold> {
        let (passed, passing) = oneshot::channel();
        self.0.send(passed).await.ok()?;
        passing.await.ok()
    }
}
