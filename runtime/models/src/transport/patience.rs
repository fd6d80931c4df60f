//! Timeouts for silence in an answer.

use std::time::Duration;

/// Timeouts. Only events with content count; pings and comments do not, because a proxy in front of a hanging server
/// continues to send them (earendil-works/pi#8593).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Before the model's first output.
    pub first: Duration,
    /// After the first output, between events.
    pub idle: Duration,
    /// For the whole answer.
    pub total: Duration,
}

/// The longest configurable silence.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The silence is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the idle time limit {0:?} is out of range: it must be above 0 and at most 15 minutes")]
pub struct PatienceError(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self { first: Duration::from_secs(120), idle: Duration::from_secs(60), total: Duration::from_secs(30 * 60) }
    }
}

impl Patience {
    /// Changes the silence timeouts, for models on slow machines.
    ///
    /// # Errors
    /// If one is 0 or longer than 15 minutes: a session would hang.
    pub fn with_silence(self, first: Duration, idle: Duration) -> Result<Self, PatienceError> {
        match [first, idle].into_iter().find(|silence| silence.is_zero() || *silence > LONGEST) {
            Some(wrong) => Err(PatienceError(wrong)),
            None => Ok(Self { first, idle, ..self }),
        }
    }
}
