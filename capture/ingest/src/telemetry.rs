//! Applies agents' OpenTelemetry reports.
//!
//! Telemetry arrives seconds late, and anyone with the ingest token can send it. So it only adds to known sessions and
//! creates none; outdated claims are dropped; and records of unknown sessions are counted and dropped. These belong to
//! a hidden conversation that generates a title, or to a session whose transcript capture does not see.

use std::collections::BTreeMap;

use events::{NewEvent, Payload, Provider};

use super::{Ingest, TransactionFailure};

/// A decoded message of an agent.
pub struct TelemetryInput {
    /// Its events, oldest first.
    pub events: Vec<NewEvent>,
    /// Called when the message is stored.
    pub stored: Box<dyn FnOnce(Stored) + Send>,
}

/// The outcome of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Events of unknown sessions, by agent.
    pub strange: BTreeMap<Provider, u64>,
}

impl Ingest {
    pub(super) fn apply_telemetry(&mut self, events: &[NewEvent]) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
        for new in events {
            let Some(slot) = self.sessions.find_by_provider(new.provider, &new.provider_session_id) else { continue };
            let known = self.sessions.known(slot).clone();
            if !known.capture || has_ended(new, now) || !self.transaction.writer.learn(new.identity, known.row)? {
                continue;
            }
            self.add(slot, new, false)?;
        }
        Ok(())
    }

    /// Counts the events of unknown sessions, by agent.
    pub(super) fn strange(&self, events: &[NewEvent]) -> Stored {
        let mut stored = Stored::default();
        for new in events {
            if self.sessions.find_by_provider(new.provider, &new.provider_session_id).is_none() {
                *stored.strange.entry(new.provider).or_default() += 1;
            }
        }
        stored
    }
}

/// Whether the event claims a state for a period that is already over.
fn has_ended(new: &NewEvent, now: events::Timestamp) -> bool {
    matches!(&new.payload, Payload::Signal(signal) if signal.valid_until.is_some_and(|until| until <= now))
}
