//! Linux: `/proc/self/fd`, `O_PATH`, subreapers, the parent-death signal.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
};

use rustix::{
    fs::OFlags,
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
    process::{Signal, set_child_subreaper, set_parent_process_death_signal},
};

/// Flag for opening a directory that is not read.
pub(crate) const PATH: OFlags = OFlags::PATH;

/// Connects to a socket in an open directory, without waiting.
pub(crate) fn connect_in(directory: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // A path through the open directory is short however long the path of the home is, and the directory cannot be
    // replaced.
    let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let address = SocketAddrUnix::new(by_descriptor.join(name))?;
    connect(&socket, &address)?;
    Ok(socket)
}

/// Adopts the orphans among the descendants of this process.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Has the kernel send TERM to this process when its parent ends.
pub(crate) fn end_with_parent() -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::TERM))
}
