//! The plan of one channel: which notices are sent alone, which in a list, and which wait.
//!
//! A few notices are sent alone. If there are `group_at` notices, including those of the last window, they are
//! collected for `gather_ms` and sent in one list. If `group_at` notices arrive at the same time, or if the channel has
//! reached its limit for this minute, they are sent in a list immediately.

use std::collections::VecDeque;

use events::Timestamp;

use crate::{config::NotifySettings, message::MessageForm};

const MINUTE_MS: i64 = 60_000;

/// The times of the messages recently sent on one channel.
#[derive(Debug, Default)]
pub(super) struct ChannelPlan {
    sent: VecDeque<Timestamp>,
}

/// A cause that only this channel delays.
#[derive(Debug)]
pub(super) struct ReadyNotice {
    pub(super) order: u64,
    pub(super) cause: String,
    /// Since when.
    pub(super) free_at: Timestamp,
    /// Whether quiet hours held it back before.
    pub(super) held: bool,
}

/// The decision of a channel on some causes.
#[derive(Debug)]
pub(super) enum ChannelDecision {
    /// Send them now.
    Send {
        /// Alone, in a list, or as a digest.
        form: MessageForm,
        /// Oldest first.
        causes: Vec<String>,
    },
    /// Consider them again later.
    Later {
        /// The causes.
        causes: Vec<String>,
        /// The time.
        at: Timestamp,
    },
}

impl ChannelPlan {
    /// Decides about all waiting causes.
    pub(super) fn words(
        &mut self,
        settings: &NotifySettings,
        mut waiting: Vec<ReadyNotice>,
        now: Timestamp,
    ) -> Vec<ChannelDecision> {
        waiting.sort_by_key(|w| w.order);
        while self.sent.front().is_some_and(|at| now.since_ms(*at) >= MINUTE_MS) {
            self.sent.pop_front();
        }
        let (held, fresh): (Vec<ReadyNotice>, Vec<ReadyNotice>) = waiting.into_iter().partition(|w| w.held);
        let mut words = Vec::new();
        if !held.is_empty() {
            let form = if held.len() == 1 { MessageForm::Single } else { MessageForm::Digest };
            words.push(self.send(settings, form, causes(held), now));
        }
        if !fresh.is_empty() {
            self.fresh(settings, fresh, now, &mut words);
        }
        words
    }

    fn fresh(
        &mut self,
        settings: &NotifySettings,
        fresh: Vec<ReadyNotice>,
        now: Timestamp,
        words: &mut Vec<ChannelDecision>,
    ) {
        let count = fresh.len();
        let group_at = settings.group_at as usize;
        let window_ms = i64::from(settings.group_window_ms);
        let recent = self.sent.iter().filter(|at| now.since_ms(**at) < window_ms).count();
        let room = (settings.per_minute as usize).saturating_sub(self.sent.len());
        if count < group_at && count <= room && recent + count < group_at {
            for one in fresh {
                words.push(self.send(settings, MessageForm::Single, vec![one.cause], now));
            }
            return;
        }
        let since = fresh.iter().map(|w| w.free_at).min().unwrap_or(now);
        let gathered_at = since.plus_ms(settings.gather_ms.into());
        if count < group_at && gathered_at > now {
            words.push(ChannelDecision::Later { causes: causes(fresh), at: gathered_at });
            return;
        }
        let form = if count == 1 { MessageForm::Single } else { MessageForm::Group };
        words.push(self.send(settings, form, causes(fresh), now));
    }

    /// Sends the message if the channel's limit permits it; otherwise returns when it does.
    fn send(
        &mut self,
        settings: &NotifySettings,
        form: MessageForm,
        causes: Vec<String>,
        now: Timestamp,
    ) -> ChannelDecision {
        let most = settings.per_minute as usize;
        if self.sent.len() >= most
            && let Some(oldest) = self.sent.get(self.sent.len() - most)
        {
            return ChannelDecision::Later { causes, at: oldest.plus_ms(MINUTE_MS) };
        }
        self.sent.push_back(now);
        ChannelDecision::Send { form, causes }
    }
}

fn causes(waiting: Vec<ReadyNotice>) -> Vec<String> {
    waiting.into_iter().map(|w| w.cause).collect()
}
