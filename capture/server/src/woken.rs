//! Polls something only when it was woken.
//!
//! A task that waits for two things polls both whenever either happens. When one happens a
//! thousand times as often and the other is costly to poll, that is most of the work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// Remembers whether what it stands before was woken since it was last polled.
#[derive(Debug)]
pub(crate) struct Woken {
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Debug)]
struct Flag {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Woken {
    /// Woken already: the first poll goes through.
    pub(crate) fn new() -> Self {
        let flag = Arc::new(Flag { woken: AtomicBool::new(true), task: AtomicWaker::new() });
        Self { waker: Waker::from(Arc::clone(&flag)), flag }
    }

    /// Polls, if there is reason to.
    pub(crate) fn poll<T>(&self, cx: &Context<'_>, inner: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        // The task first: a wake that comes now must find it.
        self.flag.task.register(cx.waker());
        if !self.flag.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = inner(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            // There may be more at once.
            self.flag.woken.store(true, Ordering::Release);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_only_when_woken() {
        let woken = Woken::new();
        let cx = Context::from_waker(Waker::noop());
        let mut polls = 0;
        let mut poll = |answer: Poll<()>| {
            let polled = woken.poll(&cx, |_| {
                polls += 1;
                answer
            });
            (polled.is_ready(), polls)
        };
        assert_eq!(poll(Poll::Pending), (false, 1), "the first time");
        assert_eq!(poll(Poll::Ready(())), (false, 1), "nobody woke it");
        woken.waker.wake_by_ref();
        assert_eq!(poll(Poll::Ready(())), (true, 2));
        assert_eq!(poll(Poll::Pending), (false, 3), "again after it was ready");
        assert_eq!(poll(Poll::Pending), (false, 3));
    }
}
