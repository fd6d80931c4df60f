//! Counts of sent and lost spans, for health and metrics.

use std::sync::{Mutex, PoisonError};

/// Counts since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Spans the collector accepted.
    pub sent: u64,
    /// Spans the collector rejected.
    pub rejected: u64,
    /// Turns and calls that were too old when the collector was reachable again.
    pub expired: u64,
    /// Failed requests. Requests with traces are retried, those with metrics are not.
    pub failed_requests: u64,
    /// Why the last request failed; `None` once one succeeded.
    pub trouble: Option<String>,
    /// Number of log events that are not sent yet.
    pub behind: u64,
}

impl ExportCounts {
    /// Spans that did not reach the collector, by reason.
    #[must_use]
    pub const fn dropped(&self) -> [(&'static str, u64); 2] {
        [("expired", self.expired), ("rejected", self.rejected)]
    }
}

/// The counts, shared with the readers that show them.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts(Mutex<ExportCounts>);

impl SharedCounts {
    pub(crate) fn read(&self) -> ExportCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut ExportCounts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
