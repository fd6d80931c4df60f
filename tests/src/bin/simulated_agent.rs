//! An agent that speaks the agents' protocols by a script: see `tests::owned`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tests::owned::main()
}
