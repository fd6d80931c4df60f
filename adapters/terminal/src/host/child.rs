//! The program of a run: starts it in the foreground of its terminal, and notices when it stops or exits.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, WaitId, WaitIdOptions, WaitOptions, getpid, waitid, waitpid},
};
use serde::{Deserialize, Serialize};

use agents::{CannotRun, RUN_CHILD};
use processes::{check_executable, find_program};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// The exit status a shell would report: for a signal, 128 plus its number.
    #[must_use]
    pub fn shell_code(self) -> u8 {
        let code = self.code.unwrap_or_else(|| 128 + self.signal.unwrap_or(0));
        u8::try_from(code & 0xff).unwrap_or(1)
    }
}

/// An event of the program's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEvent {
    /// It was stopped by this signal.
    Stopped(i32),
    /// It was continued.
    Continued,
    /// It ended.
    Exited(Exit),
}

/// Checks whether a command could be started, searching for it like a shell.
///
/// # Errors
/// When it could not; a damaged file is only detected when it is executed.
pub fn resolve(word: &OsStr, path: Option<&OsStr>) -> Result<(), CannotRun> {
    use std::os::unix::ffi::OsStrExt;
    if word.as_bytes().contains(&b'/') {
        return check_executable(Path::new(word)).map_err(|error| CannotRun::of(word, &error));
    }
    // The path a shell searches if none is set.
    let path = path.unwrap_or_else(|| OsStr::new("/bin:/usr/bin"));
    match find_program(std::env::split_paths(path), word) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CannotRun::NotFound(word.into())),
        Err(error) => Err(CannotRun::of(word, &error)),
    }
}

/// Starts our own executable, which becomes the run's program, in a new process group. `streams` are its standard
/// input, output and error.
///
/// # Errors
/// When the process cannot be created.
pub fn spawn(words: &[OsString], streams: [OwnedFd; 3], environment: &[(String, String)]) -> io::Result<Pid> {
    let [input, output, error] = streams;
    let child = Command::new(std::env::current_exe()?)
        .arg(RUN_CHILD)
        .arg("--")
        .args(words)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(input)
        .stdout(output)
        .stderr(error)
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

/// Becomes the run's program once it is in the foreground of the terminal, so that the program never finds itself in
/// the background. Returns only on failure.
#[must_use]
pub fn become_program(words: &[OsString]) -> CannotRun {
    // Without this, the kernel would stop our background group when it moves itself to the foreground.
    super::signals::block_background_stops();
    if let Ok(terminal) = rustix::fs::open("/dev/tty", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        rustix::termios::tcsetpgrp(&terminal, getpid()).ok();
    }
    super::signals::unblock_background_stops();
    if let Err(error) = processes::mark_program() {
        // The run works without the mark, but orphans of the program are not recognised after its host is gone.
        tracing::warn!(%error, "cannot mark the program of this run as started by capture");
    }
    replace(words)
}

/// Replaces this process with a program, without creating a terminal for it, and restores the handling of SIGPIPE that
/// our runtime changed. Returns only on failure.
#[must_use]
pub fn replace(words: &[OsString]) -> CannotRun {
    let Some((word, rest)) = words.split_first() else { return CannotRun::NotFound(PathBuf::new()) };
    CannotRun::of(word, &Command::new(word).args(rest).exec())
}

/// Adopts orphaned descendants of the program that is started next, so that they remain descendants of this process.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    crate::os::adopt_orphans()
}

/// Reaps adopted processes that have ended, on a thread that ends with the program.
///
/// # Errors
/// When the thread cannot be created.
pub fn reap_orphans(program: Pid) -> io::Result<()> {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let program_runs =
        move || waitid(WaitId::Pid(program), ended | WaitIdOptions::NOHANG).is_ok_and(|status| status.is_none());
    std::thread::Builder::new().name("orphans".into()).spawn(move || {
        while waitid(WaitId::All, ended).is_ok() && program_runs() {
            processes::reap_adopted(program);
        }
    })?;
    Ok(())
}

/// Waits for events of a child, on a thread that ends with the child.
///
/// # Errors
/// When the thread cannot be created.
pub fn wait(pid: Pid, mut tell: impl FnMut(ChildEvent) + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("child".into()).spawn(move || {
        loop {
            match waitpid(Some(pid), WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
                Ok(Some((_, status))) if status.stopped() => {
                    tell(ChildEvent::Stopped(status.stopping_signal().unwrap_or(0)));
                }
                Ok(Some((_, status))) if status.continued() => tell(ChildEvent::Continued),
                Ok(Some((_, status))) => {
                    return tell(ChildEvent::Exited(Exit {
                        code: status.exit_status(),
                        signal: status.terminating_signal(),
                    }));
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return tell(ChildEvent::Exited(Exit::default())),
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_unresolvable_command_yields_the_shell_exit_status() {
        let dir = tempfile::tempdir().unwrap();
        let (plain, tool) = (dir.path().join("plain"), dir.path().join("tool"));
        for (path, mode) in [(&plain, 0o644), (&tool, 0o755)] {
            std::fs::write(path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([std::path::Path::new("/nonexistent"), dir.path()]).unwrap();
        let code = |word: &OsStr| resolve(word, Some(&path)).map_err(|e| e.shell_code());
        assert_eq!(code(OsStr::new("tool")), Ok(()));
        assert_eq!(code(tool.as_os_str()), Ok(()));
        assert_eq!(code(OsStr::new("plain")), Err(126));
        assert_eq!(code(plain.as_os_str()), Err(126));
        assert_eq!(code(dir.path().as_os_str()), Err(126));
        assert_eq!(code(OsStr::new("nothing")), Err(127));
        assert_eq!(code(OsStr::new("")), Err(127));
        assert_eq!(code(dir.path().join("nothing").as_os_str()), Err(127));
        assert_eq!(resolve(OsStr::new("sh"), None), Ok(()));
    }

    #[test]
    fn exits_are_reported_with_shell_exit_statuses() {
        let code = |code, signal| Exit { code, signal }.shell_code();
        assert_eq!((code(Some(0), None), code(Some(255), None)), (0, 255));
        assert_eq!((code(None, Some(9)), code(None, None)), (137, 128));
    }
}
