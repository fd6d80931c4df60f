//! The parts of the machine that the whole program uses: the data directory and its files, the configuration, the
//! environment, the clocks and random numbers.
//!
//! It is the only crate that reads the clock and the environment. Must not connect to a server, open the database or
//! start a thread.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod clock;
pub mod config;
pub mod desktop;
pub mod endpoint;
pub mod environment;
pub mod hosted_session;
mod os;
pub mod paths;
pub mod redacted_only;
pub mod roots;
