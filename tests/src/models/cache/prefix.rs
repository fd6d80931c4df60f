//! Caches without markers: OpenAI's and Gemini's. They store prefixes of prompts in steps.
//!
//! OpenAI: <https://platform.openai.com/docs/guides/prompt-caching>: from 1,024 tokens on in steps of 128; requests are
//! routed by a hash of the first 256 tokens and `prompt_cache_key`; above about 15 requests a minute for one such pair
//! some go to other machines; a prefix is kept for 5 to 10 minutes after its last use: here 5. For Gemini's implicit
//! caching only the minimum is documented; the steps and the time are copied from OpenAI.

use std::collections::HashMap;

use super::{Block, CacheUsage, MINUTE_MS, chain};
use crate::models::Api;

/// Tokens per step.
const STEP: usize = 128;
/// Bytes per token.
const TOKEN: usize = 4;
/// Number of leading tokens by which requests are routed.
const ROUTED: usize = 256;
/// Requests per minute that one machine serves.
const PER_MINUTE: usize = 15;
/// How long a prefix is kept after its last use.
const KEPT_MS: u64 = 5 * MINUTE_MS;

#[derive(Debug)]
pub(super) struct Rules {
    pub(super) minimum: u64,
    /// Whether writes are billed.
    pub(super) writes: bool,
}

/// The caches of all machines.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// When each prefix was last used on each machine.
    used: HashMap<(Machine, [u8; 32]), u64>,
    /// The times of requests by route.
    requests: HashMap<[u8; 32], Vec<u64>>,
}

/// A route, and the number of a machine in it.
type Machine = ([u8; 32], usize);

impl Cache {
    pub(super) fn serve(&mut self, key: &str, blocks: &[Block], rules: &Rules, now_ms: u64) -> CacheUsage {
        let prompt: String = blocks.iter().map(|block| block.text.as_str()).collect();
        let bytes = prompt.as_bytes();
        let all = (bytes.len() as u64).div_ceil(TOKEN as u64);
        let mut route = blake3::Hasher::new();
        route.update(key.as_bytes()).update(&bytes[..bytes.len().min(ROUTED * TOKEN)]);
        let route = *route.finalize().as_bytes();
        let times = self.requests.entry(route).or_default();
        times.retain(|at| *at + MINUTE_MS > now_ms);
        let machine = (route, times.len() / PER_MINUTE);
        times.push(now_ms);
        let mut hasher = blake3::Hasher::new();
        let steps: Vec<[u8; 32]> = bytes
            .chunks_exact(STEP * TOKEN)
            .map(|step| {
                hasher.update(step);
                *hasher.finalize().as_bytes()
            })
            .collect();
        let is_kept = |step: &&[u8; 32]| self.used.get(&(machine, **step)).is_some_and(|used| used + KEPT_MS > now_ms);
        let known = (steps.iter().take_while(is_kept).count() * STEP) as u64;
        let read = if known >= rules.minimum { known } else { 0 };
        let whole = (steps.len() * STEP) as u64;
        if whole >= rules.minimum {
            self.used.extend(steps.into_iter().map(|step| ((machine, step), now_ms)));
        }
        let write_5m = if rules.writes && whole >= rules.minimum { whole.saturating_sub(read) } else { 0 };
        CacheUsage { input: all - read - write_5m, read, write_5m, write_1h: 0 }
    }
}

/// The best possible read: every prefix of an earlier prompt, block by block, as long as a cache with the longest
/// requested lifetime would keep it.
#[derive(Debug, Default)]
pub(super) struct Best {
    /// By prefix: the expiry, and the lifetime that each use renews.
    kept: HashMap<[u8; 32], (u64, u64)>,
}

impl Best {
    pub(super) fn serve(&mut self, api: Api, blocks: &[Block], minimum: u64, now_ms: u64) -> u64 {
        let mut chain = chain(blocks);
        if api != Api::Anthropic {
            // Caches without markers do not use blocks: only the length of the prompt up to that point counts.
            let mut bytes = 0;
            for ((_, tokens), block) in chain.iter_mut().zip(blocks) {
                bytes += block.text.len();
                *tokens = (bytes / TOKEN) as u64;
            }
        }
        let longest = blocks.iter().filter_map(|block| block.marker).map(super::Ttl::ms).max();
        let keep = longest.unwrap_or(KEPT_MS);
        let is_kept = |(hash, _): &&([u8; 32], u64)| self.kept.get(hash).is_some_and(|(until, _)| *until > now_ms);
        let read = chain.iter().take_while(is_kept).last().map_or(0, |(_, tokens)| *tokens);
        for (hash, tokens) in &chain {
            if *tokens >= minimum {
                let (_, before) = self.kept.get(hash).copied().unwrap_or((0, 0));
                let keep = keep.max(before);
                self.kept.insert(*hash, (now_ms + keep, keep));
            } else {
                // Too short to be read alone, but part of longer prefixes.
                self.kept.insert(*hash, (u64::MAX, keep));
            }
        }
        let read = if read >= minimum { read } else { 0 };
        match api {
            Api::Anthropic => read,
            // Reads are rounded down to whole steps.
            Api::Responses | Api::Chat | Api::Gemini => read / STEP as u64 * STEP as u64,
        }
    }
}
