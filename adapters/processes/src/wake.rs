//! Wakes a polling thread.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use crate::os;

/// The sending half of a wake-up; cheap to clone.
#[derive(Debug, Clone)]
pub struct Wake(Arc<OwnedFd>);

/// The receiving half of a wake-up, a descriptor to poll.
#[derive(Debug)]
pub struct WakeReceiver(OwnedFd);

/// Creates a connected pair.
///
/// # Errors
/// If the system has no descriptors left.
pub fn pair() -> io::Result<(Wake, WakeReceiver)> {
    let (read, write) = os::pipe()?;
    Ok((Wake(Arc::new(write)), WakeReceiver(read)))
}

impl Wake {
    /// Wakes the other side.
    pub fn wake(&self) {
        // A full pipe has already woken it.
        rustix::io::write(&*self.0, &[1]).ok();
    }
}

impl WakeReceiver {
    /// Consumes all pending wake-ups.
    pub fn drain(&self) {
        let mut drain = [0_u8; 64];
        while matches!(rustix::io::read(&self.0, &mut drain), Ok(n) if n > 0) {}
    }
}

impl AsFd for WakeReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
