//! Applies reports of agents' daemons about their sessions.
//!
//! A daemon also has internal sessions without a transcript, so its reports do not create sessions. It may report on a
//! session before the session's transcript is found; the caller then learns that the session is unknown and can retry.

use std::{collections::BTreeSet, sync::Arc};

use events::{Claim, Confidence, NewEvent, Provider, Signal, Source};

use super::{Ingest, TransactionFailure};

/// Inputs from the daemons of agents.
pub enum ProtocolInput {
    /// Claims, oldest first.
    Claims {
        /// The claims.
        events: Vec<NewEvent>,
        /// Called with the unknown sessions when the others are stored.
        stored: Box<dyn FnOnce(Vec<Arc<str>>) + Send>,
    },
    /// All daemons of an agent were queried. Their earlier claims about any other session no longer hold.
    Only {
        /// The agent.
        provider: Provider,
        /// The agent's ids of the sessions its daemons reported.
        sessions: BTreeSet<Arc<str>>,
    },
}

impl Ingest {
    pub(super) fn apply_protocol(&mut self, input: &ProtocolInput) -> Result<(), TransactionFailure> {
        match input {
            ProtocolInput::Claims { events, .. } => {
                let unknown = self.unknown(events);
                self.unmatched.extend(unknown);
                self.apply_telemetry(events)
            }
            ProtocolInput::Only { provider, sessions } => self.withdraw_all_but(*provider, sessions),
        }
    }

    /// Whether there is nothing to withdraw: an empty commit would only delay the next one.
    pub(super) fn is_moot(&self, input: &ProtocolInput) -> bool {
        match input {
            ProtocolInput::Claims { .. } => false,
            ProtocolInput::Only { provider, sessions } => self.left(*provider, sessions).is_empty(),
        }
    }

    /// The sessions with an active claim of a daemon, except these.
    fn left(&self, provider: Provider, sessions: &BTreeSet<Arc<str>>) -> Vec<usize> {
        self.sessions
            .all_loaded()
            .filter(|(_, state)| state.session.provider == provider && state.is_claimed_by(Source::Protocol))
            .filter(|(slot, _)| !sessions.contains(&self.sessions.known(*slot).provider_session_id))
            .map(|(slot, _)| slot)
            .collect()
    }

    fn withdraw_all_but(
        &mut self,
        provider: Provider,
        sessions: &BTreeSet<Arc<str>>,
    ) -> Result<(), TransactionFailure> {
        for slot in self.left(provider, sessions) {
            let words = Some("the agent's daemon that reported this has ended".to_owned());
            let signal = Signal::new(Claim::Withdrawn, Confidence::High, words);
            self.inject(slot, Source::Protocol, (self.clock)(), "daemon-gone", signal.into())?;
        }
        Ok(())
    }

    /// The sessions of these events that were unknown when the events were applied. A session may become known before
    /// the commit, still without the claim.
    pub(super) fn take_unmatched(&mut self, events: &[NewEvent]) -> Vec<Arc<str>> {
        let ids = events.iter().map(|new| &new.provider_session_id);
        let mut unmatched: Vec<Arc<str>> = ids.filter_map(|id| self.unmatched.take(id)).collect();
        unmatched.extend(self.unknown(events).into_iter().filter(|id| !unmatched.contains(id)).collect::<Vec<_>>());
        unmatched
    }

    /// The unknown sessions of these events.
    fn unknown(&self, events: &[NewEvent]) -> Vec<Arc<str>> {
        let known = |new: &NewEvent| self.sessions.find_by_provider(new.provider, &new.provider_session_id).is_some();
        events.iter().filter(|new| !known(new)).map(|new| Arc::clone(&new.provider_session_id)).collect()
    }
}
