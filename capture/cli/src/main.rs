//! `capture`: observes coding-agent sessions.

use std::process::ExitCode;

fn main() -> ExitCode {
    capture::main()
}
