//! The requests of a session as a table: the predicted and the actual use of the cache, and the cause of a shortfall.

use serde::Serialize;
use session_tree::{FailureKind, Tree};

use crate::{
    cache::{CachePrediction, MissCause},
    entries::{EndedRequest, RequestRecord, RuntimeEntry, SentRequest},
    ids::RequestNumber,
    input::AnswerUsage,
};

/// A request of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRow {
    /// Its number.
    pub n: RequestNumber,
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
    pub usage: Option<AnswerUsage>,
    /// Why fewer tokens were read than were available.
    pub cause: Option<MissCause>,
    /// Why it failed.
    pub failure: Option<FailureKind>,
    /// Its duration, in milliseconds.
    pub total_ms: Option<u64>,
    /// Whether it has cache marks.
    #[serde(skip)]
    pub has_marks: bool,
}

impl RequestRow {
    fn of(sent: SentRequest, at_ms: Option<i64>) -> Self {
        Self {
            has_marks: sent.chain.iter().any(|point| point.is_marked),
            n: sent.n,
            at_ms,
            provider: sent.provider,
            model: sent.model,
            retries: sent.retries,
            bytes: sent.bytes,
            predicted: sent.predicted,
            usage: None,
            cause: None,
            failure: None,
            total_ms: None,
        }
    }

    fn end(&mut self, ended: EndedRequest) {
        self.usage = ended.usage;
        self.cause = ended.cause;
        self.failure = ended.failure;
        self.total_ms = Some(ended.total_ms);
    }
}

/// The requests of a session on all branches, in the order of the file.
#[must_use]
pub fn requests(tree: &Tree) -> Vec<RequestRow> {
    let mut rows: Vec<RequestRow> = Vec::new();
    for entry in tree.entries() {
        match RequestRecord::of(entry) {
            Some(RequestRecord::Sent(sent)) => rows.push(RequestRow::of(sent, entry.at_ms())),
            Some(RequestRecord::Ended(ended)) => {
                if let Some(row) = rows.iter_mut().rev().find(|row| row.n == ended.n) {
                    row.end(ended);
                }
            }
            None => {}
        }
    }
    rows
}

/// The share of the input that was read from the cache, 0 to 1; `None` without input.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
pub fn hit_rate(rows: &[RequestRow]) -> Option<f64> {
    let usages = || rows.iter().filter_map(|row| row.usage);
    let all: u64 = usages().map(|usage| usage.prompt_tokens()).sum();
    let read: u64 = usages().map(|usage| usage.cache_read).sum();
    (all > 0).then(|| read as f64 / all as f64)
}
