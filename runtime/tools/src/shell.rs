//! Runs commands: starts a host for each one, reads its output, and receives its outcome.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    net::Shutdown,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::Child,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags},
    process::{Pid, Signal, kill_process},
};

use crate::{
    host::{self, HostFrame, HostRequest, wait_for},
    limits, os,
    result::Exit,
};

/// Extra time for a host beyond what it needs to end everything.
const SLACK: Duration = Duration::from_millis(900);
/// Maximum length of a line from a host.
const FRAME_BYTES: usize = 64 * 1024;

/// The settings for running commands.
#[derive(Debug)]
pub(crate) struct CommandRunner {
    /// The command line of the host program.
    pub(crate) host: Vec<OsString>,
    /// The complete environment of commands.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The working directory of commands.
    pub(crate) cwd: PathBuf,
}

/// A running command.
pub(crate) struct Running {
    host: Child,
    /// The mark of the host, by which its processes are recognised after it is gone.
    mark: Option<u64>,
    control: UnixStream,
    heard: Vec<u8>,
    output: OwnedFd,
    output_open: bool,
    /// When to give up on a host that should have ended everything but sends nothing.
    give_up: Option<Instant>,
    asked_to_end: bool,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    /// Number of processes the shell left behind, which were ended.
    pub(crate) left_behind: usize,
    /// Number of processes that could not be ended.
    pub(crate) remaining: usize,
}

/// The state of a command so far.
#[derive(Debug, Default)]
struct HostProgress {
    exit: Option<Exit>,
    ended: Option<(usize, usize)>,
    failed: Option<String>,
}

impl CommandRunner {
    /// Starts a command. Without a time limit it runs in the background.
    pub(crate) fn start(&self, line: &str, timeout: Option<Duration>) -> io::Result<Running> {
        let (read, write) = os::pipe()?;
        let (control, its) = UnixStream::pair()?;
        let host = host::command(&self.host)?
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .stdin(OwnedFd::from(its))
            .stdout(write.try_clone()?)
            .stderr(write)
            .spawn()?;
        rustix::io::ioctl_fionbio(&read, true)?;
        let request = HostRequest {
            command: line.to_owned(),
            timeout_ms: timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        };
        let mut request = serde_json::to_vec(&request)?;
        request.push(b'\n');
        let mut running = Running {
            mark: processes::program_mark(host.id()),
            host,
            control,
            heard: Vec::new(),
            output: read,
            output_open: true,
            give_up: timeout.map(|limit| Instant::now() + limit + limits::TERM_GRACE + SLACK),
            asked_to_end: false,
        };
        // If this fails, dropping `running` ends the host.
        running.control.write_all(&request)?;
        running.control.set_nonblocking(true)?;
        Ok(running)
    }
}

impl Running {
    /// Reads the output until the command has ended with everything it started. `end` becomes readable to end the
    /// command.
    pub(crate) fn finish(mut self, end: impl AsFd, mut printed: impl FnMut(&[u8])) -> Result<Ended, String> {
        let mut progress = HostProgress::default();
        let mut buffer = vec![0; 64 * 1024];
        let mut open = true;
        while open && progress.ended.is_none() && progress.failed.is_none() {
            let left = self.give_up.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break;
            }
            let nothing = PollFlags::empty();
            let mut fds = [
                PollFd::new(&self.control, PollFlags::IN),
                // At the end of a stream, polling it would wake us continuously.
                PollFd::from_borrowed_fd(end.as_fd(), if self.asked_to_end { nothing } else { PollFlags::IN }),
                PollFd::new(&self.output, if self.output_open { PollFlags::IN } else { nothing }),
            ];
            let fds = if self.output_open { &mut fds[..] } else { &mut fds[..2] };
            wait_for(fds, left.unwrap_or(Duration::from_secs(3600))).map_err(|error| error.to_string())?;
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready.get(2) == Some(&true) {
                self.read_output(&mut buffer, &mut printed, false);
            }
            if ready[1] && !self.asked_to_end {
                self.ask_to_end();
            }
            if ready[0] {
                open = self.listen(&mut progress);
            }
        }
        self.read_output(&mut buffer, &mut printed, true);
        let asked = self.asked_to_end;
        if let Some(error) = progress.failed {
            return Err(format!("bash cannot be started: {error}"));
        }
        match (progress.ended, progress.exit) {
            (Some((left_behind, remaining)), Some(exit)) => {
                Ok(Ended { exit: if asked { Exit::Cancelled } else { exit }, left_behind, remaining })
            }
            // The command killed its host: the processes left are found by its mark.
            (None | Some(_), exit) => {
                let remaining = self.sweep();
                match exit.filter(|_| !asked) {
                    Some(exit) => Ok(Ended { exit, left_behind: 0, remaining }),
                    None if asked => Ok(Ended { exit: Exit::Cancelled, left_behind: 0, remaining }),
                    None => Err(
                        "the process that ran the command was ended, so capture does not know how the command ended"
                            .into(),
                    ),
                }
            }
        }
    }

    /// Asks the host to end everything.
    fn ask_to_end(&mut self) {
        self.asked_to_end = true;
        self.control.shutdown(Shutdown::Write).ok();
        let latest = Instant::now() + limits::TERM_GRACE + SLACK;
        self.give_up = Some(self.give_up.map_or(latest, |at| at.min(latest)));
    }

    /// Reads available output; with `all`, until none is left.
    fn read_output(&mut self, buffer: &mut [u8], printed: &mut impl FnMut(&[u8]), all: bool) {
        // A process that prints endlessly must not delay its end.
        let mut pieces = 0;
        while self.output_open && (pieces < 16 || all && pieces < 1024) {
            match rustix::io::read(&self.output, &mut *buffer) {
                Ok(0) => self.output_open = false,
                Ok(bytes) => printed(&buffer[..bytes]),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.output_open = false,
            }
            pieces += 1;
        }
    }

    /// Reads messages of the host; returns whether there may be more.
    fn listen(&mut self, progress: &mut HostProgress) -> bool {
        let mut buffer = [0; 4096];
        let open = match self.control.read(&mut buffer) {
            Ok(0) => false,
            Ok(bytes) => {
                self.heard.extend_from_slice(&buffer[..bytes]);
                self.heard.len() <= FRAME_BYTES
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        };
        while let Some(end) = memchr::memchr(b'\n', &self.heard) {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(HostFrame::Failed { error }) => progress.failed = Some(error),
                Ok(HostFrame::Exited { timed_out: true, .. }) => progress.exit = Some(Exit::TimedOut),
                Ok(HostFrame::Exited { code: Some(code), .. }) => progress.exit = Some(Exit::Code(code)),
                Ok(HostFrame::Exited { signal, .. }) => progress.exit = Some(Exit::Signal(signal.unwrap_or(0))),
                Ok(HostFrame::Ended { left_behind, remaining }) => progress.ended = Some((left_behind, remaining)),
                Err(_) => {}
            }
        }
        open
    }

    /// Kills a silent host and the processes left of its command; returns how many remain.
    fn sweep(&mut self) -> usize {
        let host = self.host.id();
        self.host.kill().ok();
        self.host.wait().ok();
        let mut left = 0;
        for _ in 0..8 {
            let found = processes::left_of(host, self.mark);
            left = found.len();
            for pid in found {
                if let Some(pid) = Pid::from_raw(pid.try_into().unwrap_or_default()) {
                    kill_process(pid, Signal::KILL).ok();
                }
            }
            if left == 0 {
                break;
            }
        }
        left
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The host ends everything once this end is closed; a caller that does not finish it need not wait for that.
        self.control.shutdown(Shutdown::Both).ok();
        self.host.wait().ok();
    }
}
