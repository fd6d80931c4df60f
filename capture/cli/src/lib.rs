//! The program: the commands people type ([`commands`]). The server itself is `daemon`, how commands reach it is `client`,
//! and the command that agents' hooks call is `hook_command`.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod commands;

/// What people see. Within this crate the crate `terminal`, which hosts runs, is `::terminal`.
pub use printing as terminal;

/// The program.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Agents wait for their hooks: no command line is parsed for them.
    if arguments.next().is_some_and(|verb| verb == hook_command::VERB) {
        return hook_command::main(arguments);
    }
    commands::main()
}
