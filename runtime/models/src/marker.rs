//! Cache markers: the positions up to which a vendor is asked to cache (`cache_control` of Anthropic).

/// Maximum number of markers per request: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>, "up
/// to 4 cache breakpoints"; a fifth is answered with 400.
pub const MAX_MARKERS: usize = 4;

/// How long a vendor is asked to cache a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheTtl {
    /// Five minutes after the last use.
    FiveMinutes,
    /// An hour after the last use.
    Hour,
}

/// The position of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkerPlace {
    /// At the end of the system prompt, which comes after the tools and so covers them.
    System,
    /// At the last block of an entry that can have one; entries are counted from 0 in the order they were pushed.
    Entry(usize),
    /// At a block of an entry, both counted from 0, or at the nearest preceding block that can have one.
    Block {
        /// The entry.
        entry: usize,
        /// The block in the entry.
        block: usize,
    },
}

/// A marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Marker {
    /// The position.
    pub place: MarkerPlace,
    /// The time to live.
    pub ttl: CacheTtl,
}

/// Why markers cannot be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// There are more than a request may have.
    #[error("{0} markers; a request has at most {MAX_MARKERS}")]
    TooMany(usize),
    /// Anthropic requires markers for an hour to precede those for five minutes.
    #[error("a one-hour cache marker comes after a five-minute one")]
    HourAfterFiveMinutes,
    /// There is no such entry.
    #[error("a cache marker refers to entry {0}, which does not exist")]
    NoEntry(usize),
}

impl CacheTtl {
    /// The text inserted into a block.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::FiveMinutes => r#","cache_control":{"type":"ephemeral"}"#,
            Self::Hour => r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
        }
    }
}
