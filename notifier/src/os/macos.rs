//! macOS: kernel queues.

use std::{io, os::fd::OwnedFd};

use nix::{
    errno::Errno,
    sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue},
};
use rustix::process::Pid;

/// Opens a descriptor that becomes readable when a child of this process ends (kqueue(2), `NOTE_EXIT`).
pub(crate) fn exit_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    let queue = Kqueue::new()?;
    let ident = usize::try_from(pid.as_raw_nonzero().get()).map_err(io::Error::other)?;
    let exit = KEvent::new(ident, EventFilter::EVFILT_PROC, EvFlags::EV_ADD, FilterFlag::NOTE_EXIT, 0, 0);
    match queue.kevent(&[exit], &mut [], None) {
        Ok(_) => Ok(queue.into()),
        // The child has already ended. The reading end of a pipe without a writer is always readable.
        Err(Errno::ESRCH) => Ok(io::pipe()?.0.into()),
        Err(error) => Err(error.into()),
    }
}
