//! Sends sessions to the user's OpenTelemetry collector while they run: traces of turns and calls, metrics of states
//! and waits.
//!
//! The log is the queue. The thread of the [`Exporter`] reads committed events after a position, sends them, and saves
//! the position in a file. An unreachable collector is retried; data older than [`BACKLOG_MS`] by then is dropped and
//! counted. No other part waits for this thread: [`OtlpExport::committed`] only stores a number.
//!
//! Does not define the format ([`export::otlp`]), and connects only to the endpoint of the
//! [`OtlpSettings`](home::config::OtlpSettings), which is empty by default. `spans` finds ended items that were not
//! sent, `sender` sends.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod counts;
mod exporter;
mod position;
mod sender;
mod spans;
#[cfg(test)]
mod tests;

pub use counts::ExportCounts;
pub use exporter::{Exporter, ExporterParts, OtlpExport, SessionCounts, THREAD};

/// Age from which unsent data is dropped, ms.
pub const BACKLOG_MS: i64 = 24 * 60 * 60 * 1_000;
