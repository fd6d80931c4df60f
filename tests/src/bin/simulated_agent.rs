//! A scripted agent that speaks the agents' protocols: see `tests::owned`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tests::owned::main()
}
