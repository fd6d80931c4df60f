//! The time limits for deciding a status.

use serde::{Deserialize, Serialize};

/// Limits of the status rules, set by the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusRules {
    /// Silence in an open turn after which it is less certain that the turn is running, ms.
    pub quiet_ms: i64,
    /// Silence without an open turn after which a session is idle, ms.
    pub idle_after_ms: i64,
    /// Silence in an open turn without a known process after which the state is unknown, ms.
    pub lost_after_ms: i64,
    /// How long a ready prompt may contradict an open turn before the turn counts as ended, ms.
    pub ready_grace_ms: i64,
    /// Silence after a likely end of a turn after which the end counts, ms.
    pub likely_end_ms: i64,
    /// How long a process may continue after its goodbye before the claim of its session is withdrawn, ms.
    pub goodbye_grace_ms: i64,
    /// How long the first source that reports a change takes precedence over a closer source that disagrees, ms.
    pub confirm_ms: i64,
}

impl Default for StatusRules {
    fn default() -> Self {
        Self {
            quiet_ms: 30_000,
            idle_after_ms: 120_000,
            lost_after_ms: 600_000,
            ready_grace_ms: 3_000,
            likely_end_ms: 400,
            goodbye_grace_ms: 5_000,
            confirm_ms: 1_000,
        }
    }
}
