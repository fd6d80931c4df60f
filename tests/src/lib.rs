//! The harness of the end-to-end tests: recordings played in virtual time ([`world`]) and scored ([`score`]), recorded
//! terminals ([`terminal`]), the real program with a temporary data directory ([`program`]), a scripted daemon of Codex
//! ([`daemon`]), a user at a terminal ([`terminal_user`]), generated transcript lines ([`transcript`]) and sessions of Claude Code ([`claude_session`]), a small HTTP
//! client ([`http`]), receivers of notifications: a desktop ([`desktop`]) and a webhook server ([`receiver`]), a
//! simulated agent that speaks the agents' protocols ([`owned`]), scripted models ([`models`]), the real agents with
//! these models ([`live`]), and the public benchmark of the status ([`statusbench`]).
//!
//! Nothing here waits for a fixed time: virtual time is a number, and the real program is polled until a condition
//! holds ([`eventually`]), with a deadline.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc, reason = "a harness fails by panicking")]

pub mod advisorbench;
pub mod claude_session;
pub mod daemon;
pub mod desktop;
pub mod http;
pub mod live;
pub mod models;
pub mod observations;
pub mod owned;
pub mod program;
pub mod receiver;
pub mod recording;
pub mod rows;
pub mod score;
pub mod statusbench;
pub mod terminal;
pub mod terminal_user;
pub mod transcript;
pub mod world;

use std::time::{Duration, Instant};

/// How long the real program may take to reach a condition before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `ask` until it returns a value; `None` if it does not within `patience`.
pub fn within<T>(patience: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(15));
    }
}

/// Calls `ask` until it returns a value.
///
/// # Panics
/// If it does not within [`PATIENCE`].
#[track_caller]
pub fn eventually<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, ask).unwrap_or_else(|| panic!("{what}: not within {PATIENCE:?}"))
}

/// A number from the environment, for longer runs of a test.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "how long a test runs is the environment's to say")]
pub fn number_from_env(name: &str, otherwise: usize) -> usize {
    std::env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// A text from the environment that selects the input of a test.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "what a test looks at is the environment's to say")]
pub fn text_from_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Pseudo-random numbers, the same in every run (xorshift).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }
}
