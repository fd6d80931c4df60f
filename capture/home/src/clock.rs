//! The clocks and the source of random numbers. No other part of the program reads a clock or draws random numbers.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use events::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::os;

/// Largest step back of the wall clock that [`now`] follows, ms.
const STEP_MS: i64 = 1_000;

/// The current wall-clock time, which never goes back: while the clock is set back by more than a second, time advances
/// with the monotonic clock until the wall clock has caught up. Otherwise, everything that waits for a time would wait
/// that much longer.
#[must_use]
pub fn now() -> Timestamp {
    static CLOCK: Mutex<SteadyWall> = Mutex::new(SteadyWall::new());
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner).read(wall(), since_start())
}

/// A wall clock that ignores being set back.
#[derive(Debug)]
struct SteadyWall {
    last: Option<(Timestamp, Duration)>,
}

impl SteadyWall {
    const fn new() -> Self {
        Self { last: None }
    }

    /// The time, given the wall clock and the time the process has been running.
    fn read(&mut self, wall: Timestamp, steady: Duration) -> Timestamp {
        let now = match self.last {
            None => wall,
            Some((last, at)) => {
                let passed = steady.saturating_sub(at).as_millis();
                let went_on = last.plus_ms(i64::try_from(passed).unwrap_or(i64::MAX));
                if wall.since_ms(went_on) < -STEP_MS { went_on } else { wall.max(last) }
            }
        };
        self.last = Some((now, steady));
        now
    }
}

/// The current wall-clock time, unadjusted.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the home of the wall clock")]
pub fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millisecond(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The id of the current boot; empty if the system does not provide one.
#[must_use]
pub fn boot() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(os::boot).clone()
}

/// Time since boot, including sleep.
#[must_use]
pub fn since_boot() -> Duration {
    read(os::SINCE_BOOT)
}

/// Time since boot, excluding sleep.
#[must_use]
pub fn awake() -> Duration {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The random bits of a new id of a run, a delivery or a prompt.
///
/// # Errors
/// If the system provides no random bytes.
pub fn random() -> std::io::Result<[u8; 10]> {
    let mut random = [0_u8; 10];
    fill_random(&mut random)?;
    Ok(random)
}

/// Fills a buffer with random bytes from the system. Returns the number of bytes written.
///
/// # Errors
/// If the system provides no random bytes.
pub fn fill_random(buffer: &mut [u8]) -> std::io::Result<usize> {
    os::random(buffer)
}

/// Time since the first call in this process, measured by the monotonic clock.
#[must_use]
pub fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests;
