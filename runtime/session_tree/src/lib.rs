//! Stores the sessions of an agent as append-only trees on disk.
//!
//! The format is pi's version 3: a header line, then one line per entry, each with the id of the entry it follows. The
//! current position of the conversation, its *leaf*, is an entry; the model gets the path from the leaf to the root.
//! Nothing is ever changed or deleted: going back means moving the leaf.
//!
//! [`document`] parses a file into a header, entries and issues; [`Tree`] contains them and answers queries;
//! [`context`] builds the messages of a path and [`llm`] converts them for a model; [`compaction`] and
//! [`branch_summary`] prepare summaries; [`Session`] writes. `README.md` lists the differences from pi and their
//! reasons.
//!
//! The crate reads no clock, randomness or environment: callers that append pass a [`Stamp`]. Only [`session`] and
//! [`sessions`] do I/O.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod branch_summary;
pub mod compaction;
pub mod context;
pub mod document;
pub mod entry;
mod failure;
pub mod json;
pub mod llm;
pub mod session;
mod session_error;
pub mod sessions;
mod stamp;
pub mod time;
pub mod tree;
mod usage;

pub use context::Context;
pub use document::{DocumentIssue, DocumentRefusal, IssueReason, SessionDocument, SessionHeader};
pub use entry::{Entry, EntryBody, EntryKey, EntryKind, NewBranchSummary, NewCompaction, NewEntry};
pub use failure::FailureKind;
pub use json::{Json, Object};
pub use session::{ForkedSession, Session, SessionError};
pub use stamp::Stamp;
pub use tree::{EntryLabel, Node, Outline, Tree, TreeError};
pub use usage::{COST_UNKNOWN, MessageUsage};
