//! Creates the events of one record.

use std::sync::Arc;

use events::{Claim, Confidence, Identity, NewEvent, Payload, Provider, Repeat, Signal, Timestamp, TurnOutcome};

use crate::gemini::position::RecordPosition;
use tailer::decode::{Decoded, Record, line_identity};

/// The record being read and the receiver of its events.
pub(super) struct GeminiRecordWriter<'a, 'r> {
    pub(super) record: &'a Record<'r>,
    pub(super) out: &'a mut Decoded,
}

impl GeminiRecordWriter<'_, '_> {
    /// Creates an event about an item with an id. The identity also includes the session: ids of messages that the CLI
    /// derives from their content are the same in all sessions.
    pub(super) fn event(
        &self,
        session: &Arc<str>,
        kind: &str,
        id: &str,
        block: u32,
        at: Option<Timestamp>,
        payload: impl Into<Payload>,
    ) -> NewEvent {
        let identity = identity(session, kind, id, block);
        NewEvent { created_at: at, ..self.out.event(self.record, session, identity, payload) }
    }

    /// Creates an event from a record without an id.
    pub(super) fn nameless(&self, session: &Arc<str>, index: u32, payload: impl Into<Payload>) -> NewEvent {
        let identity = line_identity(Provider::Gemini, session, self.record.bytes, index);
        NewEvent { repeat: Repeat::Next, ..self.out.event(self.record, session, identity, payload) }
    }

    /// Emits that the turn has ended.
    pub(super) fn end(
        &mut self,
        session: &Arc<str>,
        id: &str,
        at: Option<Timestamp>,
        outcome: TurnOutcome,
        strength: Confidence,
        words: &str,
    ) {
        let claim = Claim::TurnEnded { outcome, pending_subagents: 0 };
        let signal = self.event(session, "end", id, 0, at, signal(claim, strength, words));
        self.out.push(signal);
    }

    /// The position of the record, for an event that is emitted later.
    pub(super) fn place(&self) -> RecordPosition {
        RecordPosition { origin: self.out.origin(self.record), observed_at: self.record.observed_at }
    }
}

/// The identity of an event about an item with an id.
pub(super) fn identity(session: &str, kind: &str, id: &str, block: u32) -> Identity {
    let mut name = String::with_capacity(session.len() + kind.len() + id.len() + 2);
    for (i, part) in [session, kind, id].into_iter().enumerate() {
        if i > 0 {
            name.push('/');
        }
        name.push_str(part);
    }
    Identity::record(Provider::Gemini, &name, block)
}

/// A claim that does not expire.
pub(super) fn signal(claim: Claim, strength: Confidence, words: &str) -> Signal {
    Signal::new(claim, strength, Some(words.to_owned()))
}

/// Creates an event about an earlier record.
pub(super) fn later(
    out: &Decoded,
    session: &Arc<str>,
    place: &RecordPosition,
    identity: Identity,
    at: Option<Timestamp>,
    payload: impl Into<Payload>,
) -> NewEvent {
    let stand_in = Record { bytes: &[], offset: 0, observed_at: place.observed_at };
    NewEvent { created_at: at, origin: place.origin.clone(), ..out.event(&stand_in, session, identity, payload) }
}
