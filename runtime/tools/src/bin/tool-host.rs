//! The host of commands as a program of its own, for the tests of this crate. `capture tool-host` is the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::host::main()
}
