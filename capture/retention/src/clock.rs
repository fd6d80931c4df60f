//! Decides whether the wall clock can be trusted, before anything is removed because of its age.
//!
//! A wrong clock has no other visible effect, so a single reading is never enough. Each reading is compared with an
//! earlier trusted one that is stored in a file:
//!
//! - Within one boot, the wall clock must have advanced as much as the boot clock, which cannot be set and which counts
//!   while the machine sleeps. A lead of more than [`STEP_MS`] is a jump.
//! - Across boots, the machine may have been off for an unknown time. Up to [`OFF_MS`] is accepted. Before the first
//!   reading ever, the time of the newest stored event takes the place of an earlier reading.
//!
//! A clock that goes back removes nothing too early and is followed. A clock that jumped ahead is trusted again once it
//! is set back; or after it has kept pace with the boot clock for [`STEADY_MS`] of running time, across boots too, so
//! that a machine that really was off for long removes old sessions after a day; or when the user confirms that it is
//! right.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use atomic_file::Durability;
use events::Timestamp;
use serde::{Deserialize, Serialize};

/// Name of the file with the last readings, in the data directory.
const FILE: &str = "retention-clock.json";
/// How far the wall clock may run ahead of the boot clock within one boot, ms.
const STEP_MS: i64 = 3_600_000;
/// Longest time off that is accepted without doubt, ms: a long weekend.
const OFF_MS: i64 = 3 * DAY_MS;
/// Running time for which a doubted clock must keep pace before it is trusted, ms.
const STEADY_MS: i64 = DAY_MS;
/// Minimum time since the boot for its first reading, ms: by then the clock was set from the network.
const BOOTED_MS: i64 = 10 * 60_000;
const DAY_MS: i64 = 86_400_000;

/// Readings of both clocks, taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The wall clock, which may be wrong.
    pub wall: Timestamp,
    /// Identifies the boot; empty if the system does not report it.
    pub boot: String,
    /// Time since the boot, ms, including the time the machine slept.
    pub since_boot_ms: i64,
}

impl ClockReading {
    /// Time since an earlier reading of the same boot, ms; `None` for a reading of another boot.
    fn passed_since(&self, earlier: &Self) -> Option<i64> {
        let is_same = !self.boot.is_empty() && self.boot == earlier.boot && self.since_boot_ms >= earlier.since_boot_ms;
        is_same.then(|| self.since_boot_ms - earlier.since_boot_ms)
    }

    /// How much more the wall clock advanced than the boot clock since an earlier reading, ms; for a reading of another
    /// boot, how much the wall clock advanced.
    fn ahead_of(&self, earlier: &Self) -> i64 {
        self.wall.since_ms(earlier.wall) - self.passed_since(earlier).unwrap_or(0)
    }
}

/// Reads both clocks.
pub type ReadClocks = Arc<dyn Fn() -> ClockReading + Send + Sync>;

/// Why the wall clock is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockDoubt {
    why: Why,
    /// The reading of the wall clock.
    wall: Timestamp,
    /// How long it must still keep pace, ms.
    left_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It advanced this much more than the boot clock, ms.
    Jumped(i64),
    /// It is this much later than when it was last trusted, before this boot, ms.
    Later(i64),
    /// It is this much later than the newest event and was never trusted before, ms.
    NewestEvent(i64),
    /// There is no earlier reading to compare it with.
    First,
    /// The machine was started only recently.
    JustBooted,
}

impl ClockDoubt {
    /// Whether there is evidence against the clock, rather than only no evidence for it.
    pub(crate) const fn is_contradicted(&self) -> bool {
        matches!(self.why, Why::Jumped(_) | Why::Later(_))
    }
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, wall, left_ms } = self;
        write!(f, "capture does not trust the clock of this machine: the clock shows {wall}, ")?;
        match why {
            Why::Jumped(ms) => write!(f, "which is {} later than expected from the last check", ClockSpan(*ms))?,
            Why::Later(ms) => write!(f, "{} after the last check, which was before this boot", ClockSpan(*ms))?,
            Why::NewestEvent(ms) => write!(f, "{} after the newest event, and was not checked before", ClockSpan(*ms))?,
            Why::First => f.write_str("and was not checked before")?,
            Why::JustBooted => f.write_str("and the machine has only just started")?,
        }
        let left = (*left_ms).max(60_000);
        write!(f, "; capture will trust the clock once it has run at the right pace for {} more", ClockSpan(left))
    }
}

/// A length of time in words, rounded down to its largest unit.
struct ClockSpan(i64);

impl fmt::Display for ClockSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(365 * DAY_MS, "year"), (DAY_MS, "day"), (3_600_000, "hour"), (60_000, "minute")];
        let unit = units.into_iter().find(|(length, _)| self.0 >= *length);
        let (number, name) = unit.map_or((self.0 / 1_000, "second"), |(length, name)| (self.0 / length, name));
        write!(f, "{number} {name}{}", if number == 1 { "" } else { "s" })
    }
}

/// The stored state of the check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    /// The first trusted reading in the boot of `last`, or since the clock was last set back.
    first: Option<ClockReading>,
    /// The last trusted reading.
    last: Option<ClockReading>,
    /// The last reading of an untrusted clock, and for how long it has kept pace, ms.
    candidate: Option<(ClockReading, i64)>,
}

impl Record {
    /// The state after a reading, and whether the reading is trusted.
    fn after(&self, now: &ClockReading, newest: Option<Timestamp>) -> (Self, Result<(), ClockDoubt>) {
        let trusted = |first: &ClockReading| {
            let record = Self { first: Some(first.clone()), last: Some(now.clone()), candidate: None };
            (record, Ok(()))
        };
        let why = match (&self.first, &self.last) {
            (Some(first), Some(_)) if now.passed_since(first).is_some() => match now.ahead_of(first) {
                ahead if ahead > STEP_MS => Why::Jumped(ahead),
                ahead if ahead < 0 => return trusted(now),
                _ => return trusted(first),
            },
            _ if now.since_boot_ms < BOOTED_MS => {
                let doubt = ClockDoubt { why: Why::JustBooted, wall: now.wall, left_ms: BOOTED_MS - now.since_boot_ms };
                return (self.clone(), Err(doubt));
            }
            (_, Some(last)) => match now.ahead_of(last) {
                ahead if ahead > OFF_MS => Why::Later(ahead),
                _ => return trusted(now),
            },
            (_, None) => match newest.map(|newest| now.wall.since_ms(newest)) {
                Some(ahead) if ahead > OFF_MS => Why::NewestEvent(ahead),
                Some(_) if self.candidate.is_none() => return trusted(now),
                Some(_) | None => Why::First,
            },
        };
        let steady_ms = self.candidate.as_ref().map_or(0, |(candidate, steady_ms)| {
            let ahead = now.ahead_of(candidate);
            match now.passed_since(candidate) {
                Some(passed) if ahead.abs() <= STEP_MS => steady_ms + passed,
                None if (0..=OFF_MS).contains(&ahead) => *steady_ms,
                Some(_) | None => 0,
            }
        });
        if steady_ms >= STEADY_MS {
            return trusted(now);
        }
        let record = Self { candidate: Some((now.clone(), steady_ms)), ..self.clone() };
        (record, Err(ClockDoubt { why, wall: now.wall, left_ms: STEADY_MS - steady_ms }))
    }
}

/// Compares the wall clock with earlier readings.
pub(crate) struct ClockCheck {
    read: ReadClocks,
    path: PathBuf,
    record: Mutex<Record>,
    /// The time of the newest event stored when the service started.
    newest: Option<Timestamp>,
}

impl ClockCheck {
    /// Opens the check of a data directory. An unreadable state counts as none.
    pub(crate) fn open(data: &Path, read: ReadClocks, newest: Option<Timestamp>) -> Self {
        let path = data.join(FILE);
        let record = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "cannot read the saved state of the clock");
                Record::default()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Record::default(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read the saved state of the clock");
                Record::default()
            }
        };
        Self { read, path, record: Mutex::new(record), newest }
    }

    /// The current time, if the clock is trusted. Changes nothing.
    pub(crate) fn peek(&self) -> Result<Timestamp, ClockDoubt> {
        let now = (self.read)();
        self.lock().after(&now, self.newest).1.map(|()| now.wall)
    }

    /// The current time, if the clock is trusted. Stores the reading for later comparisons.
    pub(crate) fn check(&self) -> Result<Timestamp, ClockDoubt> {
        let now = (self.read)();
        let mut record = self.lock();
        let (after, trusted) = record.after(&now, self.newest);
        self.keep(&mut record, after);
        trusted.map(|()| now.wall)
    }

    /// Records that the user confirmed the clock. Returns the current time.
    pub(crate) fn confirm(&self) -> Timestamp {
        let now = (self.read)();
        let confirmed = Record { first: Some(now.clone()), last: Some(now.clone()), candidate: None };
        self.keep(&mut self.lock(), confirmed);
        now.wall
    }

    /// The wall clock's time, trusted or not.
    pub(crate) fn wall(&self) -> Timestamp {
        (self.read)().wall
    }

    /// Time since the boot, ms.
    pub(crate) fn since_boot_ms(&self) -> i64 {
        (self.read)().since_boot_ms
    }

    fn keep(&self, record: &mut Record, new: Record) {
        if *record == new {
            return;
        }
        *record = new;
        let text = serde_json::to_vec(record).unwrap_or_default();
        if let Err(error) = atomic_file::replace(&self.path, &text, Durability::Unsynced) {
            tracing::warn!(path = %self.path.display(), %error, "cannot write the saved state of the clock");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests;
