//! Cache markers: the places up to which a vendor is asked to cache (`cache_control` of Anthropic).

/// Most markers of a request: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>, "up to 4 cache
/// breakpoints"; a fifth is answered with 400.
pub const MAX_MARKERS: usize = 4;

/// How long a vendor is asked to keep a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheTtl {
    /// Five minutes, from the last use on.
    FiveMinutes,
    /// An hour, from the last use on.
    Hour,
}

/// Where a marker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkerPlace {
    /// At the end of the system prompt, which comes after the tools and so covers them.
    System,
    /// At the last block that can bear one of an entry, counted from 0 in the order they were pushed.
    Entry(usize),
    /// At a block of an entry, both counted from 0, or the nearest before it that can bear one.
    Block {
        /// The entry.
        entry: usize,
        /// The block of it.
        block: usize,
    },
}

/// A marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Marker {
    /// Where.
    pub place: MarkerPlace,
    /// For how long.
    pub ttl: CacheTtl,
}

/// Why markers cannot be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// More than a request may have.
    #[error("{0} markers; a request has at most {MAX_MARKERS}")]
    TooMany(usize),
    /// Anthropic wants markers for an hour before those for five minutes.
    #[error("a marker for an hour stands behind one for five minutes")]
    HourAfterFiveMinutes,
    /// There is no such entry.
    #[error("a marker at entry {0}, which was not pushed")]
    NoEntry(usize),
}

impl CacheTtl {
    /// What is written into a block.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::FiveMinutes => r#","cache_control":{"type":"ephemeral"}"#,
            Self::Hour => r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
        }
    }
}
