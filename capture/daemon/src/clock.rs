//! The clocks and the random numbers: nothing else in the program reads or draws one.

use std::{
    sync::OnceLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use events::Timestamp;
use rustix::rand::{GetRandomFlags, getrandom};
use tailer::tail::Now;

/// Now, by the wall clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the home of the wall clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millisecond(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The random bits of an id that is minted: of a run, a delivery, a prompt.
///
/// # Errors
/// When the system provides no random bytes.
pub fn random() -> std::io::Result<[u8; 10]> {
    let mut random = [0_u8; 10];
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(random)
}

/// Now, by both clocks.
#[must_use]
pub fn both() -> Now {
    static START: OnceLock<Instant> = OnceLock::new();
    Now { wall: now(), steady: START.get_or_init(Instant::now).elapsed() }
}
