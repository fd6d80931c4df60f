//! The program as run by the end-to-end tests, with the same entry point as `capture`.

use std::process::ExitCode;

/// The same allocator as in `capture`, because tests measure memory.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    capture::main()
}
