//! Encodes events as lines, in either version.

use crate::asciicast::{
    event::{CastEvent, CastVersion},
    header::CastHeader,
};

/// Encodes the lines of one file. Times are microseconds since its start. A time before that of the previous event is
/// replaced by the previous time.
#[derive(Debug, Clone)]
pub struct Encoder {
    version: CastVersion,
    last_us: u64,
}

impl Encoder {
    /// Creates an encoder for a new file.
    #[must_use]
    pub const fn new(version: CastVersion) -> Self {
        Self { version, last_us: 0 }
    }

    /// The first line, including the newline.
    #[must_use]
    pub fn header(&self, header: &CastHeader) -> String {
        let mut line = header.line(self.version);
        line.push('\n');
        line
    }

    /// The line of the next event, including the newline.
    pub fn event(&mut self, event: &CastEvent) -> String {
        let at_us = event.at_us.max(self.last_us);
        let shown = match self.version {
            CastVersion::V2 => at_us,
            CastVersion::V3 => at_us - self.last_us,
        };
        self.last_us = at_us;
        // Only strings, so the encoding cannot fail.
        let rest = serde_json::to_string(&(event.code.as_str(), &event.data)).unwrap_or_default();
        format!("[{}, {}\n", seconds(shown), rest.trim_start_matches('['))
    }
}

/// Seconds with three digits, or six if necessary.
fn seconds(us: u64) -> String {
    let (whole, rest) = (us / 1_000_000, us % 1_000_000);
    if rest.is_multiple_of(1000) { format!("{whole}.{:03}", rest / 1000) } else { format!("{whole}.{rest:06}") }
}
