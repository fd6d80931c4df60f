//! The inputs of ingest.

use std::cell::RefCell;

use events::{ApprovalId, NewEvent, SessionId};
use live_view::Refusal;
use processes::{AgentProcess, EndedProcess, ShellCommand};
use projections::{LabelChange, MarkChange};
use store::{LARGE_TEXT_CAP_BYTES, PackedText, TEXT_CAP_BYTES, Writer, payload_json};
use tailer::collect::Batch;
use tokio::sync::oneshot;

use super::{
    ApprovalRecord, DecisionCommit, DerivedRecord, HookInput, HostInput, ProtocolInput, RemovalRequest, TelemetryInput,
    handle::room::UsedRoom,
};

/// A batch whose events are made ready for the store, which is done on the reading threads.
#[derive(Debug)]
pub struct PreparedBatch {
    /// The batch; long texts are cut to what an event carries.
    pub batch: Batch,
    /// What is ready of each of its events.
    pub events: Vec<PreparedEvent>,
    /// The room it has while it waits for ingest.
    pub(super) room: Option<UsedRoom>,
}

/// How batches are prepared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Preparation {
    /// Without the secrets in them.
    pub is_redacted: bool,
    /// With an own copy of texts over 256 KiB.
    pub keeps_large_texts: bool,
}

/// What of an event is ready for the store.
#[derive(Debug)]
pub struct PreparedEvent {
    /// The text that is too long for the event, packed.
    pub text: Option<PackedText>,
    /// The payload as it is stored, if ingest changes nothing of it.
    pub payload: Box<str>,
}

impl PreparedEvent {
    fn new(event: &mut NewEvent, text_cap: usize) -> Self {
        let text = event.text.as_mut().and_then(|text| PackedText::split_within(text_cap, text));
        Self { text, payload: payload_json(&event.payload).into() }
    }
}

impl PreparedBatch {
    /// Prepares a batch.
    #[must_use]
    pub fn new(batch: Batch) -> Self {
        Self::with(Preparation::default(), batch)
    }

    /// Prepares a batch as it is set.
    #[must_use]
    pub fn with(preparation: Preparation, mut batch: Batch) -> Self {
        if preparation.is_redacted {
            for event in &mut batch.events {
                redact::of_event(&mut event.text, &mut event.payload);
            }
        }
        let text_cap = if preparation.keeps_large_texts { LARGE_TEXT_CAP_BYTES } else { TEXT_CAP_BYTES };
        let events = batch.events.iter_mut().map(|event| PreparedEvent::new(event, text_cap)).collect();
        Self { batch, events, room: None }
    }

    /// About the bytes of its events.
    pub(super) fn size(&self) -> usize {
        let texts = self.batch.events.iter().map(|event| event.text.as_ref().map_or(0, String::len));
        let prepared = self
            .events
            .iter()
            .map(|event| event.payload.len() + event.text.as_ref().map_or(0, PackedText::stored_bytes));
        texts.chain(prepared).sum::<usize>() + self.events.len() * size_of::<NewEvent>()
    }
}

/// Answers whoever asked for a change of a session, after the commit.
#[derive(Debug)]
pub struct ChangeReply {
    sender: oneshot::Sender<Result<bool, Refusal>>,
    refusal: RefCell<Option<Refusal>>,
}

impl ChangeReply {
    /// A reply, and where it arrives: whether there is such a session, or why nothing was changed.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<Result<bool, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender, refusal: RefCell::default() }, receiver)
    }

    /// Whether its client has stopped waiting.
    pub(super) fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    /// The change is not made.
    pub(super) fn refuse(&self, refusal: Refusal) {
        self.refusal.replace(Some(refusal));
    }

    pub(super) fn send(self, is_known: bool) {
        let Self { sender, refusal } = self;
        // The client may have gone away meanwhile.
        sender.send(refusal.into_inner().map_or(Ok(is_known), Err)).ok();
    }
}

/// What the ingest thread is told.
pub enum IngestInput {
    /// What was read of a file.
    Batch(Box<PreparedBatch>),
    /// A process ended.
    Ended(EndedProcess),
    /// The agents that run now.
    Agents(Vec<AgentProcess>),
    /// An agent runs a shell command that it did not run when it asked for permission.
    CommandRuns {
        /// The agent's process.
        agent: EndedProcess,
        /// The shell.
        command: ShellCommand,
    },
    /// A hook of the user, which may decide about the request of an agent, runs or has ended.
    HookDecides {
        /// The agent's process.
        agent: EndedProcess,
        /// Whether it runs.
        runs: bool,
    },
    /// Turn capture of a session on or off; the answer says whether there is such a session.
    SetCapture(SessionId, bool, ChangeReply),
    /// Changes labels of a session; the answer says whether there is such a session.
    Label(SessionId, Vec<LabelChange>, ChangeReply),
    /// Marks of a session; the answer says whether there is such a session.
    Mark(SessionId, Vec<MarkChange>, ChangeReply),
    /// What the host of a run tells.
    Host(HostInput),
    /// What an agent's hook delivers.
    Delivery(Box<HookInput>),
    /// What an agent tells over OpenTelemetry.
    Telemetry(TelemetryInput),
    /// What an agent's daemon says.
    Protocol(ProtocolInput),
    /// An approval was decided.
    Decide(Box<DecisionCommit>),
    /// Something of an approval is to be recorded.
    Record(Box<ApprovalRecord>),
    /// A hook waits for the decision on an approval, and nothing of the agent shows it; or no more.
    Waits(SessionId, ApprovalId, bool),
    /// A finding, a message that was sent, a prompt that waits.
    Derived(DerivedRecord),
    /// Sessions are to be removed.
    Remove(Box<RemovalRequest>),
    /// Work on the store between two transactions; the others wait for it, so it is done in small parts.
    Maintain(Box<dyn FnOnce(&mut Writer) + Send>),
    /// Commit now, and say so.
    Commit(oneshot::Sender<()>),
    /// Commit and end.
    Stop,
}
