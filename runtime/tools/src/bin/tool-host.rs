//! The host process of commands as a separate program, for the tests of this crate. `capture tool-host` does the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::host::main()
}
