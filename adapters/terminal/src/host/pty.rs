//! The pseudo-terminal that a terminal host opens for its program.
//!
//! portable-pty opens and resizes it. `take_writer` is never called: dropping the writer types a newline and an end of
//! file (portable-pty 0.9, `UnixMasterWriter::drop`).

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use host_protocol::screen::Size;
use portable_pty::{MasterPty, PtySize, native_pty_system};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process_group},
    termios::{InputModes, LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcsetattr},
};

/// A pseudo-terminal: our side and the program's.
pub struct Pty {
    /// Our side; non-blocking.
    pub master: File,
    side: Box<dyn MasterPty + Send>,
    /// The program's side. Kept open while the program lives, so that a program that closes its streams for a while is
    /// not mistaken for one that ended; closed afterwards, so that reading reports the end once no other process has it
    /// open.
    slave: Option<OwnedFd>,
}

impl Pty {
    /// Creates a terminal and makes it the controlling terminal of this session, which must have none. Copies its
    /// settings from `like`.
    ///
    /// # Errors
    /// When the system has no terminal left, or this process does not lead a session.
    pub fn open(size: Winsize, like: Option<&Termios>) -> io::Result<Self> {
        let pair = native_pty_system().openpty(pty_size(size)).map_err(io::Error::other)?;
        let path = pair.master.tty_name().ok_or_else(|| io::Error::other("the terminal has no name"))?;
        let slave = rustix::fs::open(&path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let raw = pair.master.as_raw_fd().ok_or_else(|| io::Error::other("the terminal has no descriptor"))?;
        let copy = filedescriptor::FileDescriptor::dup(&raw).map_err(io::Error::other)?;
        let master = copy.as_file().map_err(io::Error::other)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        rustix::process::ioctl_tiocsctty(&slave)?;
        let settings = match like {
            Some(like) => like.clone(),
            None => {
                let mut settings = tcgetattr(&slave)?;
                settings.input_modes |= InputModes::IUTF8;
                settings
            }
        };
        tcsetattr(&slave, OptionalActions::Now, &settings)?;
        Ok(Self { master, side: pair.master, slave: Some(slave) })
    }

    /// The program's side, for one of its streams.
    ///
    /// # Errors
    /// When there are no descriptors left, or this side was closed.
    pub fn slave(&self) -> io::Result<OwnedFd> {
        self.slave.as_ref().ok_or_else(|| io::Error::other("the terminal is closed"))?.try_clone()
    }

    /// Closes our descriptor of the program's side.
    pub fn close_slave(&mut self) {
        self.slave = None;
    }

    /// Changes its size; the kernel notifies the program if the size differs.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn resize(&self, size: Winsize) -> io::Result<()> {
        self.side.resize(pty_size(size)).map_err(io::Error::other)
    }

    /// The process group in its foreground.
    #[must_use]
    pub fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.master).ok()
    }

    /// Puts a process group into its foreground.
    ///
    /// # Errors
    /// When the group is not in this session.
    pub fn put_in_foreground(&self, group: Pid) -> io::Result<()> {
        Ok(rustix::termios::tcsetpgrp(&self.master, group)?)
    }

    /// Signals the group in its foreground, or `otherwise` if there is none.
    pub fn signal(&self, signal: Signal, otherwise: Pid) {
        let group = self.foreground().unwrap_or(otherwise);
        if kill_process_group(group, signal).is_err() && group != otherwise {
            kill_process_group(otherwise, signal).ok();
        }
    }

    /// Whether the program reads a line without echo: most likely a password.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        tcgetattr(&self.master).is_ok_and(|settings| {
            !settings.local_modes.contains(LocalModes::ECHO) && settings.local_modes.contains(LocalModes::ICANON)
        })
    }

    /// Whether the program reads single keys without echo, as a dialog does.
    #[must_use]
    pub fn reads_keys(&self) -> bool {
        tcgetattr(&self.master)
            .is_ok_and(|settings| !settings.local_modes.intersects(LocalModes::ECHO | LocalModes::ICANON))
    }

    /// Whether output of the program is unread.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let mut master = [PollFd::new(&self.master, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut master, Some(&now)), Ok(0))
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

fn pty_size(size: Winsize) -> PtySize {
    PtySize { rows: size.ws_row, cols: size.ws_col, pixel_width: size.ws_xpixel, pixel_height: size.ws_ypixel }
}

/// A size without pixel dimensions.
#[must_use]
pub fn winsize(size: Size) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// The size clamped to what the screen model supports: a terminal may report 0 by 0, or 65535 by 65535.
#[must_use]
pub fn screen_size(size: Winsize) -> Size {
    Size { rows: size.ws_row.clamp(2, 500), columns: size.ws_col.clamp(2, 1000) }
}
