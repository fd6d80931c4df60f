//! How long an answer may keep silent.

use std::time::Duration;

/// How long is waited. Only events count that bring something; pings and comments do not, because servers that hang
/// behind a proxy keep sending them (earendil-works/pi#8593).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Before the model's first word.
    pub first: Duration,
    /// After it, from one event to the next.
    pub idle: Duration,
    /// For the whole answer.
    pub total: Duration,
}

/// The longest silence that can be configured.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// A silence that cannot be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a silence of {0:?} cannot be allowed: name more than 0 and at most 15 minutes")]
pub struct PatienceError(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self { first: Duration::from_secs(120), idle: Duration::from_secs(60), total: Duration::from_secs(30 * 60) }
    }
}

impl Patience {
    /// With other silences, for models that run on slow machines.
    ///
    /// # Errors
    /// When one is 0 or longer than 15 minutes: a session would hang.
    pub fn with_silence(self, first: Duration, idle: Duration) -> Result<Self, PatienceError> {
        match [first, idle].into_iter().find(|silence| silence.is_zero() || *silence > LONGEST) {
            Some(wrong) => Err(PatienceError(wrong)),
            None => Ok(Self { first, idle, ..self }),
        }
    }
}
