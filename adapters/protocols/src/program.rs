//! The process of an agent that is driven over its protocol.
//!
//! Nobody but us may speak to it, least of all itself: an answer to its request for permission is a line
//! on its standard input, and its shell runs as the same user.
//!
//! - It has socket pairs, each open in one direction only. A pipe could be opened again through
//!   `/proc/PID/fd` by any process of the user, and an answer written into it; a socket cannot.
//! - It leads a session of its own, without a terminal: what it starts cannot type into ours, which may
//!   be asking its user, nor write over the question. Its standard error comes through us as well.
//! - What it cuts loose becomes a child of ours, and is known by that to be none of the user's.
//! - It inherits nothing else of ours: all our descriptors are closed on exec.
//! - It ends when we end: by a signal of the kernel, whatever way we go, and its input ends too.
//!
//! What no one of this can keep out is a process that traces another of the same user. See
//! `docs/security.md`.

use std::{
    ffi::OsString,
    io,
    net::Shutdown,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, getppid, kill_process_group, setsid};

use agents::{CannotRun, DRIVE_CHILD, DRIVEN};

/// A running agent.
#[derive(Debug)]
pub struct Program {
    child: Child,
    group: Pid,
}

/// What is written to it, and what it writes.
#[derive(Debug)]
pub struct Streams {
    /// Its standard input.
    pub input: UnixStream,
    /// Its standard output.
    pub output: UnixStream,
    /// Its standard error.
    pub error: UnixStream,
}

impl Program {
    /// Starts it in this directory. To be called by a thread that lives as long as the agent is to: the
    /// kernel ends the agent with it.
    ///
    /// # Errors
    /// When no process can be made.
    pub fn start(words: &[OsString], cwd: &Path) -> io::Result<(Self, Streams)> {
        let (input, its_input) = one_way()?;
        let (its_output, output) = one_way()?;
        let (its_error, error) = one_way()?;
        crate::os::adopt_orphans()?;
        let child = Command::new(std::env::current_exe()?)
            .arg(DRIVE_CHILD)
            .arg(rustix::process::getpid().as_raw_nonzero().to_string())
            .arg("--")
            .args(words)
            .env(DRIVEN, rustix::process::getpid().as_raw_nonzero().to_string())
            .current_dir(cwd)
            .stdin(OwnedFd::from(its_input))
            .stdout(OwnedFd::from(its_output))
            .stderr(OwnedFd::from(its_error))
            .spawn()?;
        let group = Pid::from_child(&child);
        Ok((Self { child, group }, Streams { input, output, error }))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit code, a signal as a shell tells it; `None` while it runs.
    ///
    /// # Errors
    /// When it cannot be asked for.
    pub fn ended(&mut self) -> io::Result<Option<i32>> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.try_wait()?;
        Ok(status.map(|status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))))
    }

    /// Takes leave of what it cut loose and has ended: nobody else is there to do it.
    pub fn reap(&self) {
        processes::reap_adopted(self.group);
    }

    /// Signals it and all it started that is in its group still.
    pub fn signal(&self, signal: Signal) {
        // Gone is what it is to be.
        kill_process_group(self.group, signal).ok();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // Where it has no group yet.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Two ends: what is written to the first is read from the second, and nothing the other way.
fn one_way() -> io::Result<(UnixStream, UnixStream)> {
    let (write, read) = UnixStream::pair()?;
    write.shutdown(Shutdown::Read)?;
    read.shutdown(Shutdown::Write)?;
    Ok((write, read))
}

/// Becomes the agent; comes back only when that fails.
#[must_use]
pub fn become_program(driver: i32, words: &[OsString]) -> CannotRun {
    let failed = |error: &io::Error| CannotRun::of(words.first().map(OsString::as_os_str).unwrap_or_default(), error);
    let begun = setsid().and_then(|_| crate::os::end_with_parent());
    if let Err(error) = begun {
        return failed(&error.into());
    }
    // Whoever started us may have ended before the kernel was told to say so.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(driver) {
        return failed(&io::Error::other("the process that started it is gone"));
    }
    let Some((program, arguments)) = words.split_first() else {
        return failed(&io::Error::from(io::ErrorKind::NotFound));
    };
    if let Err(error) = processes::mark_program() {
        return failed(&error);
    }
    failed(&Command::new(program).args(arguments).exec())
}
