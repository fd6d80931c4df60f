//! Faults of a server that replace a normal answer.

use std::time::Duration;

/// A fault of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends after this many bytes of the stream.
    CutAfter(usize),
    /// Some words, then nothing, with the connection left open.
    Stall,
    /// Only pings from the beginning on.
    PingOnly,
    /// Some words, then only pings.
    PingsAfterWords,
    /// Some words, then an error in the stream.
    ErrorInStream,
    /// Status 200 with an HTML page, like the answers of portals and proxies.
    Html,
    /// One byte at a time, with a pause after each.
    Drip(Duration),
    /// A call whose input is truncated, in an otherwise complete answer.
    HalfInput,
    /// Two calls with the same id.
    SameIds,
    /// A text of this many bytes.
    Flood(usize),
}

impl Fault {
    /// Whether the answer ends on its own.
    #[must_use]
    pub fn ends(&self) -> bool {
        !matches!(self, Self::Stall | Self::PingOnly | Self::PingsAfterWords)
    }
}
