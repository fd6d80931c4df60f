//! Linux: pidfd.

use std::{io, os::fd::OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Opens a descriptor of a process. The descriptor becomes readable when the process ends.
pub(crate) fn process_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Sends a signal to the process of a descriptor.
pub(crate) fn signal(process: &OwnedFd, signal: Signal) -> io::Result<()> {
    Ok(pidfd_send_signal(process, signal)?)
}
