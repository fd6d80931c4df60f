//! Linux: pidfd.

use std::{io, os::fd::OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Opens a descriptor that becomes readable when a child of this process ends.
pub(crate) fn exit_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
