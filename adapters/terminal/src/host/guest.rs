//! A terminal attached to a run: the launcher's, or one of `capture attach`.
//!
//! One terminal types and sets the run's size; it may block the program, as any terminal does. The others watch: a slow
//! one misses bytes and is redrawn later.

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

/// Bytes queued for the typing terminal above which the program's output is not read.
const ROOM: usize = 64 << 10;
/// Maximum number of bytes queued for a terminal that only watches.
const BEHIND: usize = 256 << 10;
/// Bytes written at once to a blocking descriptor: as many as a terminal that polls as writable accepts.
const BLOCKING_WRITE: usize = 256;
/// Control character (CAN) that ends an escape sequence cut off midway.
const CANCEL: u8 = 0x18;

/// What a terminal may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Types, and sets the run's size.
    Writer,
    /// Watches.
    Viewer,
}

/// Whether a terminal shows the current screen.
#[derive(Debug)]
enum Paint {
    /// It receives bytes as they arrive.
    Live,
    /// It must be sent the current screen first.
    Wanted,
    /// The screen was requested; these bytes arrived since.
    Asked(Vec<u8>, Instant),
}

/// The outcome of reading a terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// This many bytes.
    Bytes(usize),
    /// Nothing to read now.
    Nothing,
    /// The terminal is gone.
    Gone,
}

/// An attached terminal.
#[derive(Debug)]
pub struct Guest {
    /// Its number, unique within the run.
    pub id: u64,
    /// The connection to the process that owns the terminal.
    pub control: LauncherSocket,
    /// Whether that process is the launcher.
    pub launcher: bool,
    /// Its current role.
    pub role: Role,
    /// Whether it may never type.
    pub read_only: bool,
    /// Whether the terminal is raw and bytes flow.
    pub live: bool,
    /// Whether it may be read: its process is in the foreground.
    pub foreground: bool,
    /// Whether its process is stopped, so another process may be using the terminal.
    pub suspended: bool,
    /// The key that detaches it.
    pub key: DetachKey,
    /// The terminal's settings before the run.
    pub saved: Option<Saved>,
    /// The file that typed bytes are read from.
    pub input: Option<File>,
    /// The file that output is written to.
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

    /// A connection that has not sent a request yet.
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

    /// Sets its terminal: one descriptor for reading, one for writing.
    pub fn bring(&mut self, input: OwnedFd, output: OwnedFd) {
        self.saved = Saved::of(input.as_fd()).or_else(|| Saved::of(output.as_fd()));
        let output = open_again(output, OFlags::WRONLY);
        self.blocks = fcntl_getfl(&output).map_or(true, |flags| !flags.contains(OFlags::NONBLOCK));
        self.input = Some(open_again(input, OFlags::RDONLY));
        self.output = Some(output);
    }

    /// Stops writing to it.
    pub fn forget(&mut self) {
        self.output = None;
        self.pending.clear();
    }

    /// Drops the queued bytes and cancels an escape sequence that this cuts off.
    pub fn skip(&mut self) {
        if !self.pending.is_empty() {
            self.pending.clear();
            self.pending.push(&[CANCEL]);
        }
    }

    /// Its size, if it has one.
    #[must_use]
    pub fn size(&self) -> Option<Winsize> {
        tcgetwinsize(self.saved.as_ref()?).ok()
    }

    /// Whether everything queued for it was written.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether this terminal allows more of the program's output to be read.
    #[must_use]
    pub fn accepts_output(&self) -> bool {
        self.accepts_behind(ROOM)
    }

    /// Whether no output of the program is queued for this terminal.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        self.accepts_behind(1)
    }

    /// Whether fewer than `room` bytes are queued for this terminal; true for a terminal that may not block the program.
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

    /// Whether its process is stopped while the program keeps running: it is redrawn later.
    fn is_away(&self) -> bool {
        self.suspended && !self.launcher
    }

    /// Requires the current screen to be sent before anything else.
    pub fn want_paint(&mut self) {
        self.paint = Paint::Wanted;
    }

    /// Whether the current screen should be requested now.
    #[must_use]
    pub fn wants_paint(&self) -> bool {
        self.live && !self.suspended && matches!(self.paint, Paint::Wanted) && self.pending.is_empty()
    }

    /// Marks the screen as requested.
    pub fn paint_asked(&mut self, now: Instant) {
        self.paint = Paint::Asked(Vec::new(), now);
    }

    /// Since when it has been waiting for the screen.
    #[must_use]
    pub fn waits_for_paint(&self) -> Option<Instant> {
        match &self.paint {
            Paint::Asked(_, since) => Some(*since),
            Paint::Live | Paint::Wanted => None,
        }
    }

    /// Receives the screen as of the moment it was requested.
    pub fn painted(&mut self, bytes: &[u8]) {
        match std::mem::replace(&mut self.paint, Paint::Live) {
            Paint::Asked(since, _) => {
                self.queue(bytes);
                self.queue(&since);
            }
            Paint::Live | Paint::Wanted => {}
        }
    }

    /// Receives output of the program.
    ///
    /// # Errors
    /// When the terminal is gone.
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

    /// Queues bytes to be written.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.pending.push(bytes);
    }

    /// Writes as many queued bytes as the terminal accepts.
    ///
    /// # Errors
    /// When the terminal is gone.
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

    /// Reads typed bytes. If the input is not a terminal, its end only stops the reading.
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

/// Writes once; returns 0 if the terminal accepts nothing now.
fn write(output: &mut Option<File>, blocks: bool, bytes: &[u8]) -> io::Result<usize> {
    let Some(output) = output else { return Ok(bytes.len()) };
    let bytes = if blocks { &bytes[..bytes.len().min(BLOCKING_WRITE)] } else { bytes };
    match output.write(bytes) {
        Ok(sent) => Ok(sent),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(error) => Err(error),
    }
}
