//! macOS: urandom(4), a monotonic clock that counts sleep.

use std::{
    fs::File,
    io::{self, Read},
};

use rustix::time::ClockId;

/// The clock that counts the time since boot, including sleep.
pub(crate) const SINCE_BOOT: ClockId = ClockId::Monotonic;

/// Fills a buffer with random bytes from the system (urandom(4)). Returns the number of bytes written.
pub(crate) fn random(buffer: &mut [u8]) -> io::Result<usize> {
    File::open("/dev/urandom")?.read_exact(buffer)?;
    Ok(buffer.len())
}

/// The id of the current boot: unknown, so empty.
pub(crate) fn boot() -> String {
    String::new()
}
