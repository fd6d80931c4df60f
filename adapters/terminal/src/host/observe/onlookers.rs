//! Requests that wait for the screen to change. Each is answered once, with the changes since the revision it names,
//! and the client asks again: a slow client gets fewer and larger changes and delays no other client.

use events::Timestamp;

use super::{RequestReply, as_json};
use crate::screen::Observer;

/// Maximum number of waiting requests; further ones are refused.
const ONLOOKERS: usize = 16;
/// Maximum wait of a request, ms.
const WAIT_MS: u32 = 30_000;
/// Maximum wait for the end of a synchronized update, ms.
const UPDATE_MS: i64 = 200;

#[derive(Default)]
pub(super) struct Onlookers(Vec<Onlooker>);

struct Onlooker {
    since: u64,
    until: Timestamp,
    reply: RequestReply,
}

impl Onlookers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a request that waits for a change after a revision.
    pub(super) fn add(&mut self, since: u64, wait_ms: u32, now: Timestamp, reply: RequestReply) {
        if self.0.len() >= ONLOOKERS {
            return reply(Err("too many views of this terminal are open".into()));
        }
        let until = now.plus_ms(i64::from(wait_ms.min(WAIT_MS)));
        self.0.push(Onlooker { since, until, reply });
    }

    /// When to check again even if the program writes nothing.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.0.iter().map(|onlooker| onlooker.until).min()
    }

    /// Answers the requests for which something changed or whose wait is over.
    pub(super) fn show(&mut self, observer: &mut Observer, now: Timestamp) {
        if let Some(since) = observer.updating_since()
            && now.since_ms(since) < UPDATE_MS
        {
            // A half-drawn screen is not sent; requests whose wait is over are extended until the update must be
            // complete.
            let until = since.plus_ms(UPDATE_MS);
            self.0.iter_mut().for_each(|onlooker| onlooker.until = onlooker.until.max(until));
            return;
        }
        let Some(oldest) = self.0.iter().map(|onlooker| onlooker.since).min() else { return };
        let rev = observer.grid(oldest).rev;
        for onlooker in std::mem::take(&mut self.0) {
            if onlooker.since == rev && onlooker.until > now {
                self.0.push(onlooker);
            } else {
                (onlooker.reply)(as_json(Some(observer.grid(onlooker.since))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use events::Provider;

    use super::*;
    use crate::screen::ScreenRules;
    use host_protocol::screen::{GridUpdate, Size};

    type Answers = Arc<Mutex<Vec<Result<GridUpdate, String>>>>;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_795_000_000_000 + ms)
    }

    fn observer() -> Observer {
        let rules = Arc::new(ScreenRules::embedded());
        Observer::new(Size { rows: 3, columns: 20 }, Provider::Unknown, rules, at(0))
    }

    fn add(onlookers: &mut Onlookers, since: u64, wait_ms: u32, now: Timestamp) -> Answers {
        let answers = Answers::default();
        let to = Arc::clone(&answers);
        let reply = move |answer: Result<serde_json::Value, String>| {
            to.lock().unwrap().push(answer.map(|value| serde_json::from_value(value).unwrap()));
        };
        onlookers.add(since, wait_ms, now, Box::new(reply));
        answers
    }

    fn taken(answers: &Answers) -> Option<GridUpdate> {
        answers.lock().unwrap().pop().map(Result::unwrap)
    }

    #[test]
    fn an_onlooker_is_answered_on_a_change_or_at_the_timeout() {
        let (mut observer, mut onlookers) = (observer(), Onlookers::default());
        let first = add(&mut onlookers, 0, 1_000, at(0));
        onlookers.show(&mut observer, at(0));
        let whole = taken(&first).unwrap();
        assert_eq!(whole.lines.len(), 3);
        let waiting = add(&mut onlookers, whole.rev, 1_000, at(0));
        onlookers.show(&mut observer, at(1));
        assert_eq!(taken(&waiting), None);
        assert_eq!(onlookers.due(), Some(at(1_000)));
        observer.output(b"hello", at(2));
        onlookers.show(&mut observer, at(2));
        let change = taken(&waiting).unwrap();
        assert_eq!(change.lines.len(), 1);
        let patient = add(&mut onlookers, change.rev, 1_000, at(2));
        onlookers.show(&mut observer, at(1_002));
        let nothing = taken(&patient).unwrap();
        assert_eq!((nothing.rev, nothing.lines.len()), (change.rev, 0));
        assert!(onlookers.is_empty());
    }

    #[test]
    fn a_synchronized_update_is_shown_whole() {
        let (mut observer, mut onlookers) = (observer(), Onlookers::default());
        let rev = observer.grid(0).rev;
        let waiting = add(&mut onlookers, rev, 1_000, at(0));
        observer.output(b"\x1b[?2026hhalf", at(1));
        onlookers.show(&mut observer, at(1));
        assert_eq!(taken(&waiting), None);
        observer.output(b" and half\x1b[?2026l", at(20));
        onlookers.show(&mut observer, at(20));
        assert_eq!(taken(&waiting).unwrap().lines[&0][0].0, "half and half");
        // An update that never ends is sent in its current state.
        let waiting = add(&mut onlookers, observer.grid(0).rev, 1_000, at(30));
        observer.output(b"\x1b[?2026h more", at(31));
        onlookers.show(&mut observer, at(31 + UPDATE_MS - 1));
        assert_eq!(taken(&waiting), None);
        onlookers.show(&mut observer, at(31 + UPDATE_MS));
        assert!(taken(&waiting).is_some());
    }

    #[test]
    fn onlookers_above_the_limit_are_refused() {
        let mut onlookers = Onlookers::default();
        for _ in 0..ONLOOKERS {
            assert!(add(&mut onlookers, 0, 1_000, at(0)).lock().unwrap().is_empty());
        }
        assert!(add(&mut onlookers, 0, 1_000, at(0)).lock().unwrap().pop().unwrap().is_err());
    }
}
