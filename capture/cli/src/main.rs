//! `capture`: observes coding-agent sessions.

use std::process::ExitCode;

/// Gives memory back when an import is over or clients have left.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    capture::main()
}
