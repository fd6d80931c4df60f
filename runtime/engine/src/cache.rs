//! What the provider's prompt cache is expected to do, and why it did less.
//!
//! Before a request its blocks are compared with those of requests before: [`forecast`]. Afterwards [`CacheForecast::cause`]
//! compares what was read with what the request before had left. Everything needed of earlier requests is in their
//! `capture.request` entries ([`CacheHistory`]), so that a session that was opened again knows it too.
//!
//! Rules of providers come in as [`CacheRules`]; nothing here knows a provider.

mod digest;
mod history;
mod report;

pub use digest::{BlockDigest, BlockOrigin, ChainPoint, RequestDigest};
pub use history::{CacheHistory, LongCacheChoice};
pub use report::{RequestRow, hit_rate, requests};

use serde::{Deserialize, Serialize};

use crate::input::AnswerUsage;

/// Bytes per token until a provider has said how many tokens a request had.
const BYTES_PER_TOKEN: u64 = 4;
/// Shortfalls up to this many tokens are not explained,
const UNEXPLAINED_TOKENS: u64 = 1024;
/// unless they are more than this part of what was there, in percent.
const UNEXPLAINED_PERCENT: u64 = 2;

/// Requests a minute of one session that a provider without marks sends to one machine.
const REQUESTS_PER_MINUTE: usize = 15;
/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;

/// How a provider caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheRules {
    /// Where requests mark blocks: the prefix up to a mark is written, and looked up there and some blocks before.
    Markers {
        /// Blocks before a mark at which an earlier write is still found.
        lookback: usize,
        /// Prefixes below this number of tokens are not cached.
        min_tokens: u64,
        /// Milliseconds for which an entry is kept after its last use.
        ttl_ms: i64,
        /// The same for entries that are to be kept long.
        long_ttl_ms: i64,
    },
    /// By itself, wherever a request begins as one before.
    Prefix {
        /// Prefixes below this number of tokens are not cached.
        min_tokens: u64,
        /// Prefixes are cached in multiples of this number of tokens.
        step: u64,
        /// Milliseconds for which an entry is kept after its last use, about.
        ttl_ms: i64,
    },
    /// Not at all.
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

/// What is expected of the cache, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePrediction {
    /// Tokens that are read.
    pub read: u64,
    /// Tokens that are written.
    pub write: u64,
    /// Number of blocks of the prefix that is read; nothing when none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<usize>,
}

/// Why less was read from the cache than there was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum MissCause {
    /// Another model answers; each has a cache of its own.
    ModelChanged,
    /// The request does not begin as the one before.
    PrefixChanged {
        /// The first block that differs, from 0; of a session that was opened again, the first that may.
        block: usize,
        /// Where that block comes from.
        origin: BlockOrigin,
    },
    /// Too much time has passed.
    TtlPassed {
        /// How much, in milliseconds.
        gap_ms: i64,
    },
    /// What was written lies too many blocks before the next mark.
    LookbackExceeded {
        /// How many.
        blocks: usize,
    },
    /// The prefix is too short to be cached.
    BelowMinimum {
        /// Its tokens.
        tokens: u64,
        /// How many there must be.
        minimum: u64,
    },
    /// The provider dropped it early.
    EvictedByVendor,
    /// The request went to a machine of the provider that does not have it.
    RoutedElsewhere,
}

/// The expectation for a request that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheForecast {
    /// What is expected.
    pub prediction: CachePrediction,
    /// What the request before left in the cache, in tokens.
    pub held: u64,
    /// Why not all of that can be read.
    excuse: Option<MissCause>,
    /// Whose fault it is when there is no excuse.
    otherwise: Option<MissCause>,
}

/// What to expect of a request. `chain` is that of the request before, when it is known whole.
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
            // Of the request before every block counts, not only those that are in its entry.
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
        // <https://platform.openai.com/docs/guides/prompt-caching>: above that rate requests go to other machines.
        CacheRules::Prefix { .. } if history.recent(MINUTE_MS, now_ms) >= REQUESTS_PER_MINUTE => {
            Some(MissCause::RoutedElsewhere)
        }
        CacheRules::Prefix { .. } => Some(MissCause::EvictedByVendor),
        CacheRules::None => None,
    };
    CacheForecast { prediction, held, excuse, otherwise }
}

/// What is already known to stand between the request and what the one before left.
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
    // What the request before could be read again up to.
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
    /// Why less was read than there was; nothing when enough was read.
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
