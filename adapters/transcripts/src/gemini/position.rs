//! The position of a record and the time it was read.

use events::{Origin, Timestamp};
use serde::{Deserialize, Serialize};

/// The position of a record and the time it was read, stored for an event that is emitted later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordPosition {
    pub(super) origin: Origin,
    pub(super) observed_at: Timestamp,
}
