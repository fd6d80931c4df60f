//! macOS: no descriptor of a process, so the server cannot be stopped by a command.

use std::{
    io::{self, ErrorKind},
    os::fd::OwnedFd,
};

use rustix::process::{Pid, Signal};

/// A descriptor of a process: macOS has none.
pub(crate) fn process_descriptor(_: Pid) -> io::Result<OwnedFd> {
    Err(ErrorKind::Unsupported.into())
}

/// Signals the process of a descriptor: macOS has no such call.
pub(crate) fn signal(_: &OwnedFd, _: Signal) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
