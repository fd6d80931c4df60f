//! Lets a question to the person wait for what is printed before it, and what is printed after it wait for its end.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

/// Questions that wait.
const WAITING: usize = 16;

/// The side that prints.
#[derive(Debug)]
pub struct PrintGate {
    passes: Option<mpsc::Receiver<oneshot::Sender<PrintHold>>>,
    holds: Arc<watch::Sender<usize>>,
    changes: watch::Receiver<usize>,
}

/// The side that waits. Clones wait at the same gate.
#[derive(Debug, Clone)]
pub struct PrintPass(mpsc::Sender<oneshot::Sender<PrintHold>>);

/// Keeps progress from being printed until it is dropped.
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
    /// A gate, and what passes it.
    #[must_use]
    pub fn new() -> (Self, PrintPass) {
        let (pass, passes) = mpsc::channel(WAITING);
        (Self { passes: Some(passes), ..Self::closed() }, PrintPass(pass))
    }

    /// A gate that nobody passes.
    #[must_use]
    pub fn closed() -> Self {
        let (holds, changes) = watch::channel(0);
        Self { passes: None, holds: Arc::new(holds), changes }
    }

    /// Whether somebody who passed still reads what was printed.
    pub(super) fn is_held(&self) -> bool {
        *self.changes.borrow() > 0
    }

    /// Lets the next one pass, or waits until the gate is held or not any longer. Comes to no end when nothing happens.
    pub(super) async fn open(&mut self) {
        let next = async {
            match &mut self.passes {
                Some(passes) => passes.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            next = next => match next {
                // Who waited may be gone, and holds nothing up then.
                Some(waiting) => drop(waiting.send(PrintHold::new(&self.holds))),
                None => self.passes = None,
            },
            // The other end is here.
            _ = self.changes.changed() => {}
        }
    }
}

impl PrintPass {
    /// Waits until all that was told before is printed, or nothing is printed any longer. Progress is not printed until
    /// what this gives is dropped.
    pub async fn wait(&self) -> Option<PrintHold> {
        let (passed, passing) = oneshot::channel();
        self.0.send(passed).await.ok()?;
        passing.await.ok()
    }
}
