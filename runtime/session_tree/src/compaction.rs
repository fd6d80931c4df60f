//! Compaction: which part of a context is summarized and which is kept.
//!
//! [`CompactionPlan::of`] chooses the cut, [`CompactionPlan::requests`] builds the requests to a summarizer, and
//! [`CompactionPlan::assemble`] builds the entry from its answers. [`Summarizer`] is the interface of the summarizer;
//! [`compact`] sends it one request after the other.
//!
//! Follows `prepareCompaction` and `compact` of pi 0.87.1: a second compaction starts with the entries the first one
//! kept, so that nothing leaves the context without being summarized.

mod assemble;
mod cut;
mod files;
mod plan;
mod prompt;
mod tokens;

pub use assemble::{AnswerEnd, Compacted, Summarizer, SummaryAnswer, SummaryError, compact};
pub(crate) use assemble::{SummaryText, summary_text};
pub use files::FileOperations;
pub(crate) use files::as_text;
pub use plan::{CompactionPlan, CompactionSettings, details};
pub use prompt::{SECTIONS, SYSTEM, SummaryRequest, flatten};
pub use tokens::{TokenEstimate, context_tokens, estimate, message_tokens, usage_tokens};

#[cfg(test)]
mod tests;
