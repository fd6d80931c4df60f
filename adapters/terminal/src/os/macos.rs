//! macOS: no subreapers, and no way to open the file of a descriptor again.

use std::{
    io::{self, ErrorKind},
    os::fd::OwnedFd,
};

use rustix::{
    fs::OFlags,
    io::{FdFlags, fcntl_getfd, fcntl_setfd},
    net::{RecvFlags, SendFlags},
};

/// Flags for sending on a socket. Rust programs ignore SIGPIPE, so a closed peer causes an error.
pub(crate) const SEND: SendFlags = SendFlags::empty();
/// Flags for receiving on a socket.
pub(crate) const RECEIVE: RecvFlags = RecvFlags::empty();

/// Makes a received descriptor close on exec.
pub(crate) fn received(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    fcntl_setfd(&descriptor, fcntl_getfd(&descriptor)? | FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

/// Opens the file that a descriptor refers to again: macOS only duplicates the descriptor, so this fails.
pub(crate) fn reopen(_: &OwnedFd, _: OFlags) -> io::Result<OwnedFd> {
    Err(ErrorKind::Unsupported.into())
}

/// The signals this process ignores: unknown, so none.
pub(crate) fn ignored() -> u64 {
    0
}

/// Adopts the orphans among the descendants of this process: macOS has no subreaper, so this fails.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
