//! Turns a summarizer's answers into a compaction entry.

use std::future::Future;

use super::files;
use crate::{
    compaction::{
        plan::{CompactionPlan, details},
        prompt::SummaryRequest,
    },
    entry::NewCompaction,
    json::{Json, Object},
};

/// Writes summaries: a model, or a test double.
pub trait Summarizer {
    /// An error before there is an answer.
    type Error;

    /// Requests one summary.
    fn summarize(&mut self, request: SummaryRequest)
    -> impl Future<Output = Result<SummaryAnswer, Self::Error>> + Send;
}

/// A summarizer's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryAnswer {
    /// Its text.
    pub text: String,
    /// Why it ended.
    pub stopped: AnswerEnd,
    /// Its usage, in pi's form.
    pub usage: Option<Json>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerEnd {
    /// It is complete.
    Done,
    /// It reached the maximum length.
    Length,
    /// The model tried to call a tool.
    ToolCall,
    /// It was cancelled, for instance by the user.
    Aborted,
    /// The provider failed.
    Failed(String),
}

/// Why there is no summary. Nothing is written in that case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError<E> {
    /// The summarizer failed.
    #[error("the summary failed: {0}")]
    Summarizer(E),
    /// The provider failed.
    #[error("the summary failed: {0}")]
    Failed(String),
    /// The summary was cut off.
    #[error("the summary exceeds the length limit and is incomplete")]
    Length,
    /// The model called a tool.
    #[error("the model tried to call a tool instead of writing the summary")]
    ToolCall,
    /// It was cancelled.
    #[error("the summary was cancelled")]
    Aborted,
    /// A summary that the plan requires is missing.
    #[error("a summary is missing")]
    Missing,
}

/// A finished summary and its usage.
pub(crate) struct SummaryText {
    pub(crate) text: String,
    pub(crate) usage: Option<Json>,
}

/// A finished compaction, ready to append.
pub type Compacted = NewCompaction;

/// Compacts: requests the summaries one after the other and combines them.
///
/// # Errors
/// A summary is missing or incomplete.
pub async fn compact<S: Summarizer>(
    plan: &CompactionPlan<'_>,
    focus: Option<&str>,
    summarizer: &mut S,
) -> Result<Compacted, SummaryError<S::Error>> {
    let (history, prefix) = plan.requests(focus);
    let history = request_summary(history, summarizer).await?;
    let prefix = request_summary(prefix, summarizer).await?;
    plan.assemble(history, prefix)
}

async fn request_summary<S: Summarizer>(
    request: Option<SummaryRequest>,
    summarizer: &mut S,
) -> Result<Option<SummaryAnswer>, SummaryError<S::Error>> {
    let Some(request) = request else { return Ok(None) };
    summarizer.summarize(request).await.map(Some).map_err(SummaryError::Summarizer)
}

/// The text of a complete answer.
pub(crate) fn summary_text<E>(answer: SummaryAnswer) -> Result<SummaryText, SummaryError<E>> {
    match answer.stopped {
        AnswerEnd::Done => Ok(SummaryText { text: answer.text, usage: answer.usage }),
        AnswerEnd::Length => Err(SummaryError::Length),
        AnswerEnd::ToolCall => Err(SummaryError::ToolCall),
        AnswerEnd::Aborted => Err(SummaryError::Aborted),
        AnswerEnd::Failed(error) => Err(SummaryError::Failed(error)),
    }
}

impl CompactionPlan<'_> {
    /// Combines the answers to [`CompactionPlan::requests`].
    ///
    /// # Errors
    /// An answer is missing or is not a complete summary.
    pub fn assemble<E>(
        &self,
        history: Option<SummaryAnswer>,
        prefix: Option<SummaryAnswer>,
    ) -> Result<Compacted, SummaryError<E>> {
        let history = history.map(summary_text).transpose()?;
        let prefix = prefix.map(summary_text).transpose()?;
        if history.is_some() == self.history.is_empty() || prefix.is_some() == self.turn_prefix.is_empty() {
            return Err(SummaryError::Missing);
        }
        let usage =
            add_usage(history.as_ref().and_then(|t| t.usage.clone()), prefix.as_ref().and_then(|t| t.usage.clone()));
        let history = history.map(|told| told.text);
        let mut summary = match prefix {
            None => history.unwrap_or_default(),
            Some(prefix) => {
                let before = history.or_else(|| self.previous_summary.map(str::to_owned));
                let before = before.unwrap_or_else(|| "No prior history.".to_owned());
                format!("{before}\n\n---\n\n**Turn Context (split turn):**\n\n{}", prefix.text)
            }
        };
        let (read, modified) = self.files.lists();
        summary += &files::as_text(&read, &modified);
        Ok(NewCompaction {
            summary,
            first_kept: Some(self.first_kept.to_owned()),
            tokens_before: self.tokens_before,
            details: Some(details(&read, &modified)),
            usage,
            from_hook: false,
        })
    }
}

/// The sum of two usages: numbers are added, and objects recursively.
fn add_usage(first: Option<Json>, second: Option<Json>) -> Option<Json> {
    match (first, second) {
        (Some(Json::Object(first)), Some(Json::Object(second))) => {
            let mut sum = Object::new();
            for (key, value) in first.iter() {
                sum.set_some(key, add_usage(Some(value.clone()), second.get(key).cloned()));
            }
            for (key, value) in second.iter().filter(|(key, _)| first.get(key).is_none()) {
                sum.set(key, value.clone());
            }
            Some(Json::Object(sum))
        }
        (Some(Json::Number(first)), Some(Json::Number(second))) => Some(add_numbers(&first, &second)),
        (first, second) => first.or(second),
    }
}

fn add_numbers(first: &serde_json::Number, second: &serde_json::Number) -> Json {
    if let Some(sum) = first.as_u64().zip(second.as_u64()).and_then(|(a, b)| a.checked_add(b)) {
        return sum.into();
    }
    let sum = first.as_f64().unwrap_or_default() + second.as_f64().unwrap_or_default();
    serde_json::Number::from_f64(sum).map_or(Json::Null, Json::Number)
}
