//! Signals as a file descriptor to poll. Signals that were ignored when the process started (nohup, a background job of
//! a plain shell) stay ignored.

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

/// The watched signals.
#[derive(Debug)]
pub struct Signals {
    read: UnixStream,
    came: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Signals {
    /// Catches these signals from now on, except those that are ignored.
    ///
    /// # Errors
    /// When a descriptor cannot be created.
    pub fn watch(wanted: &[Signal]) -> io::Result<Self> {
        let ignored = crate::os::ignored();
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let mut came = Vec::new();
        for signal in wanted.iter().copied().filter(|s| ignored & mask(*s) == 0) {
            let flag = Arc::new(AtomicBool::new(false));
            // Register the flag first: it must be set by the time the socket wakes the reader.
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

/// Prevents the kernel from stopping this thread, and threads it starts, when they write to or change a terminal
/// from the background.
pub fn block_background_stops() {
    // This cannot fail for a valid signal.
    background_stops().thread_block().ok();
}

/// Undoes [`block_background_stops`]: the program that replaces this process must not inherit the blocked signal.
pub fn unblock_background_stops() {
    background_stops().thread_unblock().ok();
}

fn background_stops() -> nix::sys::signal::SigSet {
    let mut set = nix::sys::signal::SigSet::empty();
    set.add(nix::sys::signal::Signal::SIGTTOU);
    set
}
