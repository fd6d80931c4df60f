//! Stores the sessions of an agent as append-only trees on disk.
//!
//! The format is pi's, version 3: a header line, then a line for each entry, each with the id of the entry it
//! follows. Where the conversation is, its *leaf*, is an entry; what the model gets is the path from there
//! to the root. Nothing is ever changed or deleted: going back means moving the leaf.
//!
//! [`document`] reads a file into a header, entries and issues; [`Tree`] holds them and answers; [`context`]
//! makes the messages of a path and [`llm`] what a model gets of them; [`compaction`] and
//! [`branch_summary`] prepare summaries; [`Session`] is the one that writes.
//! `README.md` lists where this differs from pi, and why.
//!
//! No clock, no randomness, no environment: whoever appends hands in a [`Stamp`]. No I/O outside
//! [`session`] and [`sessions`].

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
