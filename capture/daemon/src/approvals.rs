//! Approvals at work: who waits for which decision, what the policy says, and how an answer reaches
//! the agent.
//!
//! One thread, the desk, owns the pending approvals and the hooks that wait. It is told of approvals
//! after their commit, asks the policy only when somebody waits for the answer, and answers only what
//! was committed with its row of the record. Whatever goes wrong ends in no answer: then the agent
//! asks its user itself.

mod desk;
mod files;
mod judge;

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use events::RunId;
use projections::Approval;
use serde_json::value::RawValue;
use server::{ApprovalAsk, Refusal};
use store::Reader;
use tokio::sync::oneshot;

use terminal::host::frame::Answered;

use crate::{
    ingest::{IngestHandle, Undecided},
    runs::Runs,
};

pub use judge::{Judge, Judged, OnPolicy};

/// Things the desk may be told and has not taken up yet.
const TOLD: usize = 4_096;
/// Hooks that went away are looked for this often.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A handle on the desk; clones share it.
#[derive(Clone)]
pub struct Approvals {
    told: Sender<Told>,
}

/// A hook that waits.
#[derive(Debug)]
pub struct Held {
    /// For the decision on this delivery.
    pub delivery: RunId,
    /// For a person's too, and not only for a rule's.
    pub people: bool,
    /// The BLAKE3 hash of what it was called with: only a decision on just that is its answer.
    pub digest: String,
    /// Takes the answer, JSON, or `None`. Closed when it waits no longer.
    pub reply: oneshot::Sender<Option<String>>,
}

/// What the desk is told.
enum Told {
    /// An approval was opened or closed; it is committed.
    Changed(Box<Approval>),
    /// A hook waits for the decision on its delivery.
    Hold(Held),
    /// A hook asks before the agent's own rules do; this is the delivery.
    Before(Held, Box<RawValue>),
    /// Somebody asks, or decides.
    Asked { ask: ApprovalAsk, reply: oneshot::Sender<Result<String, Refusal>> },
    /// A decision is committed, or there was nothing to decide.
    Decided { id: String, outcome: Result<Box<Approval>, Undecided>, way: Box<desk::Way> },
    /// A person's decision is recorded; keys may be pressed.
    Press { id: String, pressing: Box<desk::Pressing> },
    /// Keys were pressed, or not.
    Pressed { id: String, pressing: Box<desk::Pressing>, outcome: Result<Answered, Refusal> },
    /// The server ends.
    Stop,
}

/// What the desk works with.
pub struct Parts {
    /// The way to ingest, which commits decisions.
    pub inputs: IngestHandle,
    /// What is stored.
    pub reader: Reader,
    /// Where dialogs of runs can be answered.
    pub runs: Runs,
    /// Runs the keys that are pressed.
    pub runtime: tokio::runtime::Handle,
    /// What the user's policy says.
    pub judge: Arc<dyn Judge>,
}

impl Approvals {
    /// A desk that is not at work yet: what it is told meanwhile waits.
    #[must_use]
    pub fn new() -> (Self, Waiting) {
        let (told, inbox) = bounded(TOLD);
        (Self { told }, Waiting { inbox })
    }

    /// An approval was opened or closed. Never waits: an approval that gets lost here is one that
    /// nobody decides from here.
    pub fn changed(&self, approval: Approval) {
        self.tell(Told::Changed(Box::new(approval)));
    }

    /// A hook waits for a decision; it is told `None` when there is none. With the whole delivery, it
    /// asks before the agent's own rules do, and only whether something is forbidden.
    pub fn hold(&self, held: Held, whole: Option<Box<RawValue>>) {
        self.tell(match whole {
            Some(whole) => Told::Before(held, whole),
            None => Told::Hold(held),
        });
    }

    /// Somebody asks, or decides.
    pub fn ask(&self, ask: ApprovalAsk, reply: oneshot::Sender<Result<String, Refusal>>) {
        self.tell(Told::Asked { ask, reply });
    }

    /// Ends the desk: whoever waits gets no answer.
    pub fn stop(&self) {
        // It takes up all it is told, so there is room in the end.
        self.told.send(Told::Stop).ok();
    }

    fn tell(&self, told: Told) {
        if let Err(TrySendError::Full(_)) = self.told.try_send(told) {
            tracing::warn!(
                "the desk of approvals does not keep up: one thing it was told is lost, and nothing is answered for it"
            );
        }
    }
}

/// What waits for the desk to begin.
pub struct Waiting {
    inbox: Receiver<Told>,
}

impl Waiting {
    /// Begins.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn start(self, approvals: &Approvals, parts: Parts) -> std::io::Result<JoinHandle<()>> {
        let desk = desk::Desk::new(parts, approvals.clone());
        std::thread::Builder::new().name("approvals".into()).spawn(move || desk.run(&self.inbox, SWEEP_EVERY))
    }
}
