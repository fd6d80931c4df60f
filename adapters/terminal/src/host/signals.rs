//! Signals as a file descriptor to poll. Signals that were ignored when the process began (nohup, a background job of a
//! plain shell) stay ignored.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::process::Signal;

/// Signals that were asked for.
#[derive(Debug)]
pub struct Signals {
    read: UnixStream,
    came: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Signals {
    /// Catches these signals from now on, except those that are ignored.
    ///
    /// # Errors
    /// When the system gives no descriptors.
    pub fn watch(wanted: &[Signal]) -> io::Result<Self> {
        let ignored = crate::os::ignored();
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let mut came = Vec::new();
        for signal in wanted.iter().copied().filter(|s| ignored & mask(*s) == 0) {
            let flag = Arc::new(AtomicBool::new(false));
            // The flag first: when the socket wakes somebody it must be there already.
            signal_hook::flag::register(signal.as_raw(), Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal.as_raw(), write.try_clone()?)?;
            came.push((signal, flag));
        }
        Ok(Self { read, came })
    }

    /// Signals that arrived since the last call, each kind once.
    pub fn received(&mut self) -> Vec<Signal> {
        let mut drain = [0_u8; 64];
        while matches!(rustix::io::read(&self.read, &mut drain), Ok(n) if n > 0) {}
        self.came.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst)).map(|(signal, _)| *signal).collect()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

fn mask(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}

/// Keeps this thread, and those it starts, from being stopped for touching a terminal in whose
/// foreground they are not.
pub fn block_background_stops() {
    // It cannot fail for a signal that exists.
    background_stops().thread_block().ok();
}

/// Lets them happen again: what this process becomes must not find them held.
pub fn unblock_background_stops() {
    background_stops().thread_unblock().ok();
}

fn background_stops() -> nix::sys::signal::SigSet {
    let mut set = nix::sys::signal::SigSet::empty();
    set.add(nix::sys::signal::Signal::SIGTTOU);
    set
}
