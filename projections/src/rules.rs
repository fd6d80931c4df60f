//! The time limits for deciding a status.

use serde::{Deserialize, Serialize};

/// Limits of the status rules; set by the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusRules {
    /// Silence in an open turn after which it is less certain that it runs, ms.
    pub quiet_ms: i64,
    /// Silence without an open turn after which a session is idle, ms.
    pub idle_after_ms: i64,
    /// Silence in an open turn, with no process known, after which the state is unknown, ms.
    pub lost_after_ms: i64,
    /// How long a ready prompt may stand against an open turn before the turn is given up, ms.
    pub ready_grace_ms: i64,
    /// How long it must stay silent after a likely end of a turn until it counts, ms.
    pub likely_end_ms: i64,
    /// How long after its goodbye a process may live on before its session is asked again, ms.
    pub goodbye_grace_ms: i64,
    /// How long the first to notice a change is believed against a closer source that says
    /// otherwise, ms.
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
