//! A batch: what is read of a file and committed together.

use events::{Cursor, NewEvent, Provider, Timestamp};

/// Events and the cursor they lead to: to be committed together, and for one path in the order
/// they are given.
#[derive(Debug)]
pub struct Batch {
    /// Where the file stands after the events.
    pub cursor: Cursor,
    /// The agent.
    pub provider: Provider,
    /// The events, in the order of the file; none when only the cursor moved.
    pub events: Vec<NewEvent>,
    /// The file is gone. Reported once, and again after a restart unless the cursor was removed.
    pub vanished: bool,
    /// Whether it was read as history, with lower priority.
    pub backfill: bool,
    /// When the file was last written, as it says itself: for records of history that have no time of their own.
    pub modified_at: Option<Timestamp>,
    /// Whether it was written before capture first saw the file, so that only its own timestamps tell when.
    pub history: bool,
}
