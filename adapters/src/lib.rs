//! Every foreign format and source: discovery, watching, tailing and decoding of agents' files.
//!
//! The only crate that knows what a provider's files look like. It hands out [`events::NewEvent`]s
//! and decides nothing: what is new, what it means for a session and what is stored is decided by
//! its callers. Start at [`decode`] for the interface of a provider, at `tail` for how bytes
//! become records.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod agents;
pub mod borrowed;
pub mod claim;
pub mod claude;
pub mod codex;
pub mod codex_daemon;
pub mod collect;
pub mod decode;
pub mod delivery;
pub mod gemini;
pub mod hooks;
pub mod host;
pub mod local_socket;
pub mod pi;
pub mod process;
pub mod protocol;
pub mod providers;
pub mod screen;
pub mod tail;
pub mod telemetry;
pub mod wake;
pub mod watch;

use events::Provider;

/// Whether a path is a session's transcript, and not a file that tells something else about it.
#[must_use]
pub fn is_transcript(provider: Provider, path: &str) -> bool {
    match provider {
        Provider::Claude | Provider::Codex | Provider::Pi | Provider::Capture => path.ends_with(".jsonl"),
        Provider::Gemini => path.contains("/chats/"),
        Provider::Unknown => true,
    }
}
