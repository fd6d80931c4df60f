//! Linux: getrandom(2).

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills a buffer with random bytes from the system. Returns the number of bytes written.
pub(crate) fn random(buffer: &mut [u8]) -> io::Result<usize> {
    Ok(getrandom(buffer, GetRandomFlags::empty())?)
}
