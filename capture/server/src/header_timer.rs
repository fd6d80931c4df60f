//! The timer of a connection's header timeout: one timer per connection, reset only when it fires.
//!
//! hyper requests a deadline before each request and drops it as soon as the head has been read. A runtime timer for
//! each deadline would be registered and removed once per request, which costs more than routing the request.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use live_view::locks::lock;

type Alarm = Pin<Box<tokio::time::Sleep>>;

/// The timer of one connection. hyper awaits one deadline at a time.
#[derive(Debug, Default)]
pub(crate) struct HeaderTimer(Arc<Mutex<Option<Alarm>>>);

impl Timer for HeaderTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline { alarm: Arc::clone(&self.0), deadline: deadline.into() })
    }

    fn now(&self) -> Instant {
        // tokio's clock, which tests can advance.
        tokio::time::Instant::now().into_std()
    }
}

/// Completes at a deadline. The underlying alarm may fire earlier, for a deadline that was dropped since; it is then
/// set again.
struct Deadline {
    alarm: Arc<Mutex<Option<Alarm>>>,
    deadline: tokio::time::Instant,
}

impl Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut alarm = lock(&self.alarm);
        let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(self.deadline)));
        if alarm.deadline() > self.deadline {
            alarm.as_mut().reset(self.deadline);
        }
        while alarm.as_mut().poll(context).is_ready() {
            if alarm.deadline() >= self.deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(self.deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_deadline_is_kept_regardless_of_earlier_ones() {
        let timer = HeaderTimer::default();
        let start = tokio::time::Instant::now();
        let seconds = Duration::from_secs;
        let mut dropped = timer.sleep_until(timer.now() + seconds(10));
        assert!(futures_util::poll!(&mut dropped).is_pending());
        drop(dropped);
        tokio::time::advance(seconds(4)).await;
        timer.sleep_until(timer.now() + seconds(10)).await;
        assert_eq!(start.elapsed().as_secs(), 14, "later than the alarm that was set");
        timer.sleep(seconds(3)).await;
        timer.sleep_until(timer.now() + seconds(1)).await;
        assert_eq!(start.elapsed().as_secs(), 18, "the alarm of a deadline that has passed is set again");
        let mut far = timer.sleep_until(timer.now() + seconds(100));
        assert!(futures_util::poll!(&mut far).is_pending());
        drop(far);
        timer.sleep_until(timer.now() + seconds(1)).await;
        assert_eq!(start.elapsed().as_secs(), 19, "earlier than the alarm that was set");
    }
}
