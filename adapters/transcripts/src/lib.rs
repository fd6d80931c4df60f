//! The agents' transcripts: finding, watching, tailing and decoding the files that agents write, live
//! registries among them.
//!
//! It hands out [`events::NewEvent`]s and decides nothing: what is new, what it means for a session and
//! what is stored is decided by its callers. Start at [`decode`] for the interface of an agent's format,
//! at [`tail`] for how bytes become records, at [`collect`] for when files are looked at.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod claude;
pub mod codex;
pub mod collect;
pub mod decode;
pub mod gemini;
pub mod pi;
pub mod providers;
pub mod tail;
pub mod watch;

use agents::Agent;
use events::Provider;

/// Whether a path is a session's transcript, and not a file that tells something else about it.
#[must_use]
pub fn is_transcript(provider: Provider, path: &str) -> bool {
    match Agent::of(provider) {
        Some(agent) => agent.transcripts.path.matches(path),
        // Our own agent's, or nobody knows whose.
        None => provider == Provider::Unknown || path.ends_with(".jsonl"),
    }
}
