//! The launcher: the process that the user started and that is in their shell's job table.
//!
//! It passes its terminal to a host and copies no bytes itself. It makes the terminal raw and restores it, forwards
//! signals, stops when the program is stopped, and exits with the program's status. `capture attach` uses the same
//! code.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use events::RunId;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Signal, kill_current_process_group},
};

use super::{
    child::Exit,
    signals::{Signals, block_background_stops},
    terminal::{RawMode, is_orphaned},
    wire::{Attach, FromHost, LauncherSocket, Spec, ToHost},
};
use agents::HOST;

/// Interval between checks for the foreground while in the background; no signal reports the change.
const FOREGROUND_EVERY: Duration = Duration::from_millis(200);

/// How a launcher, or an attached terminal, ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// The program ended.
    Exited(Exit),
    /// The terminal was detached; the program is still running.
    Detached(RunId),
    /// Our terminal was closed; the program is still running, or is being ended.
    HungUp,
    /// The host is gone, and with it the program and its terminal.
    Lost(Exit),
    /// The host refused the request.
    Refused(String),
}

/// A host that was started.
#[derive(Debug)]
pub struct Started {
    /// The host's process.
    pub host: Child,
    control: LauncherSocket,
}

/// Starts a host for this run and passes it the descriptors: if a terminal is attached, one for reading and one for
/// writing, then the streams the program inherits.
///
/// # Errors
/// When the process cannot be created.
pub fn start(spec: Spec, descriptors: &[BorrowedFd<'_>]) -> io::Result<Started> {
    let (ours, theirs) = UnixStream::pair()?;
    let host = Command::new(std::env::current_exe()?)
        .arg(HOST)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let control = LauncherSocket::new(ours);
    control.send_with(&ToHost::Run(Box::new(spec)), descriptors)?;
    Ok(Started { host, control })
}

impl Started {
    /// Lets the program begin without attaching a terminal. Returns its process ID and the socket for attaching.
    ///
    /// # Errors
    /// When the host could not start the program.
    pub fn leave_alone(mut self) -> io::Result<(u32, Option<PathBuf>)> {
        loop {
            match self.control.receive::<FromHost>()? {
                Some(FromHost::Ready { .. }) => self.control.send(&ToHost::Go { foreground: false })?,
                Some(FromHost::Started { pid, socket }) => return Ok((pid, socket)),
                Some(FromHost::Refused { why }) => return Err(io::Error::other(why)),
                Some(FromHost::Stopped | FromHost::Exited(_) | FromHost::Detached { .. } | FromHost::Renamed) => {}
                None if self.control.is_closed() => {
                    return Err(io::Error::other(
                        "the terminal host exited during \
                    startup",
                    ));
                }
                None => {}
            }
        }
    }

    /// Lets the program begin and waits until it has ended or its terminal was detached.
    ///
    /// # Errors
    /// When a descriptor cannot be created.
    pub fn follow(mut self, raw: Option<RawMode>) -> io::Result<LaunchOutcome> {
        let outcome =
            Follow { control: self.control, raw, launcher: true, background: false, on_watch: || () }.run()?;
        if let LaunchOutcome::Lost(_) = outcome {
            use std::os::unix::process::ExitStatusExt;
            let status = self.host.wait()?;
            return Ok(LaunchOutcome::Lost(Exit { code: status.code(), signal: status.signal() }));
        }
        Ok(outcome)
    }
}

/// Ends the program of the run with this socket, gracefully or by force, and waits for its end. `None` if it has not
/// ended in time.
///
/// # Errors
/// When the host refuses, with an error of kind `PermissionDenied`, or closes the connection without an answer.
pub fn end(socket: &std::path::Path, now: bool, within: Duration) -> io::Result<Option<Exit>> {
    let mut exit = None;
    let ended = ask(socket, &ToHost::End { now }, within, |answer| {
        exit = if let FromHost::Exited(how) = answer { Some(*how) } else { None };
        exit.is_some()
    })?;
    Ok(exit.filter(|_| ended))
}

/// Renames the run with this socket to a name that the caller has claimed.
///
/// # Errors
/// When the host refuses, with an error of kind `PermissionDenied`, or does not answer in time.
pub fn rename(socket: &std::path::Path, name: &str, within: Duration) -> io::Result<()> {
    let request = ToHost::Rename { name: name.to_owned() };
    match ask(socket, &request, within, |answer| *answer == FromHost::Renamed)? {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::TimedOut, "the run did not answer in time")),
    }
}

/// Sends a request to a host without attaching a terminal. Returns whether the answer arrived in time.
fn ask(
    socket: &std::path::Path,
    request: &ToHost,
    within: Duration,
    mut is_answer: impl FnMut(&FromHost) -> bool,
) -> io::Result<bool> {
    let until = Instant::now() + within;
    let mut control =
        LauncherSocket::new(UnixStream::connect(processes::local_socket::AddressPath::of(socket)?.as_ref())?);
    // A host that refuses us closes the connection after sending the reason; `receive` returns it.
    control.send(request).ok();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        control.socket().set_read_timeout(Some(left))?;
        match control.receive::<FromHost>()? {
            Some(FromHost::Refused { why }) => return Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
            Some(answer) if is_answer(&answer) => return Ok(true),
            None if control.is_closed() => {
                return Err(io::Error::other(
                    "the run's background process closed the connection without an answer; it may be from another \
                     version of capture",
                ));
            }
            Some(_) | None => {}
        }
    }
}

/// Attaches a terminal to the run with this socket and returns when it is detached. `on_watch` is called before the
/// screen is shown, if the terminal only watches because another one types.
///
/// # Errors
/// When no host listens on the socket, or a descriptor cannot be created.
pub fn attach(
    socket: &std::path::Path,
    attach: Attach,
    terminal: [BorrowedFd<'_>; 2],
    raw: Option<RawMode>,
    on_watch: fn(),
) -> io::Result<LaunchOutcome> {
    let control = LauncherSocket::new(UnixStream::connect(processes::local_socket::AddressPath::of(socket)?.as_ref())?);
    // A host that refuses us closes the connection after sending the reason; the loop receives it.
    control.send_with(&ToHost::Attach(attach), &terminal).ok();
    Follow { control, raw, launcher: false, background: false, on_watch }.run()
}

struct Follow {
    control: LauncherSocket,
    raw: Option<RawMode>,
    launcher: bool,
    background: bool,
    on_watch: fn(),
}

impl Follow {
    fn run(mut self) -> io::Result<LaunchOutcome> {
        loop {
            match self.control.receive::<FromHost>()? {
                Some(FromHost::Ready { watches }) => {
                    if watches {
                        (self.on_watch)();
                    }
                    break;
                }
                Some(FromHost::Refused { why }) => return Ok(LaunchOutcome::Refused(why)),
                Some(_) => {}
                None if self.control.is_closed() => return Ok(LaunchOutcome::Lost(Exit::default())),
                None => {}
            }
        }
        // Our process group may be in the background when the terminal is restored.
        block_background_stops();
        let mut signals = Signals::watch(&[
            Signal::INT,
            Signal::QUIT,
            Signal::USR1,
            Signal::USR2,
            Signal::WINCH,
            Signal::TSTP,
            Signal::CONT,
            Signal::TERM,
            Signal::HUP,
        ])?;
        let foreground = self.enter();
        self.control.send(&ToHost::Go { foreground }).ok();
        self.control.socket().set_nonblocking(true)?;
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(self.control.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            ];
            let look = Timespec { tv_sec: 0, tv_nsec: FOREGROUND_EVERY.subsec_nanos().into() };
            let polled = poll(&mut fds, self.background.then_some(&look));
            if let Err(error) = polled
                && error != rustix::io::Errno::INTR
            {
                return Err(error.into());
            }
            for signal in signals.received() {
                if let Some(outcome) = self.forward(signal) {
                    return Ok(outcome);
                }
            }
            loop {
                match self.control.receive::<FromHost>()? {
                    Some(FromHost::Stopped) => {
                        self.stop();
                        // `CONT` is ignored: `stop` has already resumed.
                        for signal in signals.received().into_iter().filter(|s| *s != Signal::CONT) {
                            if let Some(outcome) = self.forward(signal) {
                                return Ok(outcome);
                            }
                        }
                    }
                    Some(FromHost::Exited(exit)) => return Ok(LaunchOutcome::Exited(exit)),
                    Some(FromHost::Detached { run }) => return Ok(LaunchOutcome::Detached(run)),
                    Some(FromHost::Refused { why }) => return Ok(LaunchOutcome::Refused(why)),
                    Some(FromHost::Ready { .. } | FromHost::Started { .. } | FromHost::Renamed) => {}
                    None if self.control.is_closed() => return Ok(LaunchOutcome::Lost(Exit::default())),
                    None => break,
                }
            }
            if self.background && self.raw.as_mut().is_none_or(RawMode::enter) {
                self.background = false;
                self.send(&ToHost::Continued { foreground: true });
            }
        }
    }

    /// Makes the terminal raw if we are in its foreground.
    fn enter(&mut self) -> bool {
        let foreground = self.raw.as_mut().is_none_or(RawMode::enter);
        self.background = !foreground;
        foreground
    }

    /// Ignores errors: a closed connection is noticed when receiving.
    fn send(&self, message: &ToHost) {
        self.control.send(message).ok();
    }

    fn forward(&mut self, signal: Signal) -> Option<LaunchOutcome> {
        match signal {
            Signal::WINCH => self.send(&ToHost::Resized),
            Signal::CONT => self.resume(),
            Signal::HUP => {
                self.send(&ToHost::Hangup);
                return Some(LaunchOutcome::HungUp);
            }
            Signal::TSTP if !self.launcher => {
                self.send(&ToHost::Suspended);
                self.stop();
            }
            Signal::USR1 | Signal::USR2 if !self.launcher => {}
            _ if !self.launcher => self.send(&ToHost::Detach),
            _ => self.send(&ToHost::Signal { number: signal.as_raw() }),
        }
        None
    }

    /// Stops like the program did, so that the shell gets the terminal.
    fn stop(&mut self) {
        if let Some(raw) = &mut self.raw {
            raw.leave();
        }
        // Stops the whole group, as the terminal itself would: a pipeline is one job.
        if !is_orphaned() {
            kill_current_process_group(Signal::STOP).ok();
        }
        self.resume();
    }

    fn resume(&mut self) {
        if let Some(raw) = &mut self.raw {
            raw.reload();
        }
        let foreground = self.enter();
        self.send(&ToHost::Continued { foreground });
    }
}
