//! The program, as the end-to-end tests run it: the same entry as `capture` itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    capture::main()
}
