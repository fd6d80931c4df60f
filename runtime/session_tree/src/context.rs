//! Builds the context of a model at a point of the tree.
//!
//! The path from there to the root; of what stands before its last compaction only the summary and what that
//! one keeps. Each entry gives no message, one or two. Settings are those of the whole path.
//!
//! Follows `buildSessionProjection` of pi 0.87.1. A message entry without a message, on which pi fails, gives
//! none. Owns the choice; what a provider gets of it is [`crate::llm`].

pub(crate) mod messages;
mod system;

pub use messages::{Context, ContextEntry, messages_of, text_of};
pub(crate) use messages::{blocks, branch_summary, compaction_summary, custom};
pub use system::system_message;
