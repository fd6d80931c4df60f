//! Builds the context of a model at a point of the tree.
//!
//! The context is the path from that point to the root; of the entries before its last compaction, only the summary and
//! the kept entries. Each entry yields zero, one or two messages. Settings are those of the whole path.
//!
//! Follows `buildSessionProjection` of pi 0.87.1. A message entry without a message, on which pi fails, yields none.
//! This module chooses the entries; [`crate::llm`] converts them for a provider.

pub(crate) mod messages;
mod system;

pub use messages::{Context, ContextEntry, messages_of, text_of};
pub(crate) use messages::{blocks, branch_summary, compaction_summary, custom};
pub use system::system_message;
