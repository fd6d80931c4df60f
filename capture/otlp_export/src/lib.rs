//! Sends sessions to the user's collector of OpenTelemetry while they run: traces of turns and calls, metrics of states
//! and waits.
//!
//! The log is the queue. The [`Exporter`]'s thread reads what was committed behind a position, sends it, and notes the
//! position in a file; a collector that is away is tried again, and what is older than [`BACKLOG_MS`] by then is dropped
//! and counted. Nothing waits for this thread: [`OtlpExport::committed`] stores a number.
//!
//! Decides nothing about the form ([`export::otlp`]) and connects to nothing but the endpoint of the [`OtlpSettings`](home::config::OtlpSettings),
//! of which the default has none. `spans` finds what is over and was not sent, `sender` sends.

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

/// Age at which what was not sent is dropped, ms.
pub const BACKLOG_MS: i64 = 24 * 60 * 60 * 1_000;
