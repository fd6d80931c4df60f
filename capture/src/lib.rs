//! The program: configuration, wiring, ingest, the command line.
//!
//! The only crate that sees all others, the clock and the environment. [`ingest`] is the heart:
//! the one thread that commits. [`serve`] puts everything together and takes it apart again in
//! order; [`commands`] is what people type.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod actions;
pub mod approvals;
pub mod client;
pub mod clock;
pub mod commands;
pub mod config;
pub mod daemons;
pub mod deliveries;
pub mod endpoint;
pub mod environment;
pub mod findings;
pub mod handing;
pub mod health;
pub mod heard;
pub mod hook;
pub mod ignored;
pub mod ingest;
pub mod linker;
pub mod notices;
pub mod open_files;
pub mod places;
pub mod policy;
pub mod prompts;
pub mod recording;
pub mod redacted_only;
pub mod redaction;
pub mod roots;
pub mod runs;
pub mod serve;
pub mod telemetry;
pub mod terminal;

/// The program.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Agents wait for their hooks: no command line is parsed for them.
    if arguments.next().is_some_and(|verb| verb == hook::VERB) {
        return hook::main(arguments);
    }
    commands::main()
}
