//! The requests of a session: the predicted and the reported use of the provider's cache, and the cause of a shortfall.

use std::{fmt::Write as _, path::Path};

use engine::{
    AnswerUsage, RecordedSession,
    cache::{self, BlockOrigin, CachePrediction, LongCacheChoice, MissCause, RequestRow},
};
use serde::Serialize;
use session_tree::{FailureKind, Session, Tree};

use crate::{RunError, SessionChoice, sessions};

/// The requests of a session.
#[derive(Debug, Clone, Serialize)]
pub struct CacheTable {
    /// The session's id.
    pub session: String,
    /// The share of all input that was read from the cache, 0 to 1; `None` if no usage was reported.
    pub hit_rate: Option<f64>,
    /// How long the system prompt is cached from the next turn on, and why; `None` if the provider decides.
    pub kept: Option<LongCacheChoice>,
    /// The requests in order.
    pub requests: Vec<CachedRequest>,
}

/// A request of a session.
#[derive(Debug, Clone, Serialize)]
pub struct CachedRequest {
    /// Its number.
    pub n: u64,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Number of earlier attempts.
    pub retries: u32,
    /// The size of its blocks, in bytes.
    pub bytes: u64,
    /// The predicted use of the cache.
    pub predicted: CachePrediction,
    /// Its usage; `None` if the provider did not report it or the process ended first.
    pub usage: Option<UsedTokens>,
    /// Why fewer tokens were read than were available.
    pub cause: Option<MissCause>,
    /// The kind of the first entry that differs from the previous request, if that is the cause.
    pub changed_kind: Option<String>,
    /// Why it failed.
    pub failure: Option<FailureKind>,
    /// Its duration, in milliseconds.
    pub total_ms: Option<u64>,
}

/// The usage of a request, in tokens.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct UsedTokens {
    /// All input.
    #[serde(skip)]
    pub prompt: u64,
    /// Input neither read from the cache nor written to it.
    pub input: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache for five minutes, or for a time the provider chooses.
    pub cache_write_5m: u64,
    /// Input written to the cache for an hour.
    pub cache_write_1h: u64,
    /// Output, including thinking.
    pub output: u64,
    /// The thinking tokens in `output`.
    pub reasoning: u64,
    /// The price in billionths of a dollar; `None` if unknown.
    pub cost_nano_usd: Option<u64>,
}

impl From<AnswerUsage> for UsedTokens {
    fn from(usage: AnswerUsage) -> Self {
        Self {
            prompt: usage.prompt_tokens(),
            input: usage.input,
            cache_read: usage.cache_read,
            cache_write_5m: usage.cache_write_5m,
            cache_write_1h: usage.cache_write_1h,
            output: usage.output,
            reasoning: usage.reasoning,
            cost_nano_usd: usage.cost_nano_usd,
        }
    }
}

impl CachedRequest {
    fn of(row: RequestRow, tree: &Tree) -> Self {
        let changed_kind = match &row.cause {
            Some(MissCause::PrefixChanged { origin: BlockOrigin::Entry(id), .. }) => kind_of(tree, id),
            Some(_) | None => None,
        };
        Self {
            n: row.n.0,
            at_ms: row.at_ms,
            provider: row.provider,
            model: row.model,
            retries: row.retries,
            bytes: row.bytes,
            predicted: row.predicted,
            usage: row.usage.map(UsedTokens::from),
            cause: row.cause,
            changed_kind,
            failure: row.failure,
            total_ms: row.total_ms,
        }
    }
}

/// The kind of an entry: the role of a message, or the type of another entry.
fn kind_of(tree: &Tree, id: &str) -> Option<String> {
    let entry = tree.entry(id)?;
    entry.role().or_else(|| entry.type_name()).map(str::to_owned)
}

/// Reads the requests of a session. If a new session is chosen, reads the last one instead.
///
/// # Errors
/// If the session is not found or its file cannot be read.
pub fn cache_table(data: &Path, cwd: &Path, session: &SessionChoice) -> Result<CacheTable, RunError> {
    let path = match session {
        SessionChoice::Named(given) => sessions::find(data, given)?,
        SessionChoice::Last | SessionChoice::New => sessions::last(data, &cwd.to_string_lossy())?,
    };
    let tree: Tree = Session::read(&path)?.into();
    Ok(CacheTable::of(&tree))
}

impl CacheTable {
    fn of(tree: &Tree) -> Self {
        let rows = cache::requests(tree);
        let has_marks = rows.last().is_some_and(|row| row.has_marks);
        Self {
            session: tree.header().id().to_owned(),
            hit_rate: cache::hit_rate(&rows),
            kept: has_marks.then(|| RecordedSession::of(tree).cache().kept_by()),
            requests: rows.into_iter().map(|row| CachedRequest::of(row, tree)).collect(),
        }
    }

    /// The table as text for the user.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.requests.is_empty() {
            return "The session has no requests yet.\n".to_owned();
        }
        let mut text = String::from("REQUEST   INPUT  EXPECTED    READ  WRITTEN  CAUSE\n");
        for row in &self.requests {
            let usage = row.usage.unwrap_or_default();
            let reported = |tokens: u64| row.usage.as_ref().map_or_else(|| "-".to_owned(), |_| tokens.to_string());
            let written = usage.cache_write_5m + usage.cache_write_1h;
            let _ = writeln!(
                text,
                "{:>7}  {:>6}  {:>8}  {:>6}  {:>7}  {}",
                row.n.to_string(),
                reported(usage.prompt),
                row.predicted.read,
                reported(usage.cache_read),
                reported(written),
                printing::safe(&why(row)),
            );
        }
        match self.hit_rate {
            Some(rate) => {
                let _ = writeln!(text, "{:.1} % of the input was read from the cache.", rate * 100.0);
            }
            None => text.push_str("The provider reported no usage.\n"),
        }
        if let Some(LongCacheChoice { is_long, pauses, above_5m, above_1h }) = self.kept {
            let (kept, other) = if is_long { ("1 h", "5 min") } else { ("5 min", "1 h") };
            let _ = writeln!(
                text,
                "From the next turn on, the system prompt stays in the cache for {kept}, which costs no more than \
                 {other}: of the last {pauses} pauses between requests, {above_5m} were longer than 5 min and \
                 {above_1h} longer than 1 h."
            );
        }
        text
    }
}

/// Why fewer tokens were read than were available, or why the request failed.
fn why(row: &CachedRequest) -> String {
    match (&row.cause, &row.failure) {
        (Some(cause), _) => match cause {
            MissCause::ModelChanged => "another model answers".to_owned(),
            MissCause::PrefixChanged { block, origin } => {
                let what = match origin {
                    BlockOrigin::Settings => "the settings".to_owned(),
                    BlockOrigin::Tools => "the tools".to_owned(),
                    BlockOrigin::System => "the system prompt".to_owned(),
                    BlockOrigin::Entry(id) => match &row.changed_kind {
                        Some(kind) => format!("entry {id}, {kind}"),
                        None => format!("entry {id}"),
                    },
                    BlockOrigin::End => "its end".to_owned(),
                };
                format!("the request differs from block {block} on ({what})")
            }
            MissCause::TtlPassed { gap_ms } => format!("{} s have passed", gap_ms / 1000),
            MissCause::LookbackExceeded { blocks } => format!("written {blocks} blocks before the next mark"),
            MissCause::BelowMinimum { tokens, minimum } => format!("{tokens} tokens, below the minimum of {minimum}"),
            MissCause::EvictedByVendor => "dropped early by the provider".to_owned(),
            MissCause::RoutedElsewhere => "sent to another machine by the provider".to_owned(),
        },
        (None, Some(failure)) => format!("failed: {failure:?}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests;
