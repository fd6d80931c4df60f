//! Creates the events of one line: their identities, times and parents.

use std::sync::Arc;

use events::{Claim, Confidence, Identity, NewEvent, Payload, Reason, Repeat, Signal, State, Timestamp, TurnOutcome};

use crate::codex::provider::PROVIDER;
use tailer::decode::{Decoded, Record, line_identity};

/// Emits the events of one line.
pub(super) struct EventWriter<'r, 'o> {
    record: Record<'r>,
    at: Option<Timestamp>,
    session: Arc<str>,
    out: &'o mut Decoded,
    /// Number of events without an id so far.
    nameless: u32,
}

impl<'r, 'o> EventWriter<'r, 'o> {
    pub(super) fn new(record: Record<'r>, at: Option<Timestamp>, session: Arc<str>, out: &'o mut Decoded) -> Self {
        Self { record, at, session, out, nameless: 0 }
    }

    /// Changes the session to this one.
    pub(super) fn set_session(&mut self, thread: &str) {
        if &*self.session != thread {
            self.session = Arc::from(thread);
        }
    }

    /// The session that events are emitted for.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// The time the line was written, or else read.
    pub(super) fn now(&self) -> Timestamp {
        self.at.unwrap_or(self.record.observed_at)
    }

    /// The identity of an event with an id. Ids of calls are unique only in their thread.
    pub(super) fn identity(&self, kind: &str, id: &str) -> Identity {
        Identity::record(PROVIDER, &format!("{}/{kind}/{id}", self.session), 0)
    }

    /// The identity of a tool call, which its results name as their parent.
    pub(super) fn call_identity(&self, call_id: &str) -> Identity {
        self.identity("call", call_id)
    }

    /// The identity of the next event without an id: the beginning of the line, which contains its time in
    /// milliseconds, and its length distinguish it, so megabytes need not be hashed.
    fn line_identity(&self) -> Identity {
        const HEAD: usize = 184;
        let bytes = self.record.bytes;
        let mut mark = [0_u8; HEAD + 8];
        let head = &bytes[..bytes.len().min(HEAD)];
        mark[..head.len()].copy_from_slice(head);
        mark[HEAD..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        line_identity(PROVIDER, &self.session, &mark, self.nameless)
    }

    /// A name for a record without an id, derived from its line's position.
    pub(super) fn line_name(&self, kind: &str) -> String {
        format!("{kind}@{}", self.record.offset)
    }

    /// Creates an event of a record that forks of a thread copy; it has the same identity in all of them. `root` is the
    /// thread whose history this thread begins with, if that is another one.
    pub(super) fn event_of_family(
        &mut self,
        kind: &str,
        root: Option<&str>,
        id: &str,
        payload: impl Into<Payload>,
    ) -> NewEvent {
        let root = root.unwrap_or(&self.session);
        let identity = Identity::record(PROVIDER, &format!("{root}/{kind}/{id}"), 0);
        let mut event = self.out.event(&self.record, &self.session, identity, payload);
        event.created_at = self.at;
        event
    }

    /// Creates an event of a record with or without an id.
    pub(super) fn event(&mut self, kind: &str, id: Option<&str>, payload: impl Into<Payload>) -> NewEvent {
        let identity = match id {
            Some(id) => self.identity(kind, id),
            None => {
                let identity = self.line_identity();
                self.nameless += 1;
                identity
            }
        };
        let mut event = self.out.event(&self.record, &self.session, identity, payload);
        event.created_at = self.at;
        if id.is_none() {
            event.repeat = Repeat::Next;
        }
        event
    }

    /// Emits an event.
    pub(super) fn push(&mut self, event: NewEvent) {
        self.out.push(event);
    }

    /// Emits that the session is running.
    pub(super) fn running(&mut self, turn: Option<&str>, reason: Reason, words: String) {
        let signal =
            Signal::new(Claim::State { state: State::Running, reason: Some(reason) }, Confidence::Medium, Some(words));
        let mut event = self.event("turn_started", turn, signal);
        event.confidence = Confidence::Medium;
        self.push(event);
    }

    /// Emits that the turn has ended.
    pub(super) fn turn_ended(&mut self, turn: Option<&str>, outcome: TurnOutcome, strength: Confidence, words: String) {
        let signal = Signal::new(Claim::TurnEnded { outcome, pending_subagents: 0 }, strength, Some(words));
        let mut event = self.event("turn_ended", turn, signal);
        event.confidence = strength;
        self.push(event);
    }

    /// Emits that work likely continues; an open dialog would not be recorded.
    pub(super) fn likely_works(&mut self, words: String) {
        let claim = Claim::State { state: State::Running, reason: Some(Reason::Thinking) };
        let signal = Signal::new(claim, Confidence::Low, Some(words));
        let mut event = self.event("likely_works", None, signal);
        event.confidence = Confidence::Low;
        self.push(event);
    }

    /// Emits a record of an unknown kind.
    pub(super) fn unrecognized(&mut self, raw_kind: &str) {
        let identity = self.line_identity();
        self.nameless += 1;
        let before = self.out.events.len();
        self.out.unrecognized(&self.record, &self.session, identity, raw_kind, self.at);
        if let Some(event) = self.out.events.get_mut(before) {
            event.repeat = Repeat::Next;
        }
    }
}
