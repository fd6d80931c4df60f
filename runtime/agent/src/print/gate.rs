//! Lets a question to the person wait for what is printed before it.

use tokio::sync::{mpsc, oneshot};

/// Questions that wait.
const WAITING: usize = 16;

/// The side that prints.
#[derive(Debug)]
pub struct PrintGate(Option<mpsc::Receiver<oneshot::Sender<()>>>);

/// The side that waits. Clones wait at the same gate.
#[derive(Debug, Clone)]
pub struct PrintPass(mpsc::Sender<oneshot::Sender<()>>);

impl PrintGate {
    /// A gate, and what passes it.
    #[must_use]
    pub fn new() -> (Self, PrintPass) {
        let (pass, gate) = mpsc::channel(WAITING);
        (Self(Some(gate)), PrintPass(pass))
    }

    /// Lets the next one pass. Comes to no end when nobody will.
    pub(super) async fn open(&mut self) {
        let next = match &mut self.0 {
            Some(gate) => gate.recv().await,
            None => std::future::pending().await,
        };
        match next {
            // Who waited may be gone.
            Some(waiting) => drop(waiting.send(())),
            None => self.0 = None,
        }
    }

    /// A gate that nobody passes.
    #[must_use]
    pub fn closed() -> Self {
        Self(None)
    }
}

impl PrintPass {
    /// Waits until all that was told before is printed, or nothing is printed any longer.
    pub async fn wait(&self) {
        let (passed, passing) = oneshot::channel();
        if self.0.send(passed).await.is_ok() {
            let _ = passing.await;
        }
    }
}
