//! Stores the monitor's findings and their notifications, each as an event of the session and a row. These events are
//! derived: folding the log ignores them.

use events::{Annotation, Finding, Notification, Payload, SendOutcome, SessionId, Source, Timestamp, Topic};
use projections::{Conclusion, Prompt};

use super::{Ingest, TransactionFailure};

/// A record about a session outside its conversation.
pub struct DerivedRecord {
    /// The session.
    pub session: SessionId,
    /// The record.
    pub what: DerivedKind,
    /// Called after the commit with whether the session exists.
    pub done: Box<dyn FnOnce(bool) + Send>,
}

/// The kinds of derived records.
#[derive(Debug, Clone)]
pub enum DerivedKind {
    /// The current state of a finding.
    Finding(Box<Finding>),
    /// The outcome of sending a notification.
    Notification(Box<Notification>),
    /// A waiting prompt, or its outcome.
    Prompt(Box<Prompt>),
    /// The text of a note.
    Note(String),
}

impl DerivedRecord {
    /// A record whose outcome the caller does not wait for.
    #[must_use]
    pub fn new(session: SessionId, what: DerivedKind) -> Self {
        Self { session, what, done: Box::new(|_| ()) }
    }
}

impl Ingest {
    pub(super) fn apply_derived(&mut self, aside: &DerivedRecord) -> Result<(), TransactionFailure> {
        let Some(slot) = self.sessions.find(aside.session) else { return Ok(()) };
        let now = (self.clock)();
        // The fold advances time up to a derived event, so time is advanced here too.
        self.try_advance(slot, now)?;
        let row = self.sessions.known(slot).row;
        let (payload, text) = match &aside.what {
            DerivedKind::Finding(finding) => {
                self.transaction.put_finding(row, finding.as_ref().clone())?;
                (Payload::Finding(finding.clone()), None)
            }
            DerivedKind::Notification(notification) => {
                if notification.outcome == SendOutcome::Sent {
                    for finding in &notification.findings {
                        self.transaction.writer.notified(finding, now)?;
                    }
                }
                (Payload::Notification(notification.as_ref().clone()), None)
            }
            DerivedKind::Prompt(prompt) => {
                let prompt = if self.redacted_only { redact::of_prompt(prompt) } else { prompt.as_ref().clone() };
                self.transaction.writer.put_entity(row, &prompt)?;
                (Payload::QueuedPrompt(prompt.to_event()), Some(prompt.text))
            }
            DerivedKind::Note(value) => (Annotation { topic: Topic::Note, value: value.clone() }.into(), None),
        };
        self.note(slot, payload, text, now)
    }

    /// Adds a derived event. The session's state takes note of a prompt that is typed for a rule, and ignores the rest.
    fn note(
        &mut self,
        slot: usize,
        mut payload: Payload,
        mut text: Option<String>,
        now: Timestamp,
    ) -> Result<(), TransactionFailure> {
        if self.redacted_only {
            redact::of_event(&mut text, &mut payload);
        }
        let turn_id = self.state(slot)?.open_turn().map(|turn| turn.id);
        let finding = if let Payload::Finding(finding) = &payload { Some(finding) } else { None };
        let severity = finding.map(|finding| finding.severity);
        // A conclusion is no more certain than its evidence.
        let basis = finding.map(|finding| (Source::Runtime, finding.confidence));
        let conclusion = Conclusion { at: now, turn_id, payload, turn: None, approval: None, basis };
        let event = self.derive(slot, conclusion, now, false)?;
        let event = events::Event { severity, text, ..event };
        self.state(slot)?.note_typed(&event);
        let row = self.sessions.known(slot).row;
        self.transaction.append([(row, event, None, None)], false)?;
        self.sessions.mark(slot);
        Ok(())
    }
}
