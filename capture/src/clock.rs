//! The clocks; nowhere else is one read.

use std::{
    sync::OnceLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use adapters::tail::Now;
use events::Timestamp;

/// Now, by the wall clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the home of the wall clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millisecond(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Now, by both clocks.
#[must_use]
pub fn both() -> Now {
    static START: OnceLock<Instant> = OnceLock::new();
    Now { wall: now(), steady: START.get_or_init(Instant::now).elapsed() }
}
