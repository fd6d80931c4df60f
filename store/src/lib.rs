//! The store: one SQLite file with the event log, texts, cursors and snapshots.

pub mod reader;

pub use reader::{ReadError, Reader};
