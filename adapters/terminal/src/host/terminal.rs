//! A user's terminal: the host reads and writes it without changing how others see it; the launcher puts it into raw
//! mode and restores it.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{FileType, OFlags, fstat},
    process::{Pid, getpgid, getpgrp, getppid, getsid},
    termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr},
};

/// Opens the file behind a descriptor again, so that ours is non-blocking while the shared one keeps blocking for other
/// processes. Returns the descriptor itself if that is impossible.
#[must_use]
pub fn open_again(descriptor: OwnedFd, access: OFlags) -> File {
    let kind = fstat(&descriptor).map(|stat| FileType::from_raw_mode(stat.st_mode));
    // A reopened file would be written from its beginning, so neither files nor sockets are reopened.
    if matches!(kind, Ok(FileType::CharacterDevice | FileType::Fifo)) {
        let flags = access | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(again) = crate::os::reopen(&descriptor, flags) {
            return File::from(again);
        }
    }
    File::from(descriptor)
}

/// A terminal and its settings when we first saw it.
#[derive(Debug)]
pub struct Saved {
    terminal: OwnedFd,
    settings: Termios,
}

impl Saved {
    /// Reads a terminal's settings; `None` if the descriptor is not a terminal.
    #[must_use]
    pub fn of(terminal: BorrowedFd<'_>) -> Option<Self> {
        if !isatty(terminal) {
            return None;
        }
        let settings = tcgetattr(terminal).ok()?;
        Some(Self { terminal: terminal.try_clone_to_owned().ok()?, settings })
    }

    /// The saved settings.
    #[must_use]
    pub fn settings(&self) -> &Termios {
        &self.settings
    }

    /// Restores the settings.
    pub fn restore(&self) {
        // The terminal may be gone.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.settings).ok();
    }

    /// Makes the terminal pass every byte unchanged.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn make_raw(&self) -> io::Result<()> {
        let mut raw = self.settings.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &raw)?)
    }

    /// Whether our group is in its foreground; true for a terminal that is not our controlling terminal.
    #[must_use]
    pub fn is_foreground(&self) -> bool {
        tcgetpgrp(&self.terminal).map_or(true, |group| group == getpgrp())
    }
}

impl AsFd for Saved {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }
}

/// A terminal in raw mode that is restored when this is dropped or the program panics.
#[derive(Debug)]
pub struct RawMode {
    saved: Saved,
    is_raw: bool,
}

impl RawMode {
    /// Manages a terminal that will be made raw.
    #[must_use]
    pub fn new(saved: Saved) -> Self {
        if let Ok(terminal) = saved.terminal.try_clone() {
            let settings = saved.settings.clone();
            let before = std::panic::take_hook();
            // Restore the terminal first so that the panic message is readable.
            std::panic::set_hook(Box::new(move |panic| {
                tcsetattr(&terminal, OptionalActions::Now, &settings).ok();
                before(panic);
            }));
        }
        Self { saved, is_raw: false }
    }

    /// Makes it raw if our group is in its foreground. Returns whether it is.
    pub fn enter(&mut self) -> bool {
        let foreground = self.saved.is_foreground();
        if foreground && self.saved.make_raw().is_ok() {
            self.is_raw = true;
        }
        foreground
    }

    /// Restores it.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.is_raw) {
            self.saved.restore();
        }
    }

    /// Reads the settings again; they may have changed while we were stopped.
    pub fn reload(&mut self) {
        if !self.is_raw
            && let Ok(settings) = tcgetattr(&self.saved.terminal)
        {
            self.saved.settings = settings;
        }
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Whether no process would continue our process group once it is stopped: none of its processes has a parent in
/// another group of this session. The kernel does not stop such a group for Ctrl-Z.
#[must_use]
pub fn is_orphaned() -> bool {
    let (Ok(session), group) = (getsid(None), getpgrp()) else { return true };
    let mut at = getppid();
    while let Some(pid) = at {
        match (getsid(Some(pid)), getpgid(Some(pid))) {
            (Ok(theirs), Ok(other)) if theirs == session && other != group => return false,
            (Ok(theirs), Ok(_)) if theirs == session => at = parent(pid),
            _ => return true,
        }
    }
    true
}

fn parent(pid: Pid) -> Option<Pid> {
    processes::parent(u32::try_from(pid.as_raw_nonzero().get()).ok()?)
        .and_then(|parent| Pid::from_raw(i32::try_from(parent).ok()?))
}
