//! macOS: urandom(4).

use std::{
    fs::File,
    io::{self, Read},
};

/// Fills a buffer with random bytes from the system (urandom(4)). Returns the number of bytes written.
pub(crate) fn random(buffer: &mut [u8]) -> io::Result<usize> {
    File::open("/dev/urandom")?.read_exact(buffer)?;
    Ok(buffer.len())
}
