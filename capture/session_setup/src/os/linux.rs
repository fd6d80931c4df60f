//! Linux: getrandom(2), the clock since boot.

use std::io;

use rustix::{
    rand::{GetRandomFlags, getrandom},
    time::ClockId,
};

/// The clock that counts the time since boot, including sleep.
pub(crate) const SINCE_BOOT: ClockId = ClockId::Boottime;

/// Fills a buffer with random bytes from the system. Returns the number of bytes written.
pub(crate) fn random(buffer: &mut [u8]) -> io::Result<usize> {
    Ok(getrandom(buffer, GetRandomFlags::empty())?)
}
