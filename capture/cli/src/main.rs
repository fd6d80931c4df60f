//! `capture`: observes coding-agent sessions.

use std::process::ExitCode;

/// Returns memory to the system after an import or when clients have disconnected.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    capture::main()
}
