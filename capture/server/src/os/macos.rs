//! macOS: no time limit of TCP for unacknowledged bytes.

use std::{
    io::{self, ErrorKind},
    os::fd::AsFd,
};

/// Has the kernel close a connection whose peer acknowledges nothing for so long: macOS has no such option.
pub(crate) fn limit_unacknowledged(_: impl AsFd, _: u32) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
