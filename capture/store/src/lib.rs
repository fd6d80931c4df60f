//! The store: one SQLite file with the event log, texts, cursors, turns, approvals,
//! the audit record, and snapshots.
//!
//! The only crate that uses rusqlite. One [`Writer`] (guarded by a lock file) commits events, texts, derived events,
//! snapshots and cursors in one transaction; any number of [`Reader`]s read concurrently. The store does not interpret
//! events. Start at [`schema`] for the tables.

pub mod accounts;
mod appender;
pub mod audit;
pub mod check;
mod damage;
pub mod entity;
mod error;
mod known;
pub mod lock;
mod open;
pub mod reader;
pub mod rebuild;
pub mod removal;
pub mod restore;
mod rows;
pub mod schema;
mod session_row;
pub mod text;
mod timeline;
mod tombstones;
mod tool_times;
pub mod usage;
pub mod writer;

pub use accounts::AccountedUse;
pub use appender::EventAppender;
pub use audit::{
    AuditCheck, AuditEntry, AuditHash, AuditHead, HEAD_FILE, HeadError, VerifyError, read_head, write_head,
};
pub use check::DatabaseCheck;
pub use damage::DamagedRows;
pub use entity::{Entity, EntityFilter};
pub use error::{CommitError, ReadError, ReadFailure};
pub use lock::{InstanceLock, LockError, lock_file};
pub use open::StoreOpenError;
pub use reader::{Reader, SessionFilter};
pub use rebuild::{RebuildError, Rebuilt, put_aside};
pub use removal::{About, Compacted, ErasePending, PrunedSession, SessionRemoval};
pub use restore::{BackupError, BackupFacts, Restored, backup, inspect, restore};
pub use rows::payload_json;
pub use session_row::{KnownSession, SessionRow, StoredSession};
pub use text::{LARGE_TEXT_CAP_BYTES, PackedText, TEXT_CAP_BYTES};
pub use timeline::{NOTABLE_KINDS, TimelineFilter, is_failure, is_notable};
pub use tombstones::{RemovalKind, TOMBSTONES_FILE, removed_name};
pub use usage::{CallFilter, ModelCall, QuotaUse, SessionFacts, UsageEntry};
pub use writer::{LogUse, Writer};
