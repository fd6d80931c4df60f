//! Intervals and timeouts of the follower.

use std::time::Duration;

/// Intervals and timeouts of the follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Interval between searches for the daemon of a home.
    pub look_every: Duration,
    /// Minimum age of a socket before connecting to it, in ms.
    pub leave_alone_ms: i64,
    /// Timeout for a reply.
    pub answer: Duration,
    /// Delay after the first failure; it grows with each further failure.
    pub pause: Duration,
    /// Longest delay after a failure.
    pub longest_pause: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            look_every: Duration::from_secs(2),
            leave_alone_ms: 3_000,
            answer: Duration::from_secs(5),
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
        }
    }
}

impl Timing {
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.pause.saturating_mul(doubled).min(self.longest_pause)
    }
}
