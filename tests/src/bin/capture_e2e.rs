//! The program, as the end-to-end tests run it: the same entry as `capture` itself.

use std::process::ExitCode;

/// As in `capture`: tests look at how much memory it takes.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    capture::main()
}
