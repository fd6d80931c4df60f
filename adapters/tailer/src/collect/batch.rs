//! A batch: events read from a file that are committed together.

use events::{Cursor, NewEvent, Provider, Timestamp};

/// Events, and the cursor after them. They are committed together; for one path, batches are committed in the order in
/// which they were sent.
#[derive(Debug)]
pub struct Batch {
    /// The cursor of the file after the events.
    pub cursor: Cursor,
    /// The agent.
    pub provider: Provider,
    /// The events, in the order of the file; empty if only the cursor moved.
    pub events: Vec<NewEvent>,
    /// Whether the file disappeared. Reported once, and again after a restart unless the cursor was removed.
    pub vanished: bool,
    /// Whether it was read as history, with lower priority.
    pub backfill: bool,
    /// The file's modification time: the time for history records that contain none.
    pub modified_at: Option<Timestamp>,
    /// Whether it was written before capture first saw the file, so that only its own timestamps date it.
    pub history: bool,
}
