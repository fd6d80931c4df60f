//! The process of an agent that is driven over its protocol.
//!
//! Only capture may write to the agent, and the agent itself must not: an answer to its permission request is a line on
//! its standard input, and its shell runs as the same user.
//!
//! - Its streams are socket pairs, each open in one direction only. Any process of the user could reopen a pipe through
//!   `/proc/PID/fd` and write an answer into it; a socket cannot be reopened.
//! - It leads its own session, without a terminal: its processes cannot type into our terminal, which may be asking the
//!   user, nor overwrite the question. Its standard error passes through us as well.
//! - Processes it detaches become our children, which shows that they are not the user's.
//! - It inherits no other descriptors: all of ours are closed on exec.
//! - It ends when this process ends for any reason: the kernel sends it a signal, and its input ends.
//!
//! None of this stops a process that traces another process of the same user. See `docs/security.md`.

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

/// The streams connected to the agent.
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
    /// Starts it in this directory. Must be called by a thread that lives as long as the agent: the kernel ends the
    /// agent with the thread.
    ///
    /// # Errors
    /// If the process cannot be created.
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

    /// Its exit code, with a signal encoded as by a shell; `None` while it runs.
    ///
    /// # Errors
    /// If the status cannot be read.
    pub fn ended(&mut self) -> io::Result<Option<i32>> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.try_wait()?;
        Ok(status.map(|status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))))
    }

    /// Reaps detached processes that have ended: no other process can.
    pub fn reap(&self) {
        processes::reap_adopted(self.group);
    }

    /// Signals it and the processes still in its group.
    pub fn signal(&self, signal: Signal) {
        // Fails if the group is gone, which is fine.
        kill_process_group(self.group, signal).ok();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // In case it has no group yet.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A pair of sockets: data written to the first is read from the second; the other direction is closed.
fn one_way() -> io::Result<(UnixStream, UnixStream)> {
    let (write, read) = UnixStream::pair()?;
    write.shutdown(Shutdown::Read)?;
    read.shutdown(Shutdown::Write)?;
    Ok((write, read))
}

/// Becomes the agent; returns only if that fails.
#[must_use]
pub fn become_program(driver: i32, words: &[OsString]) -> CannotRun {
    let failed = |error: &io::Error| CannotRun::of(words.first().map(OsString::as_os_str).unwrap_or_default(), error);
    let begun = setsid().and_then(|_| crate::os::end_with_parent());
    if let Err(error) = begun {
        return failed(&error.into());
    }
    // The parent may have ended before the kernel was asked to signal that.
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
