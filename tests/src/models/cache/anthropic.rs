//! Anthropic's cache: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>.
//!
//! Entries are written only at a marker, and only above the minimum. For each marker the cache is searched there and at
//! up to 20 blocks before it. A read extends the lifetime of an entry by the time for which it was written.

use std::collections::HashMap;

use super::{Block, CacheUsage, Ttl, chain};

/// Number of blocks before a marker at which the cache is searched.
const LOOKBACK: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The entries: their expiry and the lifetime with which they were written.
    kept: HashMap<[u8; 32], (u64, Ttl)>,
}

impl Cache {
    pub(super) fn serve(&mut self, blocks: &[Block], minimum: u64, now_ms: u64) -> CacheUsage {
        self.kept.retain(|_, (until, _)| *until > now_ms);
        let chain = chain(blocks);
        let all = chain.last().map_or(0, |(_, tokens)| *tokens);
        let markers: Vec<(usize, Ttl)> =
            blocks.iter().enumerate().filter_map(|(at, block)| Some((at, block.marker?))).collect();
        // Starting from the last marker, the first entry found is the longest.
        let found = markers.iter().rev().find_map(|(at, _)| {
            (at.saturating_sub(LOOKBACK)..=*at).rev().find(|at| self.kept.contains_key(&chain[*at].0))
        });
        let read = found.map_or(0, |at| chain[at].1);
        if let Some((until, ttl)) = found.and_then(|at| self.kept.get_mut(&chain[at].0)) {
            *until = now_ms + ttl.ms();
        }
        let (mut usage, mut from) = (CacheUsage { read, ..CacheUsage::default() }, read);
        for (at, ttl) in markers {
            let (hash, to) = chain[at];
            if to < minimum {
                continue;
            }
            match ttl {
                Ttl::FiveMinutes => usage.write_5m += to.saturating_sub(from),
                Ttl::Hour => usage.write_1h += to.saturating_sub(from),
            }
            from = from.max(to);
            // Entries before the one that was read were read with it and get the same lifetime; an entry written for an
            // hour keeps that.
            let kept = self.kept.entry(hash).or_insert((now_ms, ttl));
            *kept = (now_ms + kept.1.ms().max(ttl.ms()), if kept.1 == Ttl::Hour { Ttl::Hour } else { ttl });
        }
        usage.input = all - from;
        usage
    }
}
