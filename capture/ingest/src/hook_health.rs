//! Tracks when each agent's hooks were last called, and detects hooks that are installed but never called.
//!
//! Turns are seen in the agents' files. If turns run for a long time without a delivery from a hook, the hooks do not
//! arrive. This module does not know what is installed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use events::{Confidence, Event, Payload, Provider, Source, Timestamp};

/// Longest time between a hook call and the first sight of its turn in a file, ms.
const BEFORE_MS: i64 = 60_000;
/// Time with turns but without a delivery after which hooks count as silent, ms.
const PATIENCE_MS: i64 = 2 * 60_000;
/// Age from which a turn is ignored, ms.
const RECENT_MS: i64 = 10 * 60_000;

/// Longest reason for a lost delivery, characters.
const WHY_CHARS: usize = 200;

/// Hook calls and turns of each agent since the start.
#[derive(Debug, Default)]
pub struct HookHealth {
    agents: Mutex<BTreeMap<Provider, AgentHookHealth>>,
    lost: Mutex<Option<LostDeliveries>>,
}

/// Deliveries that their hooks could not store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostDeliveries {
    /// How many.
    pub count: u64,
    /// When the last one was lost.
    pub last: Timestamp,
    /// Why.
    pub why: String,
}

/// Hook calls and turns of one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentHookHealth {
    /// Number of deliveries received.
    pub deliveries: u64,
    /// When a hook was called last.
    pub last_delivery: Option<Timestamp>,
    /// Since when turns are seen of which no hook told.
    silent_turns_since: Option<Timestamp>,
    /// When a turn was last seen to begin or end.
    last_turn: Option<Timestamp>,
}

impl HookHealth {
    fn table(&self) -> MutexGuard<'_, BTreeMap<Provider, AgentHookHealth>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hook could not store its delivery.
    pub fn lost(&self, at: Timestamp, why: String) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let count = lost.as_ref().map_or(0, |lost| lost.count) + 1;
        *lost = Some(LostDeliveries { count, last: at, why: why.chars().take(WHY_CHARS).collect() });
    }

    /// The deliveries that were lost since the start.
    #[must_use]
    pub fn lost_deliveries(&self) -> Option<LostDeliveries> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A hook was called.
    pub fn delivery(&self, provider: Provider, at: Timestamp) {
        let mut table = self.table();
        let hearing = table.entry(provider).or_default();
        hearing.deliveries += 1;
        hearing.last_delivery = hearing.last_delivery.max(Some(at));
        hearing.silent_turns_since.take_if(|since| since.since_ms(at) <= BEFORE_MS);
    }

    /// An event was committed as it happened.
    pub fn event(&self, event: &Event) {
        // A sub-agent's prompts and those restated are not turns that call a hook.
        let prompted = matches!(event.payload, Payload::UserPrompt(_))
            && event.source == Source::Transcript
            && event.agent_id.is_none()
            && event.confidence != Confidence::Low;
        if prompted || matches!(event.payload, Payload::TurnCompleted(_)) {
            self.turn(event.provider, event.observed_at);
        }
    }

    /// A turn began or ended at this time, as a transcript tells.
    pub fn turn(&self, provider: Provider, at: Timestamp) {
        let mut table = self.table();
        let hearing = table.entry(provider).or_default();
        hearing.last_turn = hearing.last_turn.max(Some(at));
        if hearing.silent_turns_since.is_none()
            && hearing.last_delivery.is_none_or(|last| at.since_ms(last) > BEFORE_MS)
        {
            hearing.silent_turns_since = Some(at);
        }
    }

    /// The hook calls and turns of an agent.
    #[must_use]
    pub fn of(&self, provider: Provider) -> AgentHookHealth {
        self.table().get(&provider).copied().unwrap_or_default()
    }
}

impl AgentHookHealth {
    /// Since when turns are seen and no hook is called, once that is not a coincidence. `installed_at`
    /// is when the hooks came to be there, as far as it is known: before, nothing could arrive.
    #[must_use]
    pub fn silent_since(&self, installed_at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let since = self.silent_turns_since.max(installed_at.filter(|_| self.silent_turns_since.is_some()))?;
        let recent = self.last_turn.is_some_and(|last| last >= since && now.since_ms(last) <= RECENT_MS);
        (recent && now.since_ms(since) > PATIENCE_MS).then_some(since)
    }
}

#[cfg(test)]
mod tests;
