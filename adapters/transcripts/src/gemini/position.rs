//! Where and when a record was read.

use events::{Origin, Timestamp};
use serde::{Deserialize, Serialize};

/// Where and when a record was read, kept for an event that is put out later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordPosition {
    pub(super) origin: Origin,
    pub(super) observed_at: Timestamp,
}
