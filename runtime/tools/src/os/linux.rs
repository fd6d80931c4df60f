//! Linux: `openat2`, `/proc/self`, pidfd, subreapers.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, RawMode, ResolveFlags, openat2},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper},
};

/// Flag for opening a directory that is not read.
pub(crate) const PATH: OFlags = OFlags::PATH;

/// Opens a path below a directory, and fails if a link is in the way.
pub(crate) fn open_beneath(root: &OwnedFd, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    openat2(root, relative, flags | OFlags::CLOEXEC, Mode::empty(), rules)
}

/// A path to a name in an open directory.
pub(crate) fn path_in(directory: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
    Ok(Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name))
}

/// The mode bits that new files of this process do not get. Asked of the kernel, as there is no call that only reads it.
pub(crate) fn umask() -> RawMode {
    let status = std::fs::read_to_string(PathBuf::from("/proc/self/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

/// A pipe that is closed on exec: its reading end, its writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Adopts the orphans among the descendants of this process.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// A descriptor of a process, which can be read once the process has ended.
pub(crate) fn process_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Signals the process of a descriptor.
pub(crate) fn signal(process: &OwnedFd, signal: Signal) -> io::Result<()> {
    Ok(pidfd_send_signal(process, signal)?)
}

/// Closes what the agent did not open itself and got from whoever started it: the command must not have it. All that
/// is opened here is closed on exec, which tells the two apart.
pub(crate) fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The descriptor of the directory itself is gone by now.
        let Ok(about) = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) else { continue };
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        if flags.is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0) {
            nix::unistd::close(fd)?;
        }
    }
    Ok(())
}
