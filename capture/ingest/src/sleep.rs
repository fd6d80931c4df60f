//! Detects that the machine slept or the whole program was stopped. Nothing was observed during that time, so it does
//! not count as silence of an agent.

use std::time::Duration;

use events::{Annotation, Source, State};

use super::{Ingest, TransactionFailure};

/// Longest single wait of a thread that detects sleep: the delay of its wake-up shows how long the program was stopped.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Shorter delays may come from a busy machine.
const SHORTEST_SLEEP: Duration = Duration::from_secs(10);

/// The machine's uptime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Uptime {
    /// Including the time it slept.
    pub with_sleep: Duration,
    /// Excluding the time it slept.
    pub awake: Duration,
}

/// Reads the uptime; tests supply their own.
pub type UptimeClock = Box<dyn Fn() -> Uptime + Send>;

/// Measures for how long a waiting thread was prevented from running.
pub struct SleepWatch {
    clock: UptimeClock,
    woken: Uptime,
    /// When the wait began, and its intended length.
    waits: Option<(Duration, Duration)>,
}

impl SleepWatch {
    /// A watch that reads this clock.
    #[must_use]
    pub fn new(clock: UptimeClock) -> Self {
        let woken = clock();
        Self { clock, woken, waits: None }
    }

    /// Begins a wait, shortened if necessary so that sleep is detected.
    pub fn begin(&mut self, wait: Option<Duration>) -> Duration {
        let wait = wait.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        self.waits = Some(((self.clock)().awake, wait));
        wait
    }

    /// Ends the wait: returns how long the machine slept since the last one, plus the delay of the wake-up.
    pub fn end(&mut self) -> Duration {
        let now = (self.clock)();
        let asleep = |uptime: Uptime| uptime.with_sleep.saturating_sub(uptime.awake);
        let slept = asleep(now).saturating_sub(asleep(self.woken));
        self.woken = now;
        let late = self.waits.take().map(|(from, wait)| now.awake.saturating_sub(from).saturating_sub(wait));
        slept + late.unwrap_or_default()
    }
}

impl Ingest {
    /// Records in every open turn for how long nothing was observed.
    pub(super) fn note_sleep(&mut self, slept: Duration) {
        if slept < SHORTEST_SLEEP {
            return;
        }
        let open = self.sessions.all_loaded();
        let open = open.filter(|(_, s)| s.session.turn.is_some() && s.session.status.state != State::Exited);
        for slot in open.map(|(slot, _)| slot).collect::<Vec<_>>() {
            if let Err(failure) = self.try_note_sleep(slot, slept) {
                return self.recover(&failure);
            }
        }
    }

    fn try_note_sleep(&mut self, slot: usize, slept: Duration) -> Result<(), TransactionFailure> {
        let now = (self.clock)();
        let ms = i64::try_from(slept.as_millis()).unwrap_or(i64::MAX);
        self.transaction.begin()?;
        self.transaction.mark_live();
        // Dated to the beginning of the sleep, so that no timeout expires before it counts.
        self.inject(slot, Source::Runtime, now.plus_ms(-ms), "asleep", Annotation::asleep(ms).into())?;
        self.sessions.schedule(slot, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn time_lost_to_sleep_or_a_stopped_process_is_measured() {
        let seconds = Duration::from_secs;
        let now = Arc::new(Mutex::new(Uptime { with_sleep: seconds(900), awake: seconds(500) }));
        let clock = Arc::clone(&now);
        let mut watch = SleepWatch::new(Box::new(move || *clock.lock().unwrap()));
        let mut goes_on = |asleep: u64, awake: u64, wait: Option<Duration>| {
            let planned = watch.begin(wait);
            let mut now = now.lock().unwrap();
            *now = Uptime { with_sleep: now.with_sleep + seconds(asleep + awake), awake: now.awake + seconds(awake) };
            drop(now);
            (planned, watch.end())
        };
        assert_eq!(goes_on(0, 5, None), (seconds(5), seconds(0)));
        assert_eq!(goes_on(0, 1, Some(seconds(2))), (seconds(2), seconds(0)), "an input came");
        assert_eq!(goes_on(0, 3, Some(seconds(2))), (seconds(2), seconds(1)), "a busy machine");
        assert_eq!(goes_on(28_800, 1, Some(seconds(60))), (seconds(5), seconds(28_800)), "the lid was closed");
        assert_eq!(goes_on(0, 63, Some(seconds(20))), (seconds(5), seconds(58)), "the program was stopped");
        assert_eq!(goes_on(0, 5, None), (seconds(5), seconds(0)));
    }
}
