//! Linux: getrandom(2).

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills a buffer with random bytes of the system. Returns how many were written.
pub(crate) fn random(buffer: &mut [u8]) -> io::Result<usize> {
    Ok(getrandom(buffer, GetRandomFlags::empty())?)
}
