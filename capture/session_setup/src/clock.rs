//! The clocks and random numbers of a session.

use engine::StepTime;
use executor::SessionClock;
use rustix::{
    rand::{GetRandomFlags, getrandom},
    time::{ClockId, Timespec, clock_gettime},
};

/// The system's clocks and random numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl SessionClock for SystemClock {
    fn now(&self) -> StepTime {
        // Unlike the monotonic clock, this one continues while the computer sleeps.
        let mono = clock_gettime(ClockId::Boottime);
        StepTime { wall_ms: millis(clock_gettime(ClockId::Realtime)), mono_ms: millis(mono).unsigned_abs() }
    }

    fn random(&self) -> u128 {
        let mut bytes = [0_u8; 16];
        // A request for so few bytes never fails or blocks; if it ever did, ids would still differ by their times.
        getrandom(&mut bytes, GetRandomFlags::empty()).ok();
        u128::from_le_bytes(bytes)
    }
}

fn millis(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
