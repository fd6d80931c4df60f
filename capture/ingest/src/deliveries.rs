//! Applies deliveries of hooks and protocols: their claims, and which process runs which session.

use std::sync::Arc;

use events::{Annotation, Claim, Confidence, Payload, Signal, Source, Timestamp, Topic};
use hooks::{
    delivery::{
        Agent, Delivery,
        decode::{self, DecodedDelivery},
    },
    reports_requests,
};
use protocols::conversation;

use super::{Ingest, LATE_MS, TransactionFailure};

/// A delivery of an agent's hook, or a report over the agent's protocol.
pub struct HookInput {
    delivery: Delivery,
    /// The decoded delivery, or the reason it could not be decoded.
    decoded: Result<DecodedDelivery, String>,
    /// Called when the delivery is stored, or with the reason it could not be decoded.
    stored: Box<dyn FnOnce(Result<(), String>) + Send>,
}

impl HookInput {
    /// Decodes a delivery.
    #[must_use]
    pub fn new(delivery: Delivery, now: Timestamp, stored: Box<dyn FnOnce(Result<(), String>) + Send>) -> Self {
        let protocol = delivery.source == Source::Protocol;
        let decoded = if protocol { conversation::decode(&delivery, now) } else { decode::decode(&delivery, now) };
        Self { delivery, decoded, stored }
    }
}

/// Whether a delivery only reports that something ended.
fn says_only_that_it_ends(decoded: &DecodedDelivery) -> bool {
    let ends =
        |payload: &Payload| matches!(payload, Payload::Signal(signal) if matches!(signal.claim, Claim::Withdrawn));
    !decoded.events.is_empty() && decoded.events.iter().all(|new| ends(&new.payload))
}

impl Ingest {
    /// The delivery was committed: updates hook health and notifies the sender.
    pub(super) fn delivered(&self, told: HookInput) {
        if told.delivery.source == Source::Hook {
            self.publisher.gauges.heard.delivery(told.delivery.provider, told.delivery.at);
        }
        (told.stored)(told.decoded.map(|_| ()));
    }

    pub(super) fn apply_delivery(&mut self, told: &HookInput) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
        let delivery = &told.delivery;
        // A delivery that could not be decoded is reported to its sender at the commit.
        let Ok(decoded) = &told.decoded else { return Ok(()) };
        let known = self.sessions.find_by_provider(delivery.provider, &decoded.session);
        let slot = match known {
            Some(slot) => slot,
            // `claude mcp list` has no session, but calls the `SessionEnd` hook.
            None if says_only_that_it_ends(decoded) => return Ok(()),
            None => {
                let session = Arc::clone(&decoded.session);
                self.resolve(delivery.provider, &session, delivery.at.min(now))?
            }
        };
        if let Some(cwd) = &decoded.cwd {
            self.turn_off_if_ignored(slot, cwd)?;
        }
        if !self.sessions.known(slot).capture {
            return Ok(());
        }
        let late = now.since_ms(delivery.at) > LATE_MS;
        if let Some(agent) = delivery.agent.filter(|_| !late) {
            self.run_by(slot, agent, delivery.source)?;
        }
        if let (None, Some(run)) = (delivery.agent, delivery.run.filter(|_| !late)) {
            self.link_host_by_environment(slot, run)?;
        }
        if let Some(cwd) = &decoded.cwd
            && self.state(slot)?.session.cwd.is_none()
        {
            let cwd = Annotation { topic: Topic::Cwd, value: cwd.clone() };
            self.inject(slot, delivery.source, now, "hook-cwd", cwd.into())?;
        }
        let row = self.sessions.known(slot).row;
        let version = self.state(slot)?.session.cli_version.clone();
        let reports_requests =
            delivery.source != Source::Hook || reports_requests(delivery.provider, version.as_deref());
        for new in &decoded.events {
            if self.transaction.writer.learn(new.identity, row)? {
                let weaker = if reports_requests { None } else { decode::without_requests(new) };
                self.add(slot, weaker.as_ref().unwrap_or(new), late)?;
            }
        }
        Ok(())
    }

    /// Records that the agent that called the hook, or that the protocol connects to, runs the session.
    fn run_by(&mut self, slot: usize, agent: Agent, source: Source) -> Result<(), TransactionFailure> {
        let known = self.state(slot)?.process();
        if known == Some((agent.pid, agent.start_ticks)) || known.is_some() && agent.shared {
            return Ok(());
        }
        let claim = Claim::ProcessAlive { pid: agent.pid, start_ticks: agent.start_ticks };
        let did = if source == Source::Protocol {
            "is connected through its protocol"
        } else {
            "called a hook of the session"
        };
        let words = Some(format!("process {} {did}", agent.pid));
        let signal = Signal::new(claim, Confidence::High, words);
        self.inject(slot, Source::Process, (self.clock)(), "hook-process", signal.into())
    }
}
