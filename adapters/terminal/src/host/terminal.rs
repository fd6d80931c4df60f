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

/// Opens what a descriptor refers to once more, so that it does not block here and goes on to
/// block for those we share it with. Gives the descriptor itself where that cannot be.
#[must_use]
pub fn open_again(descriptor: OwnedFd, access: OFlags) -> File {
    let kind = fstat(&descriptor).map(|stat| FileType::from_raw_mode(stat.st_mode));
    // A file would be written from its beginning; neither it nor a socket is opened again.
    if matches!(kind, Ok(FileType::CharacterDevice | FileType::Fifo)) {
        let flags = access | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(again) = crate::os::reopen(&descriptor, flags) {
            return File::from(again);
        }
    }
    File::from(descriptor)
}

/// A terminal and how it was set when we first saw it.
#[derive(Debug)]
pub struct Saved {
    terminal: OwnedFd,
    settings: Termios,
}

impl Saved {
    /// Reads a terminal's settings; `None` when the descriptor is not a terminal.
    #[must_use]
    pub fn of(terminal: BorrowedFd<'_>) -> Option<Self> {
        if !isatty(terminal) {
            return None;
        }
        let settings = tcgetattr(terminal).ok()?;
        Some(Self { terminal: terminal.try_clone_to_owned().ok()?, settings })
    }

    /// How it was set.
    #[must_use]
    pub fn settings(&self) -> &Termios {
        &self.settings
    }

    /// Sets it as it was.
    pub fn restore(&self) {
        // It may be gone.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.settings).ok();
    }

    /// Passes every byte as it is.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn make_raw(&self) -> io::Result<()> {
        let mut raw = self.settings.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &raw)?)
    }

    /// Whether our group is in its foreground; a terminal that is not ours has no say.
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

/// A terminal that is raw, and is put back when this is dropped or the program panics.
#[derive(Debug)]
pub struct RawMode {
    saved: Saved,
    is_raw: bool,
}

impl RawMode {
    /// A terminal that will be made raw.
    #[must_use]
    pub fn new(saved: Saved) -> Self {
        if let Ok(terminal) = saved.terminal.try_clone() {
            let settings = saved.settings.clone();
            let before = std::panic::take_hook();
            // What a panic says should be readable.
            std::panic::set_hook(Box::new(move |panic| {
                tcsetattr(&terminal, OptionalActions::Now, &settings).ok();
                before(panic);
            }));
        }
        Self { saved, is_raw: false }
    }

    /// Makes it raw, if our group is in its foreground. Says whether that is so.
    pub fn enter(&mut self) -> bool {
        let foreground = self.saved.is_foreground();
        if foreground && self.saved.make_raw().is_ok() {
            self.is_raw = true;
        }
        foreground
    }

    /// Puts it back.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.is_raw) {
            self.saved.restore();
        }
    }

    /// Reads the settings again; they may have been changed while we were stopped.
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

/// Whether nobody would continue our process group once it is stopped: no process of it has a
/// parent in another group of this session. The kernel stops no such group for Ctrl-Z.
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
