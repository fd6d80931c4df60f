//! The requests of a session: what was expected of the provider's cache, what was reported, and why it was less.

use std::{fmt::Write as _, path::Path};

use engine::cache::{self, MissCause, RequestRow};
use serde::Serialize;
use session_tree::{Session, Tree};

use crate::{RunError, SessionChoice, sessions};

/// The requests of a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheTable {
    /// The session's id.
    pub session: String,
    /// The share of all input that was read from the cache, 0 to 1; nothing when no usage was reported.
    pub hit_rate: Option<f64>,
    /// The requests in their order.
    pub requests: Vec<RequestRow>,
}

/// Reads the requests of a session, which cannot be a new one: then it is the last.
///
/// # Errors
/// When the session is not found or its file cannot be read.
pub fn cache_table(data: &Path, cwd: &Path, session: &SessionChoice) -> Result<CacheTable, RunError> {
    let path = match session {
        SessionChoice::Named(given) => sessions::find(data, given)?,
        SessionChoice::Last | SessionChoice::New => sessions::last(data, &cwd.to_string_lossy())?,
    };
    let tree: Tree = Session::read(&path)?.into();
    let requests = cache::requests(&tree);
    Ok(CacheTable { session: tree.header().id().to_owned(), hit_rate: cache::hit_rate(&requests), requests })
}

impl CacheTable {
    /// The table for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.requests.is_empty() {
            return "The session has no requests yet.\n".to_owned();
        }
        let mut text = String::from("REQUEST   INPUT  EXPECTED    READ  WRITTEN  CAUSE\n");
        for row in &self.requests {
            let usage = row.usage.unwrap_or_default();
            let reported = |tokens: u64| row.usage.map_or_else(|| "-".to_owned(), |_| tokens.to_string());
            let written = usage.cache_write_5m + usage.cache_write_1h;
            let _ = writeln!(
                text,
                "{:>7}  {:>6}  {:>8}  {:>6}  {:>7}  {}",
                row.n.to_string(),
                reported(usage.prompt_tokens()),
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
        text
    }
}

/// Why less was read than there was, or why the request failed.
fn why(row: &RequestRow) -> String {
    match (&row.cause, &row.failure) {
        (Some(cause), _) => match cause {
            MissCause::ModelChanged => "another model answers".to_owned(),
            MissCause::PrefixChanged { block, .. } => format!("the request differs from block {block} on"),
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
