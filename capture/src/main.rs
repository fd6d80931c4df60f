//! `capture`: observes coding-agent sessions.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Agents wait for their hooks: no command line is parsed for them.
    if arguments.next().is_some_and(|verb| verb == capture::hook::VERB) {
        return capture::hook::main(arguments);
    }
    capture::commands::main()
}
