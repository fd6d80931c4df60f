//! The store: one SQLite file with the event log, texts, cursors, turns, approvals,
//! the record of decisions, and snapshots.
//!
//! The only crate that uses rusqlite. One [`Writer`] (guarded by a lock file) commits events, texts, derived events,
//! snapshots and cursors in one transaction; any number of [`Reader`]s read concurrently. The store does not interpret
//! events. Start at [`schema`] for the tables.

pub mod audit;
pub mod entity;
mod error;
pub mod lock;
pub mod reader;
mod rows;
pub mod schema;
pub mod text;
pub mod writer;

pub use audit::{
    AuditCheck, AuditEntry, AuditHash, AuditHead, HEAD_FILE, HeadError, VerifyError, read_head, write_head,
};
pub use entity::{Entity, EntityFilter};
pub use error::{ReadError, ReadFailure};
pub use lock::{InstanceLock, LockError, lock_file};
pub use reader::{Reader, SessionFilter};
pub use text::{PackedText, TEXT_CAP_BYTES};
pub use writer::{CommitError, KnownSession, SessionRow, StoreOpenError, Writer};
