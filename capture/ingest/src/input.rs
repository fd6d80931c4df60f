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

/// A batch whose events are prepared for the store on the reading threads.
#[derive(Debug)]
pub struct PreparedBatch {
    /// The batch, with long texts cut to the length an event may have.
    pub batch: Batch,
    /// The prepared parts of each event.
    pub events: Vec<PreparedEvent>,
    /// Room reserved while the batch waits for ingest.
    pub(super) room: Option<UsedRoom>,
}

/// How batches are prepared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Preparation {
    /// Remove secrets.
    pub is_redacted: bool,
    /// Keep copies of texts over 256 KiB.
    pub keeps_large_texts: bool,
}

/// The parts of an event that are ready for the store.
#[derive(Debug)]
pub struct PreparedEvent {
    /// The part of the text that exceeds the event's limit, packed.
    pub text: Option<PackedText>,
    /// The payload in its stored form, valid if ingest does not change it.
    pub payload: Box<str>,
}

impl PreparedEvent {
    fn new(event: &mut NewEvent, text_cap: usize) -> Self {
        let text = event.text.as_mut().and_then(|text| PackedText::split_within(text_cap, text));
        Self { text, payload: payload_json(&event.payload).into() }
    }
}

impl PreparedBatch {
    /// Prepares a batch with the default settings.
    #[must_use]
    pub fn new(batch: Batch) -> Self {
        Self::with(Preparation::default(), batch)
    }

    /// Prepares a batch with these settings.
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

    /// Approximate size of the batch's events in bytes.
    pub(super) fn size(&self) -> usize {
        let texts = self.batch.events.iter().map(|event| event.text.as_ref().map_or(0, String::len));
        let prepared = self
            .events
            .iter()
            .map(|event| event.payload.len() + event.text.as_ref().map_or(0, PackedText::stored_bytes));
        texts.chain(prepared).sum::<usize>() + self.events.len() * size_of::<NewEvent>()
    }
}

/// Replies to the requester of a change to a session, after the commit.
#[derive(Debug)]
pub struct ChangeReply {
    sender: oneshot::Sender<Result<bool, Refusal>>,
    refusal: RefCell<Option<Refusal>>,
}

impl ChangeReply {
    /// A reply and its receiver, which gets whether the session exists, or why nothing was changed.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<Result<bool, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender, refusal: RefCell::default() }, receiver)
    }

    /// Whether the client has stopped waiting.
    pub(super) fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    /// Refuses the change.
    pub(super) fn refuse(&self, refusal: Refusal) {
        self.refusal.replace(Some(refusal));
    }

    pub(super) fn send(self, is_known: bool) {
        let Self { sender, refusal } = self;
        // The client may have disconnected.
        sender.send(refusal.into_inner().map_or(Ok(is_known), Err)).ok();
    }
}

/// The inputs of the ingest thread.
pub enum IngestInput {
    /// Records read from a file.
    Batch(Box<PreparedBatch>),
    /// A process ended.
    Ended(EndedProcess),
    /// The agents that are running now.
    Agents(Vec<AgentProcess>),
    /// An agent runs a shell command that was not running when it asked for permission.
    CommandRuns {
        /// The agent's process.
        agent: EndedProcess,
        /// The shell.
        command: ShellCommand,
    },
    /// A user's hook that may decide an agent's request started or ended.
    HookDecides {
        /// The agent's process.
        agent: EndedProcess,
        /// Whether the hook is running.
        runs: bool,
    },
    /// Turns capture of a session on or off; the reply says whether the session exists.
    SetCapture(SessionId, bool, ChangeReply),
    /// Changes labels of a session; the reply says whether the session exists.
    Label(SessionId, Vec<LabelChange>, ChangeReply),
    /// Changes marks of a session; the reply says whether the session exists.
    Mark(SessionId, Vec<MarkChange>, ChangeReply),
    /// A report of a run's host.
    Host(HostInput),
    /// A delivery of an agent's hook.
    Delivery(Box<HookInput>),
    /// A report of an agent over OpenTelemetry.
    Telemetry(TelemetryInput),
    /// A report of an agent's daemon.
    Protocol(ProtocolInput),
    /// An approval was decided.
    Decide(Box<DecisionCommit>),
    /// An audit row about an approval.
    Record(Box<ApprovalRecord>),
    /// Whether a hook waits for the decision on an approval that the agent itself does not show.
    Waits(SessionId, ApprovalId, bool),
    /// A finding, a notification, a waiting prompt or a note.
    Derived(DerivedRecord),
    /// A request to remove sessions.
    Remove(Box<RemovalRequest>),
    /// Work on the store between two transactions. Other inputs wait for it, so it must be done in small steps.
    Maintain(Box<dyn FnOnce(&mut Writer) + Send>),
    /// Commit now and reply.
    Commit(oneshot::Sender<()>),
    /// Commit and stop.
    Stop,
}
