//! A terminal attached to a run: the launcher's, or one of `capture attach`.
//!
//! One of them types and gives the run its size; it may hold the program up, as a terminal does.
//! The others watch: a slow one misses bytes and is redrawn later.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

use rustix::{
    fs::{OFlags, fcntl_getfl},
    termios::{Winsize, tcgetwinsize},
};

use super::{
    keys::DetachKey,
    output_queue::OutputQueue,
    terminal::{Saved, open_again},
    wire::LauncherSocket,
};

/// Bytes queued for the terminal that types above which the program is not read.
const ROOM: usize = 64 << 10;
/// Most bytes queued for a terminal that only watches.
const BEHIND: usize = 256 << 10;
/// Bytes written at once to a blocking descriptor: what a terminal that polls as writable accepts.
const BLOCKING_WRITE: usize = 256;
/// Control character (CAN) that ends an escape sequence cut off midway.
const CANCEL: u8 = 0x18;

/// What a terminal may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It types, and the run has its size.
    Writer,
    /// It watches.
    Viewer,
}

/// How far a terminal has seen what is on the screen.
#[derive(Debug)]
enum Paint {
    /// It gets bytes as they come.
    Live,
    /// It needs the current screen first.
    Wanted,
    /// That was asked for; this came since.
    Asked(Vec<u8>, Instant),
}

/// The outcome of reading a terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// These bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// It is gone.
    Gone,
}

/// An attached terminal.
#[derive(Debug)]
pub struct Guest {
    /// Names it in this run.
    pub id: u64,
    /// The process whose terminal it is.
    pub control: LauncherSocket,
    /// Whether that is the launcher.
    pub launcher: bool,
    /// What it may do.
    pub role: Role,
    /// Whether it only ever watches.
    pub read_only: bool,
    /// Whether the terminal is raw and bytes flow.
    pub live: bool,
    /// Whether it may be read: its process is in the foreground.
    pub foreground: bool,
    /// Whether its process is stopped, and another one uses the terminal.
    pub suspended: bool,
    /// The key that detaches it.
    pub key: DetachKey,
    /// How it was set before.
    pub saved: Option<Saved>,
    /// Read for what is typed.
    pub input: Option<File>,
    /// Written to.
    pub output: Option<File>,
    blocks: bool,
    pending: OutputQueue,
    paint: Paint,
}

impl Guest {
    /// A terminal that is not live yet.
    #[must_use]
    pub fn new(id: u64, control: LauncherSocket, input: OwnedFd, output: OwnedFd) -> Self {
        let mut guest = Self::visitor(id, control);
        guest.bring(input, output);
        guest
    }

    /// Somebody who has not said yet what it wants.
    #[must_use]
    pub fn visitor(id: u64, control: LauncherSocket) -> Self {
        Self {
            id,
            control,
            launcher: false,
            role: Role::Viewer,
            read_only: false,
            live: false,
            foreground: false,
            suspended: false,
            key: DetachKey::NONE,
            saved: None,
            input: None,
            output: None,
            blocks: true,
            pending: OutputQueue::default(),
            paint: Paint::Live,
        }
    }

    /// Its terminal, to read and to write.
    pub fn bring(&mut self, input: OwnedFd, output: OwnedFd) {
        self.saved = Saved::of(input.as_fd()).or_else(|| Saved::of(output.as_fd()));
        let output = open_again(output, OFlags::WRONLY);
        self.blocks = fcntl_getfl(&output).map_or(true, |flags| !flags.contains(OFlags::NONBLOCK));
        self.input = Some(open_again(input, OFlags::RDONLY));
        self.output = Some(output);
    }

    /// Writes nothing any more.
    pub fn forget(&mut self) {
        self.output = None;
        self.pending.clear();
    }

    /// Leaves out what waits; a sequence that is cut off by that is ended.
    pub fn skip(&mut self) {
        if !self.pending.is_empty() {
            self.pending.clear();
            self.pending.push(&[CANCEL]);
        }
    }

    /// Its size, when it has one.
    #[must_use]
    pub fn size(&self) -> Option<Winsize> {
        tcgetwinsize(self.saved.as_ref()?).ok()
    }

    /// Whether everything it got was written.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether the program may go on writing as far as this terminal is concerned.
    #[must_use]
    pub fn accepts_output(&self) -> bool {
        self.accepts_behind(ROOM)
    }

    /// Whether nothing of what the program wrote waits for this terminal.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        self.accepts_behind(1)
    }

    /// Whether fewer bytes than these wait for this terminal, if it may hold the program up.
    fn accepts_behind(&self, room: usize) -> bool {
        if self.role == Role::Viewer || !self.live || self.is_away() {
            return true;
        }
        match &self.paint {
            Paint::Wanted => true,
            Paint::Asked(..) => false,
            Paint::Live => self.pending.len() < room && !self.suspended,
        }
    }

    /// Whether its process is stopped while the program goes on: it is redrawn later.
    fn is_away(&self) -> bool {
        self.suspended && !self.launcher
    }

    /// Marks that the current screen is needed before anything else.
    pub fn want_paint(&mut self) {
        self.paint = Paint::Wanted;
    }

    /// Whether the current screen should be requested now.
    #[must_use]
    pub fn wants_paint(&self) -> bool {
        self.live && !self.suspended && matches!(self.paint, Paint::Wanted) && self.pending.is_empty()
    }

    /// It was asked for.
    pub fn paint_asked(&mut self, now: Instant) {
        self.paint = Paint::Asked(Vec::new(), now);
    }

    /// Since when it has been waited for.
    #[must_use]
    pub fn waits_for_paint(&self) -> Option<Instant> {
        match &self.paint {
            Paint::Asked(_, since) => Some(*since),
            Paint::Live | Paint::Wanted => None,
        }
    }

    /// The screen as it stood when it was asked for.
    pub fn painted(&mut self, bytes: &[u8]) {
        match std::mem::replace(&mut self.paint, Paint::Live) {
            Paint::Asked(since, _) => {
                self.queue(bytes);
                self.queue(&since);
            }
            Paint::Live | Paint::Wanted => {}
        }
    }

    /// Bytes of the program. An error means that the terminal is gone.
    ///
    /// # Errors
    /// When it is gone.
    pub fn write_output(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.live || self.is_away() {
            return Ok(());
        }
        match &mut self.paint {
            Paint::Wanted => return Ok(()),
            Paint::Asked(since, _) => {
                since.extend_from_slice(bytes);
                if since.len() > BEHIND && self.role == Role::Viewer {
                    self.paint = Paint::Wanted;
                }
                return Ok(());
            }
            Paint::Live => {}
        }
        let mut rest = bytes;
        if self.pending.is_empty() && !self.suspended {
            let sent = write(&mut self.output, self.blocks, rest)?;
            rest = &rest[sent..];
        }
        self.queue(rest);
        if self.role == Role::Viewer && self.pending.len() > BEHIND {
            self.skip();
            self.paint = Paint::Wanted;
        }
        Ok(())
    }

    /// Bytes to write after those that wait.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.pending.push(bytes);
    }

    /// Writes what waits, as far as the terminal takes it.
    ///
    /// # Errors
    /// When it is gone.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let whole = self.pending.write_once(|bytes| write(&mut self.output, self.blocks, bytes))?;
            if !whole || self.blocks {
                break;
            }
        }
        Ok(())
    }

    /// Whether it should be read.
    #[must_use]
    pub fn may_read(&self) -> bool {
        self.live && self.foreground && !self.suspended && self.input.is_some()
    }

    /// Reads what was typed. The end of an input that is not a terminal only ends the reading.
    pub fn read(&mut self, buffer: &mut [u8]) -> Typed {
        let Some(input) = &mut self.input else { return Typed::Nothing };
        match input.read(buffer) {
            Ok(0) if self.saved.is_none() => {
                self.input = None;
                Typed::Nothing
            }
            Ok(0) => Typed::Gone,
            Ok(read) => Typed::Bytes(read),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Typed::Nothing
            }
            Err(_) => Typed::Gone,
        }
    }
}

/// Writes once; 0 when the terminal takes nothing now.
fn write(output: &mut Option<File>, blocks: bool, bytes: &[u8]) -> io::Result<usize> {
    let Some(output) = output else { return Ok(bytes.len()) };
    let bytes = if blocks { &bytes[..bytes.len().min(BLOCKING_WRITE)] } else { bytes };
    match output.write(bytes) {
        Ok(sent) => Ok(sent),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(error) => Err(error),
    }
}
