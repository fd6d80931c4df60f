//! macOS: no subreapers, no parent-death signal, no socket addresses relative to an open directory.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    os::fd::OwnedFd,
};

use rustix::{fs::OFlags, io::Errno};

/// Flag for opening a directory that is not read: macOS opens it for reading.
pub(crate) const PATH: OFlags = OFlags::RDONLY;

/// Connects to a socket in an open directory: macOS has no address for such a socket, so this fails.
pub(crate) fn connect_in(_: &OwnedFd, _: &OsStr) -> io::Result<OwnedFd> {
    Err(ErrorKind::Unsupported.into())
}

/// Adopts the orphans among the descendants of this process: macOS has no subreaper, so this fails.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Has the kernel send TERM to this process when its parent ends: macOS has no such call, so this fails.
pub(crate) fn end_with_parent() -> Result<(), Errno> {
    Err(Errno::NOTSUP)
}
