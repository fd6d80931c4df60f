//! The clocks in the forms that the parts of the service take.

use home::clock;
use ingest::Uptime;
use retention::ClockReading;
use tailer::tail::Now;

/// Now, by both clocks.
pub(crate) fn both() -> Now {
    Now { wall: clock::now(), steady: clock::since_start() }
}

/// How long the machine has been up, with the time it slept and without it.
pub(crate) fn uptime() -> Uptime {
    Uptime { awake: clock::awake(), with_sleep: clock::since_boot() }
}

/// Both clocks that tell how much time has passed, for what must not trust one of them.
pub(crate) fn reading() -> ClockReading {
    ClockReading {
        wall: clock::wall(),
        boot: clock::boot(),
        since_boot_ms: i64::try_from(clock::since_boot().as_millis()).unwrap_or(i64::MAX),
    }
}
