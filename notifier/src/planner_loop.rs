//! Runs the planner and passes its messages to delivery, on a thread of the caller.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::{
    delivery::Delivery,
    notice::{LocalTime, Notice, Presence},
    plan::{NoticeOutcome, Planner},
};

/// Maximum number of pending inputs; senders wait beyond that.
pub const INBOX_CAPACITY: usize = 1_024;
/// Longest wait before the clock is checked again: if the clock is set, or the machine slept, a deadline comes early.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Inputs of the planner's loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannerInput {
    /// A new notice.
    Notice(Box<Notice>),
    /// A cause that no longer exists.
    Withdraw(String),
}

/// The functions that the planner's loop needs from its caller.
pub trait PlannerContext {
    /// The current time, and the local time.
    fn now(&self) -> LocalTime;
    /// The user's presence, as it concerns a notice.
    fn presence(&self, notice: &Notice) -> Presence;
    /// Called with the outcome of each submitted notice.
    fn notice_handled(&self, _cause: &str, _taken: NoticeOutcome) {}
}

/// Receives inputs, plans and sends, until all senders of the inbox are dropped.
pub fn run_planner(
    planner: &mut Planner,
    inbox: &Receiver<PlannerInput>,
    context: &dyn PlannerContext,
    delivery: &Delivery,
) {
    loop {
        let now = context.now();
        for message in planner.due(now, &|notice| context.presence(notice)) {
            delivery.send(message);
        }
        let wait = planner.next_deadline().map_or(LONGEST_WAIT, |at| {
            let left_ms = u64::try_from(at.since_ms(context.now().at)).unwrap_or(0);
            Duration::from_millis(left_ms).min(LONGEST_WAIT)
        });
        let mut input = match inbox.recv_timeout(wait) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // Inputs that arrived together are applied together, so that a withdrawal directly after a notice counts.
        let mut budget = INBOX_CAPACITY;
        while let Some(next) = input.take() {
            match next {
                PlannerInput::Notice(notice) => {
                    let cause = notice.cause.clone();
                    let taken = planner.submit(*notice, context.now());
                    context.notice_handled(&cause, taken);
                }
                PlannerInput::Withdraw(cause) => planner.withdraw(&cause),
            }
            budget -= 1;
            if budget > 0 {
                input = inbox.try_recv().ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        sync::{Arc, Mutex},
    };

    use events::Timestamp;

    use super::*;
    use crate::{ChannelContext, NotifySettings, plan::tests::notice};

    /// The time advances by one second with each reading.
    struct SteppingClock(Cell<i64>);

    impl PlannerContext for SteppingClock {
        fn now(&self) -> LocalTime {
            self.0.set(self.0.get() + 1_000);
            LocalTime::utc(Timestamp::from_millisecond(self.0.get()))
        }
        fn presence(&self, _: &Notice) -> Presence {
            Presence::Away
        }
    }

    #[test]
    fn the_planner_loop_sends_submitted_notices_except_withdrawn_ones() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let on_receipt = heard.clone();
        let context = ChannelContext::new(Arc::new(|_| None), Arc::new(|| Timestamp::MIN));
        // There is no bus, as the receipt shows.
        let delivery = Delivery::start(
            &NotifySettings::default(),
            context,
            Arc::new(move |receipt| on_receipt.lock().unwrap().push(receipt)),
        )
        .unwrap();
        let (tell, inbox) = crossbeam_channel::bounded(INBOX_CAPACITY);
        tell.send(PlannerInput::Notice(Box::new(notice("a", "approval")))).unwrap();
        tell.send(PlannerInput::Notice(Box::new(notice("b", "approval")))).unwrap();
        tell.send(PlannerInput::Withdraw("a".into())).unwrap();
        let mut planner = Planner::new(NotifySettings::default(), []);
        let mut tell = Some(tell);
        std::thread::scope(|scope| {
            let ends = tell.take();
            let heard = heard.clone();
            scope.spawn(move || {
                while heard.lock().unwrap().is_empty() {
                    std::thread::park_timeout(Duration::from_millis(5));
                }
                drop(ends);
            });
            run_planner(&mut planner, &inbox, &SteppingClock(Cell::new(0)), &delivery);
        });
        assert!(delivery.stop(Duration::from_secs(20)));
        let heard = heard.lock().unwrap();
        assert_eq!(heard.iter().map(|r| r.causes.join(",")).collect::<Vec<_>>(), ["b"]);
    }
}
