//! Compaction: which part of a context is summarized and which is kept.
//!
//! [`CompactionPlan::of`] chooses the cut, [`CompactionPlan::requests`] makes what a summarizer is asked, [`CompactionPlan::assemble`] makes the entry
//! of its answers. The summarizer itself is [`Summarizer`]; [`compact`] asks it one after the other.
//!
//! Follows `prepareCompaction` and `compact` of pi 0.87.1: a second compaction begins with what the first one
//! kept, so that nothing falls out of the context without being summed up.

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
pub(crate) use plan::details;
pub use plan::{CompactionPlan, CompactionSettings};
pub(crate) use prompt::SYSTEM;
pub use prompt::{SummaryRequest, flatten};
pub use tokens::{TokenEstimate, context_tokens, estimate, message_tokens, usage_tokens};

#[cfg(test)]
mod tests;
