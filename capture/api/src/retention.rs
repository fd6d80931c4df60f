//! Removing sessions: what is removed, and what still has to be erased.

use events::{Provider, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a session is to be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RemovalQuery {
    /// Only report what would be removed.
    pub dry_run: Option<bool>,
}

/// Which sessions to remove to save space. Running sessions are never removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PruneRequest {
    /// Remove sessions whose last event is older than this, seconds.
    pub older_than_s: Option<u64>,
    /// Remove the oldest sessions until the database has at most this size, bytes.
    pub larger_than_bytes: Option<u64>,
    /// Only sessions that began in this directory or below it. Without another condition, all of them are removed.
    pub project: Option<String>,
    /// Confirms that a person checked the clock and it is right, although it jumped.
    pub clock_is_right: bool,
    /// Only report what would be removed.
    pub dry_run: bool,
}

/// A session that is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedSession {
    /// Its id.
    pub id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// Its title.
    pub title: Option<String>,
    /// Its last event.
    pub last_event_at: Timestamp,
    /// The session it is a sub-agent of.
    pub parent_session_id: Option<SessionId>,
    /// Whether it seems to be running.
    pub is_running: bool,
    /// Whether its events and texts were removed before, to save space.
    pub was_pruned: bool,
    /// Number of its events.
    pub events: u64,
    /// Its approximate size in the database, bytes.
    pub bytes: u64,
}

/// The data that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovalReport {
    /// Whether this is a dry run, which removes nothing.
    pub dry_run: bool,
    /// The sessions, with their sub-agents.
    pub sessions: Vec<RemovedSession>,
    /// Number of their events.
    pub events: u64,
    /// Their approximate size in the database, bytes.
    pub bytes: u64,
    /// Files of the data directory that are removed whole: recordings, backups, damaged databases.
    pub files: Vec<String>,
    /// Backups outside the data directory, which still contain the sessions and are not changed.
    pub backups_elsewhere: Vec<String>,
}

impl RemovalReport {
    /// Combines several reports.
    #[must_use]
    pub fn all(reports: Vec<Self>) -> Self {
        let mut all = Self {
            dry_run: reports.iter().any(|report| report.dry_run),
            sessions: Vec::new(),
            events: 0,
            bytes: 0,
            files: Vec::new(),
            backups_elsewhere: Vec::new(),
        };
        for report in reports {
            for session in report.sessions {
                if all.sessions.iter().all(|known| known.id != session.id) {
                    all.events += session.events;
                    all.bytes += session.bytes;
                    all.sessions.push(session);
                }
            }
            all.files.extend(report.files);
            all.backups_elsewhere.extend(report.backups_elsewhere);
        }
        for paths in [&mut all.files, &mut all.backups_elsewhere] {
            paths.sort();
            paths.dedup();
        }
        all
    }
}

/// What is still to be erased, and the size of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionStatus {
    /// Number of removed sessions of which the files still contain data.
    pub erasing: u64,
    /// Why this data cannot be erased at the moment; the server tries again.
    pub trouble: Option<String>,
    /// The size of the database, bytes.
    pub database_bytes: u64,
    /// The part of it that is in use, bytes.
    pub used_bytes: u64,
    /// Why capture does not trust the clock of this machine and removes no session by age; `null` if it trusts the
    /// clock.
    pub clock: Option<String>,
}

/// A number of bytes as users write it: `5GB`, `512MiB`, `4096`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a size such as 500MB or 5GB, got `{text}`");
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(end).ok_or_else(wrong)?;
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "b" => 1,
            "k" | "kb" => 1_000,
            "m" | "mb" => 1_000_000,
            "g" | "gb" => 1_000_000_000,
            "t" | "tb" => 1_000_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => return Err(wrong()),
        };
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).map(Self).ok_or_else(wrong)
    }
}

impl std::fmt::Display for ByteSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes @ 0..1_000_000 => write!(f, "{} KB", bytes.div_ceil(1_000)),
            bytes @ 1_000_000..1_000_000_000 => write!(f, "{} MB", bytes / 1_000_000),
            bytes => write!(f, "{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ByteSize;

    #[test]
    fn byte_sizes_are_parsed_and_formatted() {
        let read = |text: &str| text.parse().map(|ByteSize(bytes)| bytes);
        assert_eq!(["5GB", "1 MiB", "12B", "3k"].map(read), [5_000_000_000, 1 << 20, 12, 3_000].map(Ok));
        for wrong in ["", "500", "GB", "5 parsecs", "-1", "99999999999999999999", "99999999TB", "5ü"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!([1, 2_000_000, 5_250_000_000].map(|n| ByteSize(n).to_string()), ["1 KB", "2 MB", "5.2 GB"]);
    }
}
