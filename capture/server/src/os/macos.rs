//! macOS: no TCP time limit for unacknowledged bytes.

use std::{
    io::{self, ErrorKind},
    os::fd::AsFd,
};

/// Has the kernel close a connection whose peer acknowledges nothing for some time: macOS has no such option.
pub(crate) fn limit_unacknowledged(_: impl AsFd, _: u32) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
