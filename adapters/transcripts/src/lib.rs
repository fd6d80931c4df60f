//! Decoders for the agents' transcripts and live registries: the files an agent writes, and the meaning of their
//! records. One module per agent.
//!
//! Reads no files except those a recognizer must inspect, and makes no decisions: [`tailer`] follows the files; the
//! callers decide what is new, what it means for a session and what is stored. Start at [`providers`] for the files
//! that are read, at [`tailer::decode`] for the interface of a decoder.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod claude;
pub mod codex;
mod cost;
pub mod gemini;
pub mod opencode;
pub mod pi;
pub mod providers;
pub mod qwen;
mod rewinds;

use agents::Agent;
use events::Provider;

/// Whether a path is a session's transcript and not another file about the session.
#[must_use]
pub fn is_transcript(provider: Provider, path: &str) -> bool {
    match Agent::of(provider) {
        Some(agent) => agent.transcripts.path.matches(path),
        // Capture's own agent, or an unknown one.
        None => provider == Provider::Unknown || path.ends_with(".jsonl"),
    }
}
