//! The service: configuration, wiring, approvals, runs, prompts, findings, notifications and health.
//!
//! Besides the command line, it is the only crate that reads the clock and the environment. [`serve`] starts
//! all parts, with [`ingest`], the one thread that commits, and stops them in order.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod actions;
pub mod answer_tokens;
pub mod approvals;
pub mod clock;
pub mod config;
pub mod control;
pub mod daemons;
pub mod deliveries;
pub mod endpoint;
pub mod environment;
pub mod findings;
mod handoff;
pub mod health;
pub mod linker;
mod mcp_endpoint;
pub mod notices;
pub mod open_files;
mod otlp;
pub mod paths;
pub mod playback;
pub mod prompts;
pub mod push;
pub mod recording;
pub mod redacted_only;
pub mod roots;
pub mod runs;
pub mod search;
pub mod serve;
pub mod session_starter;
pub mod settings;
mod stored_cursors;
pub mod supervisor;
pub mod telemetry;
