//! Every foreign format and source: discovery, watching, tailing and decoding of agents' files.
//!
//! The only crate that knows what a provider's files look like. It hands out [`events::NewEvent`]s
//! and decides nothing: what is new, what it means for a session and what is stored is decided by
//! its callers. Start at [`decode`] for the interface of a provider, at `tail` for how bytes
//! become records.

pub mod codex;
pub mod decode;
pub mod gemini;
