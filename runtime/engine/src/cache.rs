//! Predicts the use of the provider's prompt cache and explains shortfalls.
//!
//! Before a request, [`forecast`] compares its blocks with the blocks of earlier requests. Afterwards
//! [`CacheForecast::cause`] compares the tokens read with the tokens the previous request left. Everything it needs
//! about earlier requests is in their `capture.request` entries ([`CacheHistory`]), so a reopened session has it too.
//!
//! The caller passes the provider's rules as [`CacheRules`]; this module contains no provider's name.

mod digest;
mod history;
mod report;

pub use digest::{BlockDigest, BlockOrigin, ChainPoint, RequestDigest};
pub use history::{CacheHistory, LongCacheChoice};
pub use report::{RequestRow, hit_rate, requests};

use serde::{Deserialize, Serialize};

use crate::input::AnswerUsage;

/// Bytes per token, assumed until a provider has reported a token count.
const BYTES_PER_TOKEN: u64 = 4;
/// Shortfalls of up to this many tokens are not explained if they are also within [`UNEXPLAINED_PERCENT`].
const UNEXPLAINED_TOKENS: u64 = 1024;
/// Shortfalls above this percentage of the available tokens are always explained.
const UNEXPLAINED_PERCENT: u64 = 2;

/// Requests per minute of one session that a provider without marks routes to one machine.
const REQUESTS_PER_MINUTE: usize = 15;
/// Milliseconds in a minute.
const MINUTE_MS: i64 = 60_000;

/// How a provider caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheRules {
    /// Requests mark blocks: the provider stores the prefix up to a mark, and looks for entries at the mark and at some
    /// blocks before it.
    Markers {
        /// Number of blocks before a mark in which the provider finds an earlier write.
        lookback: usize,
        /// Prefixes below this number of tokens are not cached.
        min_tokens: u64,
        /// Time to live of an entry after its last use, in milliseconds.
        ttl_ms: i64,
        /// Time to live of an entry with the long time to live, in milliseconds.
        long_ttl_ms: i64,
    },
    /// The provider automatically caches prefixes that requests have in common.
    Prefix {
        /// Prefixes below this number of tokens are not cached.
        min_tokens: u64,
        /// Prefixes are cached in multiples of this number of tokens.
        step: u64,
        /// Approximate time to live of an entry after its last use, in milliseconds.
        ttl_ms: i64,
    },
    /// The provider does not cache.
    None,
}

impl CacheRules {
    fn min_tokens(&self) -> u64 {
        match self {
            Self::Markers { min_tokens, .. } | Self::Prefix { min_tokens, .. } => *min_tokens,
            Self::None => 0,
        }
    }

    fn is_fresh(&self, age_ms: i64, is_long: bool) -> bool {
        match self {
            Self::Markers { ttl_ms, long_ttl_ms, .. } => age_ms <= if is_long { *long_ttl_ms } else { *ttl_ms },
            Self::Prefix { ttl_ms, .. } => age_ms <= *ttl_ms,
            Self::None => false,
        }
    }
}

/// The expected use of the cache, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePrediction {
    /// Tokens read.
    pub read: u64,
    /// Tokens written.
    pub write: u64,
    /// Number of blocks in the prefix that is read; `None` if no prefix is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<usize>,
}

/// Why fewer tokens were read from the cache than were available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum MissCause {
    /// Another model answers; each model has its own cache.
    ModelChanged,
    /// The request does not begin with the previous request.
    PrefixChanged {
        /// The index of the first block that differs; in a reopened session, of the first block that may differ.
        block: usize,
        /// Where that block comes from.
        origin: BlockOrigin,
    },
    /// The time to live has passed.
    TtlPassed {
        /// Time since the previous request, in milliseconds.
        gap_ms: i64,
    },
    /// The previous write is too many blocks before the next mark.
    LookbackExceeded {
        /// The number of blocks between them.
        blocks: usize,
    },
    /// The prefix is too short to be cached.
    BelowMinimum {
        /// The number of tokens in the prefix.
        tokens: u64,
        /// The minimum number of tokens.
        minimum: u64,
    },
    /// The provider dropped the entry early.
    EvictedByVendor,
    /// The request went to a machine of the provider that does not have the entry.
    RoutedElsewhere,
}

/// The forecast for a request that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheForecast {
    /// The expected use of the cache.
    pub prediction: CachePrediction,
    /// Tokens the previous request left in the cache.
    pub held: u64,
    /// The reason not all of them can be read.
    excuse: Option<MissCause>,
    /// The cause to report for a shortfall without an excuse.
    otherwise: Option<MissCause>,
}

/// Predicts the use of the cache by a request. `chain` is the chain of the previous request, or empty if it is not
/// fully known.
#[must_use]
pub fn forecast(
    history: &CacheHistory,
    rules: &CacheRules,
    model: &str,
    digest: &RequestDigest,
    chain: &[u64],
    now_ms: i64,
) -> CacheForecast {
    let new = digest.chain();
    let bytes_until = digest.bytes_until();
    let total_bytes = bytes_until.last().copied().unwrap_or_default();
    let tokens_of = |bytes: u64| history.tokens_of(bytes, BYTES_PER_TOKEN);
    let candidates = history.writes().iter().filter(|w| w.model == model && new.get(w.point.at) == Some(&w.point.hash));
    let candidates: Vec<_> = candidates.collect();
    let fresh = |w: &&&history::CacheWrite| rules.is_fresh(now_ms - w.at_ms, w.is_long);
    let hit = match rules {
        CacheRules::Markers { lookback, min_tokens, .. } => {
            let marks: Vec<usize> = digest.marked().collect();
            let found = candidates.iter().filter(fresh).filter(|w| w.cached_tokens >= *min_tokens);
            let found = found.filter(|w| marks.iter().any(|m| w.point.at <= *m && m - w.point.at <= *lookback));
            found.map(|w| (w.point.at, w.cached_tokens)).max()
        }
        CacheRules::Prefix { min_tokens, step, .. } => {
            let recorded = candidates.iter().filter(fresh).map(|w| (w.point.at, w.prompt_tokens));
            // Every block of the previous request counts, not only those recorded in its entry.
            let last = history.last().filter(|l| l.model == model && rules.is_fresh(now_ms - l.at_ms, false));
            let common = new.iter().zip(chain).take_while(|(a, b)| a == b).count().saturating_sub(1);
            let common = last.filter(|_| common > 0).map(|_| (common, tokens_of(bytes_until[common])));
            let found = recorded.chain(common).max();
            found.map(|(at, tokens)| (at, tokens / (*step).max(1) * *step)).filter(|(_, t)| t >= min_tokens && *t > 0)
        }
        CacheRules::None => None,
    };
    let read = hit.map_or(0, |(_, tokens)| tokens);
    let write = match rules {
        CacheRules::Markers { min_tokens, .. } => {
            let end = digest.marked().max().map_or(0, |mark| tokens_of(bytes_until[mark]));
            if end < *min_tokens { 0 } else { end.saturating_sub(read) }
        }
        CacheRules::Prefix { .. } => tokens_of(total_bytes).saturating_sub(read),
        CacheRules::None => 0,
    };
    let prediction = CachePrediction { read, write, hit: hit.map(|(at, _)| at) };
    let held = history.held(rules);
    let excuse = excuse(history, rules, model, digest, &new, chain, held, &prediction, now_ms);
    let otherwise = match rules {
        CacheRules::Markers { .. } => Some(MissCause::EvictedByVendor),
        // <https://platform.openai.com/docs/guides/prompt-caching>: above that rate, requests go to other machines.
        CacheRules::Prefix { .. } if history.recent(MINUTE_MS, now_ms) >= REQUESTS_PER_MINUTE => {
            Some(MissCause::RoutedElsewhere)
        }
        CacheRules::Prefix { .. } => Some(MissCause::EvictedByVendor),
        CacheRules::None => None,
    };
    CacheForecast { prediction, held, excuse, otherwise }
}

/// The reason, if already known, that the request cannot read everything the previous one left.
#[expect(clippy::too_many_arguments, reason = "one comparison of two requests")]
fn excuse(
    history: &CacheHistory,
    rules: &CacheRules,
    model: &str,
    digest: &RequestDigest,
    new: &[u64],
    chain: &[u64],
    held: u64,
    prediction: &CachePrediction,
    now_ms: i64,
) -> Option<MissCause> {
    let last = history.last()?;
    if last.model != model {
        return Some(MissCause::ModelChanged);
    }
    let minimum = rules.min_tokens();
    if held == 0 && last.prompt_tokens < minimum {
        return Some(MissCause::BelowMinimum { tokens: last.prompt_tokens, minimum });
    }
    // The end of the prefix of the previous request that could be read again.
    let mut points = last.points.iter().filter(|point| point.is_marked || !matches!(rules, CacheRules::Markers { .. }));
    let end = points.next_back().map_or(0, |point| point.at);
    let changed = if chain.is_empty() {
        let same = |point: &&ChainPoint| new.get(point.at) == Some(&point.hash);
        let kept = last.points.iter().take_while(same).map(|point| point.at).last().unwrap_or(0);
        (kept < end).then_some(kept)
    } else {
        let common = new.iter().zip(chain).take_while(|(a, b)| a == b).count().saturating_sub(1);
        (common < end).then_some(common)
    };
    if let Some(block) = changed {
        let origin = digest.blocks.get(block).map_or(BlockOrigin::End, |b| b.origin.clone());
        return Some(MissCause::PrefixChanged { block, origin });
    }
    let gap_ms = now_ms - last.at_ms;
    if !rules.is_fresh(gap_ms, false) {
        return Some(MissCause::TtlPassed { gap_ms });
    }
    if prediction.read < held && prediction.hit != Some(end) {
        let mark = digest.marked().find(|mark| *mark >= end)?;
        return Some(MissCause::LookbackExceeded { blocks: mark - end });
    }
    None
}

impl CacheForecast {
    /// Why fewer tokens were read than were available; `None` if enough were read.
    #[must_use]
    pub fn cause(&self, usage: &AnswerUsage) -> Option<MissCause> {
        let missing = self.held.saturating_sub(usage.cache_read);
        let is_short = missing > UNEXPLAINED_TOKENS || missing * 100 > self.held * UNEXPLAINED_PERCENT;
        if is_short {
            return self.excuse.clone().or_else(|| self.otherwise.clone());
        }
        let is_uncacheable = usage.cached_tokens() == 0 && matches!(self.excuse, Some(MissCause::BelowMinimum { .. }));
        self.excuse.clone().filter(|_| is_uncacheable)
    }
}

#[cfg(test)]
mod tests;
