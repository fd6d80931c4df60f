//! One attempt of a channel to send a message, and its result.

use std::{fmt, time::Duration};

use events::Timestamp;

use crate::message::OutgoingMessage;

/// The reason why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The reason, for people and logs; contains no secret and no address with a secret.
    pub error: String,
    /// Whether another attempt may succeed, and when.
    pub again: RetryHint,
}

/// Whether another attempt may succeed, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryHint {
    /// It would fail the same way.
    Never,
    /// It may succeed later.
    Soon,
    /// It may succeed after the time that the other side asked for.
    After(Duration),
}

impl AttemptFailure {
    pub(crate) fn never(error: impl fmt::Display) -> Self {
        Self { error: error.to_string(), again: RetryHint::Never }
    }

    pub(crate) fn soon(error: impl fmt::Display) -> Self {
        Self { error: error.to_string(), again: RetryHint::Soon }
    }
}

/// Ends the operation for which a channel waits; may be called from another thread.
pub type Stopper = Box<dyn FnOnce() + Send + Sync>;

/// One channel.
pub(crate) trait Channel: Send {
    /// Makes one attempt, which ends within the time limit of an attempt.
    fn deliver(&mut self, message: &OutgoingMessage, now: Timestamp) -> Result<(), AttemptFailure>;

    /// A function that ends a running attempt.
    fn stopper(&self) -> Option<Stopper> {
        None
    }
}
