//! Stores the monitor's findings and what is done about them, as events of the session and a row each. These events are
//! derived: folding the log ignores them.

use events::{Annotation, Finding, Notification, Payload, SendOutcome, SessionId, Timestamp, Topic};
use projections::{Conclusion, Prompt};

use super::{Ingest, TransactionFailure};

/// A record about a session outside its conversation.
pub struct DerivedRecord {
    /// Whose.
    pub session: SessionId,
    /// What.
    pub what: DerivedKind,
    /// Is told after the commit whether there is such a session.
    pub done: Box<dyn FnOnce(bool) + Send>,
}

/// What is noted of a session.
#[derive(Debug, Clone)]
pub enum DerivedKind {
    /// The current state of a finding.
    Finding(Box<Finding>),
    /// A message was sent, or was not.
    Notification(Box<Notification>),
    /// A prompt waits, or its outcome.
    Prompt(Box<Prompt>),
    /// A remark.
    Note(String),
}

impl DerivedRecord {
    /// A change whose outcome is not awaited.
    #[must_use]
    pub fn new(session: SessionId, what: DerivedKind) -> Self {
        Self { session, what, done: Box::new(|_| ()) }
    }
}

impl Ingest {
    pub(super) fn apply_derived(&mut self, aside: &DerivedRecord) -> Result<(), TransactionFailure> {
        let Some(slot) = self.sessions.find(aside.session) else { return Ok(()) };
        let now = (self.clock)();
        // The fold lets time pass up to a derived event: it passes here too.
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

    /// Adds an event that the fold ignores.
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
        let severity = if let Payload::Finding(finding) = &payload { Some(finding.severity) } else { None };
        let conclusion = Conclusion { at: now, turn_id, payload, turn: None, approval: None, basis: None };
        let event = self.derive(slot, conclusion, now, false)?;
        let row = self.sessions.known(slot).row;
        self.transaction.append([(row, events::Event { severity, text, ..event }, None, None)], false)?;
        self.sessions.mark(slot);
        Ok(())
    }
}
