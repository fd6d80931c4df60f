//! macOS: no descriptors of processes, so commands cannot stop the server.

use std::{
    io::{self, ErrorKind},
    os::fd::OwnedFd,
};

use rustix::process::{Pid, Signal};

/// Opens a descriptor of a process: macOS has none, so this fails.
pub(crate) fn process_descriptor(_: Pid) -> io::Result<OwnedFd> {
    Err(ErrorKind::Unsupported.into())
}

/// Sends a signal to the process of a descriptor: macOS has no such call, so this fails.
pub(crate) fn signal(_: &OwnedFd, _: Signal) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
