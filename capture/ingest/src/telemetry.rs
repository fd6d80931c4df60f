//! Applies what agents report over OpenTelemetry.
//!
//! Telemetry arrives seconds late, and anybody with the ingest token can send it. So it only adds to known sessions and
//! creates none; outdated claims are left out; and records of unknown sessions are counted and dropped: a hidden
//! conversation that makes a title, or a session whose transcript capture does not see.

use std::collections::BTreeMap;

use events::{NewEvent, Payload, Provider};

use super::{Ingest, TransactionFailure};

/// A message of an agent, understood.
pub struct TelemetryInput {
    /// What it tells, oldest first.
    pub events: Vec<NewEvent>,
    /// Is called when it is stored.
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

    /// How many events belong to no session, by agent.
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

/// A claim for a time that has passed says nothing about now.
fn has_ended(new: &NewEvent, now: events::Timestamp) -> bool {
    matches!(&new.payload, Payload::Signal(signal) if signal.valid_until.is_some_and(|until| until <= now))
}
