//! Decides what is sent, when and on which channel. Pure: the time and the user's presence are arguments.
//!
//! The way of a notice:
//!
//! 1. **Taken** ([`Planner::take`]). A cause that was told is known and not told again. The first
//!    rule that matches says to which channels, how loud, and how long it must hold.
//! 2. **Debounced.** Withdrawn before that time is over, it was never there.
//! 3. **Looked for.** While the user is at that terminal it waits, or is dropped, as the rule says.
//! 4. **Held** in quiet hours, and told as one digest when they end, if it still holds then.
//! 5. **Told**, alone or in a list: when many come within a window (`plan::lane`), or a channel had as
//!    many messages as it may. A list names all of them; none is lost.
//!
//! A cause is told once on each of its channels, until it is withdrawn and raised anew. Only a rule
//! that says so tells it again while it holds.

use std::collections::BTreeMap;

use events::Timestamp;

use crate::{
    LocalTime, Loudness, MessageForm, Notice, NotifySettings, OutgoingMessage, Presence, Severity,
    config::{ResolvedRule, WhilePresent, rule},
};

mod lane;
mod memory;
#[cfg(test)]
pub(crate) mod tests;

use lane::{ChannelDecision, ChannelPlan, ReadyNotice};
use memory::RecentCauses;

/// Maximum number of causes waiting to be sent.
pub const OPEN_CAPACITY: usize = 10_000;
/// Number of sent causes remembered; beyond it the oldest are forgotten.
pub const TOLD_CAPACITY: usize = 65_536;
/// Interval at which the user's presence at the terminal is checked, milliseconds.
pub const LOOK_MS: i64 = 1_000;

/// The outcome of submitting a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// It is queued.
    New,
    /// Its cause was queued already and is updated.
    Renewed,
    /// Its cause was sent before.
    Known,
    /// The rules send it to no channel.
    Off,
    /// The queue is full; submit it again later.
    Full,
}

/// Decides what is sent, when and on which channel.
#[derive(Debug)]
pub struct Planner {
    settings: NotifySettings,
    names: Vec<String>,
    open: BTreeMap<String, OpenNotice>,
    told: RecentCauses,
    lanes: Vec<ChannelPlan>,
    taken: u64,
}

/// A cause that is still to be sent or repeated on some channel.
#[derive(Debug)]
struct OpenNotice {
    /// The how-manyth that was taken: what is listed is listed in that order.
    order: u64,
    notice: Notice,
    told: ResolvedRule,
    /// The earliest time it may be sent.
    ready_at: Timestamp,
    /// When it is to be looked at next.
    wake_at: Timestamp,
    /// Since when nothing but its channels holds it up.
    free_at: Option<Timestamp>,
    /// Quiet hours held it back.
    held: bool,
    /// The channels it was not yet sent on in this round.
    left: Vec<usize>,
    /// Number of completed rounds.
    round: u32,
}

impl Planner {
    /// Starts with the causes that were sent before a restart.
    #[must_use]
    pub fn new(settings: NotifySettings, told: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<String> = settings.names().map(str::to_owned).collect();
        let lanes = names.iter().map(|_| ChannelPlan::default()).collect();
        let mut memory = RecentCauses::new(TOLD_CAPACITY);
        told.into_iter().for_each(|cause| memory.insert(cause));
        Self { settings, names, open: BTreeMap::new(), told: memory, lanes, taken: 0 }
    }

    /// Takes a notice. What is shown of it is made safe here.
    pub fn submit(&mut self, notice: Notice, now: LocalTime) -> NoticeOutcome {
        if !self.settings.enabled {
            return NoticeOutcome::Off;
        }
        if self.told.has(&notice.cause) {
            return NoticeOutcome::Known;
        }
        let told = rule::resolve(&self.settings.rules, &self.names, &notice);
        let off = told.loudness == Loudness::Off || told.channels.is_empty();
        let notice = notice.shown();
        let ready_at = now.at.plus_ms(told.debounce_ms);
        if let Some(open) = self.open.get_mut(&notice.cause) {
            // What was told somewhere stays under the rule it was told by.
            if open.round == 0 && open.left.len() == open.told.channels.len() {
                if off {
                    self.open.remove(&notice.cause);
                    return NoticeOutcome::Off;
                }
                open.ready_at = open.ready_at.min(ready_at);
                open.wake_at = open.wake_at.min(ready_at);
                open.left.clone_from(&told.channels);
                open.told = told;
            }
            open.notice = notice;
            return NoticeOutcome::Renewed;
        }
        if off {
            return NoticeOutcome::Off;
        }
        if self.open.len() >= OPEN_CAPACITY {
            return NoticeOutcome::Full;
        }
        self.taken += 1;
        let open = OpenNotice {
            order: self.taken,
            left: told.channels.clone(),
            ready_at,
            wake_at: ready_at,
            free_at: None,
            held: false,
            round: 0,
            told,
            notice,
        };
        self.open.insert(open.notice.cause.clone(), open);
        NoticeOutcome::New
    }

    /// A cause is no more: answered, resolved, gone. What was not told is not told; when it is
    /// raised anew, it is new.
    pub fn withdraw(&mut self, cause: &str) {
        self.open.remove(cause);
        self.told.drop(cause);
    }

    /// What is to be sent now.
    pub fn due(&mut self, now: LocalTime, presence: &dyn Fn(&Notice) -> Presence) -> Vec<OutgoingMessage> {
        let quiet_until = self.settings.quiet.until(now);
        let mut waiting: Vec<Vec<ReadyNotice>> = self.lanes.iter().map(|_| Vec::new()).collect();
        let mut seen_there = Vec::new();
        for (cause, open) in self.open.iter_mut().filter(|(_, open)| open.wake_at <= now.at || open.free_at.is_some()) {
            if open.ready_at > now.at {
                open.wake_at = open.ready_at;
                continue;
            }
            match (open.told.while_present, presence(&open.notice)) {
                (WhilePresent::Wait, Presence::AtTerminal) => {
                    open.wake_at = now.at.plus_ms(LOOK_MS);
                    open.free_at = None;
                    continue;
                }
                (WhilePresent::Drop, Presence::AtTerminal) => {
                    seen_there.push(cause.clone());
                    continue;
                }
                (WhilePresent::Tell, _) | (_, Presence::Away | Presence::Unknown) => {}
            }
            let breaks = self.settings.quiet.urgent_breaks_through && open.notice.severity == Severity::Urgent;
            if let Some(until) = quiet_until.filter(|_| !breaks) {
                open.held = true;
                open.wake_at = until;
                open.free_at = None;
                continue;
            }
            let free_at = *open.free_at.get_or_insert(now.at);
            for &lane in &open.left {
                waiting[lane].push(ReadyNotice { order: open.order, cause: cause.clone(), free_at, held: open.held });
            }
        }
        for cause in seen_there {
            self.open.remove(&cause);
            self.told.insert(cause);
        }
        let mut messages = Vec::new();
        let mut later: BTreeMap<String, Timestamp> = BTreeMap::new();
        for (lane, waiting) in waiting.into_iter().enumerate().filter(|(_, waiting)| !waiting.is_empty()) {
            for word in self.lanes[lane].words(&self.settings, waiting, now.at) {
                match word {
                    ChannelDecision::Send { form, causes } => messages.push(self.compose(lane, form, &causes, now.at)),
                    ChannelDecision::Later { causes, at } => {
                        for cause in causes {
                            later.entry(cause).and_modify(|t| *t = (*t).min(at)).or_insert(at);
                        }
                    }
                }
            }
        }
        for (cause, at) in later {
            if let Some(open) = self.open.get_mut(&cause) {
                open.wake_at = at;
            }
        }
        messages
    }

    /// When [`due`](Self::due) has something to look at; `None` while nothing waits.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.open.values().map(|open| open.wake_at).min()
    }

    /// How many causes wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.open.len()
    }

    /// Composes the message and records that these causes were sent on this channel.
    fn compose(&mut self, lane: usize, form: MessageForm, causes: &[String], now: Timestamp) -> OutgoingMessage {
        let mut notices = Vec::with_capacity(causes.len());
        let mut loudness = Loudness::Quiet;
        let mut form = form;
        for cause in causes {
            let Some(open) = self.open.get_mut(cause) else { continue };
            loudness = loudness.max(open.told.loudness);
            notices.push(open.notice.clone());
            if open.round > 0 && form == MessageForm::Single {
                form = MessageForm::Repeat(open.round);
            }
            open.left.retain(|left| *left != lane);
            if !open.left.is_empty() {
                continue;
            }
            match open.told.repeat_ms {
                Some(after_ms) if open.round < open.told.repeats => {
                    open.round += 1;
                    open.ready_at = now.plus_ms(after_ms);
                    open.wake_at = open.ready_at;
                    open.free_at = None;
                    open.held = false;
                    open.left.clone_from(&open.told.channels);
                }
                _ => {
                    self.open.remove(cause);
                    self.told.insert(cause.clone());
                }
            }
        }
        OutgoingMessage::new(&self.names[lane], form, loudness, notices, now)
    }
}
