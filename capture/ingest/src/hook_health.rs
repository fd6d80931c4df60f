//! Tracks when each agent's hooks were last called, and detects hooks that are installed but never called.
//!
//! Turns are read from the agents' files. If turns run for a long time without a delivery from a hook, the hooks do not
//! work. This module does not know which hooks are installed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use events::{Confidence, Event, Payload, Provider, Source, Timestamp};

/// Longest time between a hook call and the first record of its turn in a file, ms.
const BEFORE_MS: i64 = 60_000;
/// Time with turns but without a delivery after which hooks count as silent, ms.
const PATIENCE_MS: i64 = 2 * 60_000;
/// Age from which a turn is ignored, ms.
const RECENT_MS: i64 = 10 * 60_000;

/// Maximum length of the reason for a lost delivery, in characters.
const WHY_CHARS: usize = 200;

/// Hook calls and turns of each agent since the start.
#[derive(Debug, Default)]
pub struct HookHealth {
    agents: Mutex<BTreeMap<Provider, AgentHookHealth>>,
    lost: Mutex<Option<LostDeliveries>>,
}

/// Deliveries that hooks could not store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostDeliveries {
    /// Number of lost deliveries.
    pub count: u64,
    /// When the last delivery was lost.
    pub last: Timestamp,
    /// Why the last delivery was lost.
    pub why: String,
}

/// Hook calls and turns of one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentHookHealth {
    /// Number of deliveries received.
    pub deliveries: u64,
    /// Time of the last hook call.
    pub last_delivery: Option<Timestamp>,
    /// Since when turns have been seen without a hook call.
    silent_turns_since: Option<Timestamp>,
    /// When the beginning or end of a turn was last seen.
    last_turn: Option<Timestamp>,
}

impl HookHealth {
    fn table(&self) -> MutexGuard<'_, BTreeMap<Provider, AgentHookHealth>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a hook could not store its delivery.
    pub fn lost(&self, at: Timestamp, why: String) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let count = lost.as_ref().map_or(0, |lost| lost.count) + 1;
        *lost = Some(LostDeliveries { count, last: at, why: why.chars().take(WHY_CHARS).collect() });
    }

    /// The deliveries lost since the start.
    #[must_use]
    pub fn lost_deliveries(&self) -> Option<LostDeliveries> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a hook call.
    pub fn delivery(&self, provider: Provider, at: Timestamp) {
        let mut table = self.table();
        let hearing = table.entry(provider).or_default();
        hearing.deliveries += 1;
        hearing.last_delivery = hearing.last_delivery.max(Some(at));
        hearing.silent_turns_since.take_if(|since| since.since_ms(at) <= BEFORE_MS);
    }

    /// Records an event that was committed as it happened.
    pub fn event(&self, event: &Event) {
        // Prompts of sub-agents and restated prompts do not start a turn that calls a hook.
        let prompted = matches!(event.payload, Payload::UserPrompt(_))
            && event.source == Source::Transcript
            && event.agent_id.is_none()
            && event.confidence != Confidence::Low;
        if prompted || matches!(event.payload, Payload::TurnCompleted(_)) {
            self.turn(event.provider, event.observed_at);
        }
    }

    /// Records the beginning or end of a turn found in a transcript.
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
    /// Since when turns have been seen without hook calls, once that is too long for a coincidence. `installed_at` is
    /// when the hooks were installed, if known: before that, none could be called.
    #[must_use]
    pub fn silent_since(&self, installed_at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let since = self.silent_turns_since.max(installed_at.filter(|_| self.silent_turns_since.is_some()))?;
        let recent = self.last_turn.is_some_and(|last| last >= since && now.since_ms(last) <= RECENT_MS);
        (recent && now.since_ms(since) > PATIENCE_MS).then_some(since)
    }
}

#[cfg(test)]
mod tests;
