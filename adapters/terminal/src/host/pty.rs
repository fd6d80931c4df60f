//! The pseudo-terminal that a terminal host opens for its program.
//!
//! portable-pty opens and resizes it. Its writer is never taken: dropping it types a newline and
//! an end of file (portable-pty 0.9, `UnixMasterWriter::drop`).

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

/// A terminal with our side and the program's.
pub struct Pty {
    /// Our side; does not block.
    pub master: File,
    side: Box<dyn MasterPty + Send>,
    /// The program's side. Held while the program lives, so that one that closes its streams for a
    /// while is not taken for one that ended; closed after that, so that the end of what others
    /// have open can be seen.
    slave: Option<OwnedFd>,
}

impl Pty {
    /// Makes a terminal, and makes it the controlling terminal of this session, which must have
    /// none. It is set as `like` is.
    ///
    /// # Errors
    /// When the system has none left, or we lead no session.
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
    /// When there are no descriptors left, or it was closed.
    pub fn slave(&self) -> io::Result<OwnedFd> {
        self.slave.as_ref().ok_or_else(|| io::Error::other("the terminal is closed"))?.try_clone()
    }

    /// Closes the program's side here.
    pub fn close_slave(&mut self) {
        self.slave = None;
    }

    /// Gives it another size; the kernel tells the program when it differs.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn resize(&self, size: Winsize) -> io::Result<()> {
        self.side.resize(pty_size(size)).map_err(io::Error::other)
    }

    /// The process group in its foreground.
    #[must_use]
    pub fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.master).ok()
    }

    /// Puts a group into its foreground.
    ///
    /// # Errors
    /// When it is not a group of this session.
    pub fn put_in_foreground(&self, group: Pid) -> io::Result<()> {
        Ok(rustix::termios::tcsetpgrp(&self.master, group)?)
    }

    /// Signals the group in its foreground, else `otherwise`.
    pub fn signal(&self, signal: Signal, otherwise: Pid) {
        let group = self.foreground().unwrap_or(otherwise);
        if kill_process_group(group, signal).is_err() && group != otherwise {
            kill_process_group(otherwise, signal).ok();
        }
    }

    /// Whether a line is read without being shown: a password, most likely.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        tcgetattr(&self.master).is_ok_and(|settings| {
            !settings.local_modes.contains(LocalModes::ECHO) && settings.local_modes.contains(LocalModes::ICANON)
        })
    }

    /// Whether keys are read one by one and not shown, as a dialog reads them.
    #[must_use]
    pub fn reads_keys(&self) -> bool {
        tcgetattr(&self.master)
            .is_ok_and(|settings| !settings.local_modes.intersects(LocalModes::ECHO | LocalModes::ICANON))
    }

    /// Whether the program wrote something that was not read yet.
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

/// A size without pixels.
#[must_use]
pub fn winsize(size: Size) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// A size a screen can be kept in: a terminal may say 0 by 0, or 65535 by 65535.
#[must_use]
pub fn screen_size(size: Winsize) -> Size {
    Size { rows: size.ws_row.clamp(2, 500), columns: size.ws_col.clamp(2, 1000) }
}
