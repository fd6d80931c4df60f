//! The launcher: the process that the user started and that is in their shell's job table.
//!
//! It hands its terminal to a host and then copies no bytes. It makes the terminal raw and puts it
//! back, forwards signals, is stopped when the program is, and ends as the program did. The same
//! serves `capture attach`.

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

/// Interval between checks for the foreground while in the background; no signal reports it.
const FOREGROUND_EVERY: Duration = Duration::from_millis(200);

/// How a launcher, or an attached terminal, came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// The program ended.
    Exited(Exit),
    /// The terminal was detached; the program runs on.
    Detached(RunId),
    /// Our terminal is gone; the program runs on, or is ended.
    HungUp,
    /// The host is gone, and the program with its terminal.
    Lost(Exit),
    /// The host refused.
    Refused(String),
}

/// A host that was started.
#[derive(Debug)]
pub struct Started {
    /// Its process.
    pub host: Child,
    control: LauncherSocket,
}

/// Starts a host for this run and hands it the descriptors: a terminal to read and one to write
/// when one is attached, then the streams the program inherits.
///
/// # Errors
/// When no process can be made.
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
    /// Lets the program begin, without a terminal of ours. Gives its process and the socket at
    /// which one attaches.
    ///
    /// # Errors
    /// When the host could not begin.
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

    /// Lets the program begin and stays until it ended, or its terminal was detached.
    ///
    /// # Errors
    /// When the system gives no descriptors.
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

/// Ends the program of the run with this socket, politely or by force, and waits for its end. `None` when it has not
/// ended in time.
///
/// # Errors
/// When the host refuses, which is an error of the kind `PermissionDenied`, or goes away without an answer.
pub fn end(socket: &std::path::Path, now: bool, within: Duration) -> io::Result<Option<Exit>> {
    let mut exit = None;
    let ended = ask(socket, &ToHost::End { now }, within, |answer| {
        exit = if let FromHost::Exited(how) = answer { Some(*how) } else { None };
        exit.is_some()
    })?;
    Ok(exit.filter(|_| ended))
}

/// Gives the run with this socket another name, which the caller has claimed.
///
/// # Errors
/// When the host refuses, which is an error of the kind `PermissionDenied`, or does not answer in time.
pub fn rename(socket: &std::path::Path, name: &str, within: Duration) -> io::Result<()> {
    let request = ToHost::Rename { name: name.to_owned() };
    match ask(socket, &request, within, |answer| *answer == FromHost::Renamed)? {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::TimedOut, "the run did not answer in time")),
    }
}

/// Asks a host without attaching a terminal; whether the answer came in time.
fn ask(
    socket: &std::path::Path,
    request: &ToHost,
    within: Duration,
    mut is_answer: impl FnMut(&FromHost) -> bool,
) -> io::Result<bool> {
    let until = Instant::now() + within;
    let mut control =
        LauncherSocket::new(UnixStream::connect(processes::local_socket::AddressPath::of(socket)?.as_ref())?);
    // Whom the host refuses it hangs up on; why stands in what it said before.
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
                    "the run's background process ended the connection without an answer; it may be of another version of \
                     capture",
                ));
            }
            Some(_) | None => {}
        }
    }
}

/// Attaches a terminal to the run with this socket and stays until it is detached. `on_watch` is called before the
/// screen is shown, if the terminal only watches because another one types.
///
/// # Errors
/// When nobody listens there, or the system gives no descriptors.
pub fn attach(
    socket: &std::path::Path,
    attach: Attach,
    terminal: [BorrowedFd<'_>; 2],
    raw: Option<RawMode>,
    on_watch: fn(),
) -> io::Result<LaunchOutcome> {
    let control = LauncherSocket::new(UnixStream::connect(processes::local_socket::AddressPath::of(socket)?.as_ref())?);
    // Whom the host refuses it hangs up on; why stands in what it said before.
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
        // Our own group may be in the background when the terminal is put back.
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
                        // That we go on is known by now.
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

    /// Makes the terminal raw, when we are in its foreground.
    fn enter(&mut self) -> bool {
        let foreground = self.raw.as_mut().is_none_or(RawMode::enter);
        self.background = !foreground;
        foreground
    }

    /// A host that is gone is noticed when it is listened to.
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

    /// Stops as the program was stopped, so that the shell has the terminal.
    fn stop(&mut self) {
        if let Some(raw) = &mut self.raw {
            raw.leave();
        }
        // The whole group, as the terminal itself would have: a pipeline is one job.
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
