//! What agents' hooks hand over: claims, and which process runs which session.

use std::sync::Arc;

use adapters::delivery::{Agent, Delivery, decode::decode};
use events::{Claim, Confidence, Signal, Source};

use super::{Failure, Ingest, LATE_MS};

impl Ingest {
    pub(super) fn apply_delivery(&mut self, delivery: &Delivery) -> Result<(), Failure> {
        let now = (self.clock)();
        // What is not understood is told to whoever handed it in, at the commit.
        let Ok(decoded) = decode(delivery, now) else { return Ok(()) };
        let known = self.sessions.find_by_provider(delivery.provider, &decoded.session);
        let slot = match known {
            Some(slot) => slot,
            None => {
                let session = Arc::clone(&decoded.session);
                let slot =
                    self.sessions.resolve(&mut self.writer, delivery.provider, &session, delivery.at.min(now))?;
                if let Some(cwd) = &decoded.cwd {
                    self.turn_off_if_ignored(slot, cwd)?;
                }
                slot
            }
        };
        if !self.sessions.known(slot).capture {
            return Ok(());
        }
        let late = now.since_ms(delivery.at) > LATE_MS;
        if let Some(agent) = delivery.agent.filter(|_| !late) {
            self.run_by(slot, agent)?;
        }
        let row = self.sessions.known(slot).row;
        for new in &decoded.events {
            if self.writer.learn(new.identity, row)? {
                self.add(slot, new, late)?;
            }
        }
        Ok(())
    }

    /// The agent that called the hook runs the session.
    fn run_by(&mut self, slot: usize, agent: Agent) -> Result<(), Failure> {
        let known = self.sessions.state(&self.writer, slot)?.process();
        if known == Some((agent.pid, agent.start_ticks)) || known.is_some() && agent.shared {
            return Ok(());
        }
        let claim = Claim::ProcessAlive { pid: agent.pid, start_ticks: agent.start_ticks };
        let words = Some(format!("process {} called a hook for it", agent.pid));
        let signal = Signal::new(claim, Confidence::High, words);
        self.inject(slot, Source::Process, (self.clock)(), "hook-process", signal.into())
    }
}
