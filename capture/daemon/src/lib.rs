//! The service: wiring, approvals, runs, prompts, findings, notifications and health.
//!
//! [`serve`] starts all parts, including [`ingest`], the only thread that commits, and stops them in order. This crate
//! must not print anything or parse a command line; only `capture serve` imports it.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod actions;
pub mod answer_tokens;
pub mod approvals;
pub mod automatic_prompts;
mod clocks;
pub mod codex_daemons;
pub mod control;
pub mod deliveries;
pub mod findings;
mod handoff;
pub mod health;
pub mod linker;
mod mcp_endpoint;
pub mod notices;
pub mod open_files;
mod otlp;
pub mod playback;
pub mod prompts;
pub mod push;
pub mod runs;
pub mod search;
pub mod serve;
pub mod session_starter;
pub mod settings;
mod stored_cursors;
pub mod supervisor;
pub mod telemetry;
mod tokens;
