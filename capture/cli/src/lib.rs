//! The program: the commands people type ([`commands`]), the command that agents' hooks call ([`hook`]). The server itself is
//! `daemon`, and how commands reach it is `client`.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod commands;
pub mod hook;

/// What people see. Within this crate the crate `terminal`, which hosts runs, is `::terminal`.
pub use printing as terminal;

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
