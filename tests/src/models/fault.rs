//! What a server does instead of answering well.

use std::time::Duration;

/// A fault of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends after this many bytes of the stream.
    CutAfter(usize),
    /// Some words, then nothing, and the connection stays.
    Stall,
    /// Nothing but pings from the beginning on.
    PingOnly,
    /// Some words, then nothing but pings.
    PingsAfterWords,
    /// Some words, then an error in the stream.
    ErrorInStream,
    /// Status 200 with a page of HTML, as portals and proxies answer.
    Html,
    /// A byte at a time, with a pause after each.
    Drip(Duration),
    /// A call whose input ends in the middle, in an answer that is complete otherwise.
    HalfInput,
    /// Two calls with the same id.
    SameIds,
    /// A text of this many bytes.
    Flood(usize),
}

impl Fault {
    /// Whether the answer ends by itself.
    #[must_use]
    pub fn ends(&self) -> bool {
        !matches!(self, Self::Stall | Self::PingOnly | Self::PingsAfterWords)
    }
}
