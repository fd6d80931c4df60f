//! The program: the commands users run ([`commands`]). The server itself is `daemon`, commands connect to it through
//! `client`, and agents' hooks call `hook`.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod commands;
mod hook;
mod os;
mod show;

/// The program.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let verb = arguments.next();
    // Agents wait for their hooks, and our own agent for its commands, so these skip the command line parser.
    if verb.as_ref().is_some_and(|verb| verb == hook::VERB) {
        return hook::main(arguments);
    }
    if verb.is_some_and(|verb| verb == session_setup::TOOL_HOST) {
        return session_setup::tool_host();
    }
    commands::main()
}
