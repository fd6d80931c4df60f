//! Provides clocks in the forms that the parts of the service need.

use home::clock;
use ingest::Uptime;
use retention::ClockReading;
use tailer::tail::Now;

/// The current time of both clocks.
pub(crate) fn both() -> Now {
    Now { wall: clock::now(), steady: clock::since_start() }
}

/// The machine's uptime, including and excluding sleep.
pub(crate) fn uptime() -> Uptime {
    Uptime { awake: clock::awake(), with_sleep: clock::since_boot() }
}

/// Readings of independent clocks, for code that must not trust a single one.
pub(crate) fn reading() -> ClockReading {
    ClockReading {
        wall: clock::wall(),
        boot: clock::boot(),
        since_boot_ms: i64::try_from(clock::since_boot().as_millis()).unwrap_or(i64::MAX),
    }
}
