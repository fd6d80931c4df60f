//! The clocks and random numbers of a session.

use engine::StepTime;
use executor::SessionClock;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::os;

/// The system's clocks and random numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl SessionClock for SystemClock {
    fn now(&self) -> StepTime {
        // Unlike Linux's monotonic clock, this clock advances while the machine sleeps.
        let mono = clock_gettime(os::SINCE_BOOT);
        StepTime { wall_ms: millis(clock_gettime(ClockId::Realtime)), mono_ms: millis(mono).unsigned_abs() }
    }

    fn random(&self) -> u128 {
        let mut bytes = [0_u8; 16];
        // The system returns so few bytes in one call, without waiting. If it fails, ids still differ by the time they
        // contain.
        os::random(&mut bytes).ok();
        u128::from_le_bytes(bytes)
    }
}

fn millis(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
