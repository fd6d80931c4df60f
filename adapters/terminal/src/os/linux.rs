//! Linux: `/proc/self`, subreapers, flags of socket messages.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
};

use rustix::{
    fs::{Mode, OFlags},
    net::{RecvFlags, SendFlags},
    process::{getpid, set_child_subreaper},
};

/// Flags for sending on a socket: a closed peer causes an error instead of a signal.
pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL;
/// Flags for receiving on a socket: descriptors are closed on exec.
pub(crate) const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Makes a received descriptor close on exec: [`RECEIVE`] has already done so.
pub(crate) fn received(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    Ok(descriptor)
}

/// Opens the file that a descriptor refers to again.
pub(crate) fn reopen(descriptor: &OwnedFd, flags: OFlags) -> io::Result<OwnedFd> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The signals this process ignores, as the bit mask in `/proc/self/status`; 0 if it cannot be read.
pub(crate) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
}

/// Adopts the orphans among the descendants of this process.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid())).map_err(Into::into)
}
