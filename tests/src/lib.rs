//! The harness of the end-to-end tests: recordings played in virtual time ([`world`]) and scored
//! ([`score`]), recorded terminals ([`terminal`]), the real program on a data directory of its own
//! ([`program`]), a scripted daemon of Codex ([`daemon`]), a person at a terminal
//! ([`terminal_user`]), made-up lines ([`transcript`]), a small HTTP client ([`http`]), a desktop ([`desktop`]) and a
//! receiver of webhooks ([`receiver`]) that are notified, a simulated agent that speaks the agents' protocols
//! ([`owned`]), scripted models ([`models`]) with the real agents before them ([`live`]), and the public benchmark of the
//! status ([`statusbench`]).
//!
//! Nothing here waits for time to pass: virtual time is a number, and what the real program does
//! is asked for until it is so ([`eventually`]), with a deadline.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc, reason = "a harness fails by panicking")]

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

/// How long something of the real program may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until there is an answer; `None` when there is none within `patience`.
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

/// Asks until there is an answer.
///
/// # Panics
/// When there is none within [`PATIENCE`].
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

/// A text from the environment, for a test that is told what to look at.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "what a test looks at is the environment's to say")]
pub fn text_from_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Numbers that look drawn at random and are the same in every run (xorshift).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
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
