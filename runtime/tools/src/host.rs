//! `tool-host`: the process that runs one command and ends everything the command started.
//!
//! The agent starts one for each command, with a socket as its standard input and a pipe as its output. It leads its
//! own session, without a terminal. Processes that the command detaches become its children, so that none can escape:
//!
//! - when the shell ends, all remaining processes get TERM after 100 ms and KILL after another 2 s, until none is left;
//! - when the time limit passes, the agent closes its end of the socket, or the agent is killed, the same happens at
//!   once;
//! - a background command continues until everything it started has ended.
//!
//! Processes below it are marked as started by an agent ([`processes::mark_program`]), and inherit only the descriptors
//! of `/dev/null` and the pipe.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, setrlimit, setsid, wait},
};
use serde::{Deserialize, Serialize};

use crate::{limits, os};

pub use agents::TOOL_HOST as VERB;

/// Interval at which ended adopted processes are reaped while the shell runs.
const REAP: Duration = Duration::from_secs(5);
/// Delay after KILL before processes are listed again.
const AFTER_KILL: Duration = Duration::from_millis(20);
/// How long to keep trying to end processes that cannot be ended: those of another user, or stuck in the kernel.
const GIVE_UP: Duration = Duration::from_millis(500);
/// Maximum number of processes waited for at once.
const WATCHED: usize = 256;

/// The command to run. One line of JSON on the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostRequest {
    pub(crate) command: String,
    pub(crate) timeout_ms: Option<u64>,
}

/// A message from a host. One line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum HostFrame {
    /// The shell could not be started.
    Failed {
        /// The reason.
        error: String,
    },
    /// The shell ended.
    Exited { code: Option<i32>, signal: Option<i32>, timed_out: bool },
    /// No process of the command is left.
    Ended {
        /// Number of processes that had to be ended after the shell.
        left_behind: usize,
        /// Number of processes that could not be ended.
        remaining: usize,
    },
}

/// Runs the command read from the socket on standard input. The body of the hidden command `tool-host`.
#[must_use]
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The error cannot be reported: the agent is gone or was never connected.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    os::close_inherited()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(&null)?;
    // Fails if this process was started as a leader, which is fine.
    setsid().ok();
    os::adopt_orphans()?;
    let mut line = String::new();
    BufReader::new(&control).read_line(&mut line)?;
    let request: HostRequest = serde_json::from_str(&line)?;
    // The command works without the mark, but detached processes are not recognised once their host is gone.
    processes::mark_program().ok();
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
    let started = Command::new(shell())
        .args(["-c", "--", &request.command])
        .stdin(Stdio::from(null.try_clone()?))
        .process_group(0)
        .spawn();
    let shell = match started {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return say(&mut control, &HostFrame::Failed { error: error.to_string() }),
    };
    // Only the command may have the pipe open.
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let mut below = Below { shell, status: None };
    let deadline = request.timeout_ms.map(|limit| Instant::now() + Duration::from_millis(limit));
    let end = below.until_the_shell_ends(&control, deadline)?;
    let exited = |status: Option<WaitStatus>, timed_out| HostFrame::Exited {
        code: status.and_then(WaitStatus::exit_status),
        signal: status.and_then(WaitStatus::terminating_signal),
        timed_out,
    };
    let left_behind;
    if end == End::Shell {
        say(&mut control, &exited(below.status, false)).ok();
        match request.timeout_ms {
            // For a background command, the processes that the shell left are intended.
            None => {
                below.until_all_end(&control)?;
                left_behind = 0;
            }
            Some(_) => {
                below.wait(Instant::now() + limits::DRAIN);
                left_behind = below.live().len();
            }
        }
        below.end_all();
    } else {
        left_behind = 0;
        below.end_all();
        say(&mut control, &exited(below.status, end == End::TimeLimit)).ok();
    }
    say(&mut control, &HostFrame::Ended { left_behind, remaining: below.live().len() })
}

fn say(control: &mut UnixStream, frame: &HostFrame) -> io::Result<()> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    control.write_all(&line)
}

/// `/bin/bash` if it exists, otherwise `bash` from the PATH.
fn shell() -> PathBuf {
    let usual = PathBuf::from("/bin/bash");
    if usual.exists() { usual } else { PathBuf::from("bash") }
}

/// Why a host stops waiting for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Shell,
    TimeLimit,
    Agent,
}

/// The processes below this one.
struct Below {
    shell: Pid,
    status: Option<WaitStatus>,
}

impl Below {
    fn until_the_shell_ends(&mut self, control: &UnixStream, deadline: Option<Instant>) -> io::Result<End> {
        let shell = os::process_descriptor(self.shell)?;
        loop {
            self.reap();
            if self.status.is_some() {
                return Ok(End::Shell);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(End::TimeLimit);
            }
            let mut fds = [PollFd::new(&shell, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
            wait_for(&mut fds, left.map_or(REAP, |left| left.min(REAP)))?;
            // The agent sends nothing more; readable means that it closed its end.
            if !fds[1].revents().is_empty() {
                return Ok(End::Agent);
            }
        }
    }

    /// Waits until no process is left or the agent asks to end them.
    fn until_all_end(&mut self, control: &UnixStream) -> io::Result<()> {
        while self.reap() {
            let watched = self.watched();
            let mut fds = vec![PollFd::new(control, PollFlags::IN)];
            fds.extend(watched.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)));
            wait_for(&mut fds, REAP)?;
            if !fds[0].revents().is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Waits until no process is left or the deadline passes.
    fn wait(&mut self, deadline: Instant) {
        while self.reap() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let watched = self.watched();
            let mut fds: Vec<PollFd<'_>> = watched.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
            // A new process may not be listed yet.
            let left = if fds.is_empty() { left.min(AFTER_KILL) } else { left };
            wait_for(&mut fds, left).ok();
        }
    }

    /// Ends all remaining processes: TERM, 2 s, KILL.
    fn end_all(&mut self) {
        if !self.reap() {
            return;
        }
        self.signal(Signal::TERM);
        // A stopped process handles TERM only after it continues.
        self.signal(Signal::CONT);
        self.wait(Instant::now() + limits::TERM_GRACE);
        let give_up = Instant::now() + GIVE_UP;
        while self.reap() && Instant::now() < give_up {
            // Stopped processes cannot start new ones while they are being killed.
            let mut stopped = 0;
            loop {
                let live = self.signal(Signal::STOP);
                if live <= stopped {
                    break;
                }
                stopped = live;
            }
            self.signal(Signal::KILL);
            self.wait(Instant::now() + AFTER_KILL);
        }
    }

    /// Signals all processes; returns their number.
    fn signal(&self, signal: Signal) -> usize {
        let live = self.live();
        for pid in &live {
            // By a pidfd, so that a reused process id hits no other process.
            let Some(fd) = open(*pid) else { continue };
            if processes::descends_from(*pid, std::process::id()) {
                os::signal(&fd, signal).ok();
            }
        }
        live.len()
    }

    fn live(&self) -> Vec<u32> {
        processes::descendants(std::process::id())
    }

    fn watched(&self) -> Vec<(u32, OwnedFd)> {
        self.live().into_iter().take(WATCHED).filter_map(|pid| Some((pid, open(pid)?))).collect()
    }

    /// Reaps ended processes; returns whether any are left. Detached processes become children of this one, so without
    /// children there are none.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.shell {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

fn open(pid: u32) -> Option<OwnedFd> {
    os::process_descriptor(Pid::from_raw(pid.try_into().ok()?)?).ok()
}

/// Waits for one of the descriptors, at most this long.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], left: Duration) -> io::Result<()> {
    let left =
        Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: left.subsec_nanos().into() };
    match poll(fds, Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How the host is started: a program and its first arguments.
pub(crate) fn command(words: &[OsString]) -> io::Result<Command> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| io::Error::other("no program is configured to run commands"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}
