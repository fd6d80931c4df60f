//! The clocks and the random numbers: nothing else in the program reads or draws one.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use events::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::os;

/// The largest step back of the wall clock that is followed, ms.
const STEP_MS: i64 = 1_000;

/// Now, by the wall clock, but time always goes on: a wall clock that is set back is not followed until it has caught
/// up. What waits for a moment would otherwise wait as much longer.
#[must_use]
pub fn now() -> Timestamp {
    static CLOCK: Mutex<SteadyWall> = Mutex::new(SteadyWall::new());
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner).read(wall(), since_start())
}

/// A wall clock that is never set back.
#[derive(Debug)]
struct SteadyWall {
    last: Option<(Timestamp, Duration)>,
}

impl SteadyWall {
    const fn new() -> Self {
        Self { last: None }
    }

    /// The time, given what the wall clock says, and how long the process has run.
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

/// Now, by the wall clock, whatever it said before.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the home of the wall clock")]
pub fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millisecond(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Names the boot; empty when the system does not say.
#[must_use]
pub fn boot() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(os::boot).clone()
}

/// How long the machine has been up, with the time it slept.
#[must_use]
pub fn since_boot() -> Duration {
    read(os::SINCE_BOOT)
}

/// How long the machine has been up, without the time it slept.
#[must_use]
pub fn awake() -> Duration {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The random bits of an id that is minted: of a run, a delivery, a prompt.
///
/// # Errors
/// When the system provides no random bytes.
pub fn random() -> std::io::Result<[u8; 10]> {
    let mut random = [0_u8; 10];
    fill_random(&mut random)?;
    Ok(random)
}

/// Fills a buffer with random bytes of the system. Returns how many were written.
///
/// # Errors
/// When the system provides no random bytes.
pub fn fill_random(buffer: &mut [u8]) -> std::io::Result<usize> {
    os::random(buffer)
}

/// How long this process has been reading the clock, by the one that is never set.
#[must_use]
pub fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests;
