//! The contents of the provider's cache that earlier requests of a session left, folded from their entries.

use std::collections::VecDeque;

use serde::Serialize;

use crate::{
    cache::{CacheRules, digest::ChainPoint},
    entries::{EndedRequest, RequestRecord, SentRequest},
    ids::RequestNumber,
    input::AnswerUsage,
};

/// Maximum number of prefixes remembered.
const WRITES: usize = 64;
/// Maximum number of pauses between requests from which the time to live is chosen.
const GAPS: usize = 20;
/// Longest pause that the short time to live covers, in milliseconds.
const SHORT_MS: i64 = 5 * 60 * 1000;
/// Longest pause that the long time to live covers, in milliseconds.
const LONG_MS: i64 = 60 * 60 * 1000;

/// A prefix that a request left in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CacheWrite {
    pub(super) model: String,
    pub(super) point: ChainPoint,
    /// Its approximate number of tokens if only marked prefixes are cached.
    pub(super) cached_tokens: u64,
    /// Its approximate number of tokens if everything is cached.
    pub(super) prompt_tokens: u64,
    /// When it was last written or read.
    pub(super) at_ms: i64,
    pub(super) is_long: bool,
}

/// The last request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnsweredRequest {
    pub(super) model: String,
    pub(super) points: Vec<ChainPoint>,
    pub(super) at_ms: i64,
    bytes: u64,
    cached_tokens: u64,
    pub(super) prompt_tokens: u64,
}

/// How long the provider is asked to cache the system prompt and the tools, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LongCacheChoice {
    /// Whether it is an hour instead of five minutes.
    pub is_long: bool,
    /// Number of recent pauses between requests on which the choice is based.
    pub pauses: usize,
    /// Number of pauses longer than five minutes.
    pub above_5m: u32,
    /// Number of pauses longer than an hour.
    pub above_1h: u32,
}

/// The requests of a session, reduced to the data that matters for the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheHistory {
    /// The request in progress and when it was sent.
    sent: Option<(SentRequest, i64)>,
    sent_at_ms: Option<i64>,
    last: Option<AnsweredRequest>,
    writes: VecDeque<CacheWrite>,
    gaps_ms: VecDeque<i64>,
    /// The total usage of all requests.
    total: AnswerUsage,
}

impl CacheHistory {
    /// Applies a `capture.request` entry.
    pub(crate) fn apply(&mut self, record: RequestRecord, at_ms: i64) {
        match record {
            RequestRecord::Sent(sent) => {
                if let Some(before_ms) = self.sent_at_ms.replace(at_ms) {
                    if self.gaps_ms.len() == GAPS {
                        self.gaps_ms.pop_front();
                    }
                    self.gaps_ms.push_back(at_ms - before_ms);
                }
                self.sent = Some((sent, at_ms));
            }
            RequestRecord::Ended(ended) => self.end(&ended),
        }
    }

    fn end(&mut self, ended: &EndedRequest) {
        let Some((sent, at_ms)) = self.sent.take_if(|(sent, _)| sent.n == ended.n) else { return };
        let Some(usage) = ended.usage else { return };
        self.total = sum(&self.total, &usage);
        let model = format!("{}/{}", sent.provider, sent.model);
        if usage.cache_read > 0 {
            for write in self.writes.iter_mut().filter(|w| w.model == model && Some(w.point.at) == sent.predicted.hit) {
                write.at_ms = at_ms;
            }
        }
        let marked_bytes = sent.chain.iter().filter(|p| p.is_marked).map(|p| p.bytes).max().unwrap_or_default();
        for point in &sent.chain {
            self.writes.retain(|w| w.point.hash != point.hash || w.model != model);
            if self.writes.len() == WRITES {
                self.writes.pop_front();
            }
            self.writes.push_back(CacheWrite {
                model: model.clone(),
                point: *point,
                cached_tokens: if point.is_marked { part(usage.cached_tokens(), point.bytes, marked_bytes) } else { 0 },
                prompt_tokens: part(usage.prompt_tokens(), point.bytes, sent.bytes),
                at_ms,
                is_long: point.is_long,
            });
        }
        self.last = Some(AnsweredRequest {
            model,
            points: sent.chain,
            at_ms,
            bytes: sent.bytes,
            cached_tokens: usage.cached_tokens(),
            prompt_tokens: usage.prompt_tokens(),
        });
    }

    /// Whether the request in progress is this one, and requests a summary.
    pub(crate) fn is_summary(&self, request: RequestNumber) -> bool {
        self.sent.as_ref().is_some_and(|(sent, _)| sent.n == request && sent.is_summary)
    }

    pub(super) fn writes(&self) -> &VecDeque<CacheWrite> {
        &self.writes
    }

    pub(super) fn last(&self) -> Option<&AnsweredRequest> {
        self.last.as_ref()
    }

    /// The total usage of all requests, without prices.
    #[must_use]
    pub fn total(&self) -> &AnswerUsage {
        &self.total
    }

    /// Number of requests in the last `within_ms` milliseconds, limited by the number of pauses remembered.
    pub(super) fn recent(&self, within_ms: i64, now_ms: i64) -> usize {
        let Some(last_ms) = self.sent_at_ms else { return 0 };
        let ages = self.gaps_ms.iter().rev().scan(now_ms - last_ms, |age, gap| {
            *age += gap;
            Some(*age)
        });
        std::iter::once(now_ms - last_ms).chain(ages).take_while(|age| *age < within_ms).count()
    }

    /// Tokens the last request left in the cache.
    pub(super) fn held(&self, rules: &CacheRules) -> u64 {
        let Some(last) = &self.last else { return 0 };
        match rules {
            CacheRules::Markers { .. } => last.cached_tokens,
            CacheRules::Prefix { min_tokens, step, .. } => {
                let whole = last.prompt_tokens / (*step).max(1) * *step;
                if whole < *min_tokens { 0 } else { whole }
            }
            CacheRules::None => 0,
        }
    }

    /// Estimates the tokens in a number of bytes from the ratio the provider reported for the last request.
    pub(super) fn tokens_of(&self, bytes: u64, bytes_per_token: u64) -> u64 {
        match &self.last {
            Some(last) if last.prompt_tokens > 0 => part(last.prompt_tokens, bytes, last.bytes),
            Some(_) | None => bytes / bytes_per_token,
        }
    }

    /// Whether caching the system prompt for an hour would have cost less over the recent pauses between requests.
    #[must_use]
    pub fn is_long_cache_cheaper(&self) -> bool {
        self.kept_by().is_long
    }

    /// How long to cache the system prompt, and the pauses that determine it.
    ///
    /// In units of the price of an uncached token: with five minutes, each longer pause costs a write (1.25) instead of
    /// a read (0.1). With an hour, only pauses above an hour do, and the write costs 2.
    #[must_use]
    pub fn kept_by(&self) -> LongCacheChoice {
        let misses = |ttl: i64| u32::try_from(self.gaps_ms.iter().filter(|gap| **gap > ttl).count()).unwrap_or(0);
        let cost = |misses: u32, write: f64| f64::from(1 + misses) * write - f64::from(misses) * 0.1;
        let (above_5m, above_1h) = (misses(SHORT_MS), misses(LONG_MS));
        let is_long = cost(above_1h, 2.0) < cost(above_5m, 1.25);
        LongCacheChoice { is_long, pauses: self.gaps_ms.len(), above_5m, above_1h }
    }
}

fn part(tokens: u64, bytes: u64, of: u64) -> u64 {
    if of == 0 {
        return 0;
    }
    let scaled = u128::from(tokens) * u128::from(bytes) / u128::from(of);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn sum(a: &AnswerUsage, b: &AnswerUsage) -> AnswerUsage {
    AnswerUsage {
        input: a.input.saturating_add(b.input),
        cache_read: a.cache_read.saturating_add(b.cache_read),
        cache_write_5m: a.cache_write_5m.saturating_add(b.cache_write_5m),
        cache_write_1h: a.cache_write_1h.saturating_add(b.cache_write_1h),
        output: a.output.saturating_add(b.output),
        reasoning: a.reasoning.saturating_add(b.reasoning),
        cost_nano_usd: a.cost_nano_usd.unwrap_or(0).checked_add(b.cost_nano_usd.unwrap_or(0)),
    }
}
