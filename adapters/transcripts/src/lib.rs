//! Decoders for the agents' transcripts and live registries: which files an agent writes, and what their records mean.
//! One module for each agent.
//!
//! It reads no file but what a recognizer must look into, and decides nothing: files are followed by
//! [`tailer`]; what is new, what it means for a session and what is stored is decided by the callers.
//! Start at [`providers`] for which files are read, at [`tailer::decode`] for the interface of a decoder.

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

/// Whether a path is a session's transcript, and not a file that tells something else about it.
#[must_use]
pub fn is_transcript(provider: Provider, path: &str) -> bool {
    match Agent::of(provider) {
        Some(agent) => agent.transcripts.path.matches(path),
        // Our own agent's, or of unknown origin.
        None => provider == Provider::Unknown || path.ends_with(".jsonl"),
    }
}
