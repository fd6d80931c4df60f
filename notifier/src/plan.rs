//! Decides what is sent, when and on which channel. Pure: the time and the user's presence are arguments.
//!
//! The stages of a notice:
//!
//! 1. **Submit** ([`Planner::submit`]). A cause that was sent before is not sent again. The first rule
//!    that matches decides the channels, the loudness, and how long the cause must exist.
//! 2. **Debounce.** A cause that is withdrawn before that time is dropped.
//! 3. **Presence.** While the user is at that terminal, it waits or is dropped, depending on the rule.
//! 4. **Quiet hours** hold it back. When they end, causes that still exist are sent as one digest.
//! 5. **Send**, alone or in a list. It is sent in a list if many arrive within a window (`plan::channel_plan`), or if
//!    the channel has reached its limit of messages. A list names all of its causes.
//!
//! A cause is sent once on each of its channels, until it is withdrawn and raised again. While it exists, it is
//! repeated only if a rule says so.

use std::collections::BTreeMap;

use events::Timestamp;

use crate::{
    config::{
        NotifySettings,
        rule::{self, Loudness, ResolvedRule, WhilePresent},
    },
    message::{MessageForm, OutgoingMessage},
    notice::{LocalTime, Notice, Presence, Severity},
};

mod channel_plan;
mod recent;
#[cfg(test)]
pub(crate) mod tests;

use channel_plan::{ChannelDecision, ChannelPlan, ReadyNotice};
use recent::RecentCauses;

/// Maximum number of causes waiting to be sent.
pub const OPEN_CAPACITY: usize = 10_000;
/// Number of sent causes remembered; beyond it the oldest are forgotten.
pub const SENT_CAPACITY: usize = 65_536;
/// Interval at which the user's presence at the terminal is checked, milliseconds.
pub const PRESENCE_CHECK_MS: i64 = 1_000;

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

/// Decides what is sent, when, and on which channel.
#[derive(Debug)]
pub struct Planner {
    settings: NotifySettings,
    names: Vec<String>,
    open: BTreeMap<String, OpenNotice>,
    sent: RecentCauses,
    plans: Vec<ChannelPlan>,
    submitted: u64,
}

/// A cause that still has to be sent or repeated on some channel.
#[derive(Debug)]
struct OpenNotice {
    /// Number of the submission, for the order of lists.
    order: u64,
    notice: Notice,
    rule: ResolvedRule,
    /// The earliest time it may be sent.
    ready_at: Timestamp,
    /// When it is considered next.
    wake_at: Timestamp,
    /// The time since which only its channels delay it.
    free_at: Option<Timestamp>,
    /// Whether quiet hours held it back.
    held: bool,
    /// The channels on which it was not yet sent in this round.
    remaining: Vec<usize>,
    /// Number of completed rounds.
    round: u32,
}

impl Planner {
    /// Creates a planner with the causes that were sent before a restart.
    #[must_use]
    pub fn new(settings: NotifySettings, told: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<String> = settings.names().map(str::to_owned).collect();
        let plans = names.iter().map(|_| ChannelPlan::default()).collect();
        let mut memory = RecentCauses::new(SENT_CAPACITY);
        told.into_iter().for_each(|cause| memory.insert(cause));
        Self { settings, names, open: BTreeMap::new(), sent: memory, plans, submitted: 0 }
    }

    /// Submits a notice. Its text is made safe to display here.
    pub fn submit(&mut self, notice: Notice, now: LocalTime) -> NoticeOutcome {
        if !self.settings.enabled {
            return NoticeOutcome::Off;
        }
        if self.sent.has(&notice.cause) {
            return NoticeOutcome::Known;
        }
        let resolved = rule::resolve(&self.settings.rules, &self.names, &notice);
        let off = resolved.loudness == Loudness::Off || resolved.channels.is_empty();
        let notice = notice.shown();
        let ready_at = now.at.plus_ms(resolved.debounce_ms);
        if let Some(open) = self.open.get_mut(&notice.cause) {
            // A cause that was sent on some channel keeps the rule with which it was sent.
            if open.round == 0 && open.remaining.len() == open.rule.channels.len() {
                if off {
                    self.open.remove(&notice.cause);
                    return NoticeOutcome::Off;
                }
                open.ready_at = open.ready_at.min(ready_at);
                open.wake_at = open.wake_at.min(ready_at);
                open.remaining.clone_from(&resolved.channels);
                open.rule = resolved;
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
        self.submitted += 1;
        let open = OpenNotice {
            order: self.submitted,
            remaining: resolved.channels.clone(),
            ready_at,
            wake_at: ready_at,
            free_at: None,
            held: false,
            round: 0,
            rule: resolved,
            notice,
        };
        self.open.insert(open.notice.cause.clone(), open);
        NoticeOutcome::New
    }

    /// Withdraws a cause that no longer exists, because it was answered or resolved. If it was not sent yet, it never
    /// is. If it is raised again, it counts as new.
    pub fn withdraw(&mut self, cause: &str) {
        self.open.remove(cause);
        self.sent.drop(cause);
    }

    /// The messages to send now.
    pub fn due(&mut self, now: LocalTime, presence: &dyn Fn(&Notice) -> Presence) -> Vec<OutgoingMessage> {
        let quiet_until = self.settings.quiet.until(now);
        let mut waiting: Vec<Vec<ReadyNotice>> = self.plans.iter().map(|_| Vec::new()).collect();
        let mut seen_there = Vec::new();
        for (cause, open) in self.open.iter_mut().filter(|(_, open)| open.wake_at <= now.at || open.free_at.is_some()) {
            if open.ready_at > now.at {
                open.wake_at = open.ready_at;
                continue;
            }
            match (open.rule.while_present, presence(&open.notice)) {
                (WhilePresent::Wait, Presence::AtTerminal) => {
                    open.wake_at = now.at.plus_ms(PRESENCE_CHECK_MS);
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
            for &channel_plan in &open.remaining {
                waiting[channel_plan].push(ReadyNotice {
                    order: open.order,
                    cause: cause.clone(),
                    free_at,
                    held: open.held,
                });
            }
        }
        for cause in seen_there {
            self.open.remove(&cause);
            self.sent.insert(cause);
        }
        let mut messages = Vec::new();
        let mut later: BTreeMap<String, Timestamp> = BTreeMap::new();
        for (channel_plan, waiting) in waiting.into_iter().enumerate().filter(|(_, waiting)| !waiting.is_empty()) {
            for word in self.plans[channel_plan].words(&self.settings, waiting, now.at) {
                match word {
                    ChannelDecision::Send { form, causes } => {
                        messages.push(self.compose(channel_plan, form, &causes, now.at))
                    }
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

    /// The next time at which [`due`](Self::due) must be called; `None` if nothing is waiting.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.open.values().map(|open| open.wake_at).min()
    }

    /// The number of waiting causes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.open.len()
    }

    /// Composes the message and records that these causes were sent on this channel.
    fn compose(
        &mut self,
        channel_plan: usize,
        form: MessageForm,
        causes: &[String],
        now: Timestamp,
    ) -> OutgoingMessage {
        let mut notices = Vec::with_capacity(causes.len());
        let mut loudness = Loudness::Quiet;
        let mut form = form;
        for cause in causes {
            let Some(open) = self.open.get_mut(cause) else { continue };
            loudness = loudness.max(open.rule.loudness);
            notices.push(open.notice.clone());
            if open.round > 0 && form == MessageForm::Single {
                form = MessageForm::Repeat(open.round);
            }
            open.remaining.retain(|left| *left != channel_plan);
            if !open.remaining.is_empty() {
                continue;
            }
            match open.rule.repeat_ms {
                Some(after_ms) if open.round < open.rule.repeats => {
                    open.round += 1;
                    open.ready_at = now.plus_ms(after_ms);
                    open.wake_at = open.ready_at;
                    open.free_at = None;
                    open.held = false;
                    open.remaining.clone_from(&open.rule.channels);
                }
                _ => {
                    self.open.remove(cause);
                    self.sent.insert(cause.clone());
                }
            }
        }
        OutgoingMessage::new(&self.names[channel_plan], form, loudness, notices, now)
    }
}
