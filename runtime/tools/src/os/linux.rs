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

/// Opens a path below a directory; fails if a component of the path is a link.
pub(crate) fn open_beneath(root: &OwnedFd, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    openat2(root, relative, flags | OFlags::CLOEXEC, Mode::empty(), rules)
}

/// A path to a file name in an open directory.
pub(crate) fn path_in(directory: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
    Ok(Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name))
}

/// The mode bits that the kernel clears on new files of this process. Read from `/proc`, because umask(2) cannot
/// read them without setting them.
pub(crate) fn umask() -> RawMode {
    let status = std::fs::read_to_string(PathBuf::from("/proc/self/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

/// Creates a pipe that is closed on exec. Returns its reading end and its writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Adopts the orphans among the descendants of this process.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Opens a descriptor of a process. The descriptor becomes readable when the process ends.
pub(crate) fn process_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Sends a signal to the process of a descriptor.
pub(crate) fn signal(process: &OwnedFd, signal: Signal) -> io::Result<()> {
    Ok(pidfd_send_signal(process, signal)?)
}

/// Closes the descriptors that the agent inherited from the process that started it, so that commands do not inherit
/// them. Descriptors that this program opened are closed on exec; inherited ones are not.
pub(crate) fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The list includes the descriptor of the directory itself, which is closed by now.
        let Ok(about) = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) else { continue };
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        if flags.is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0) {
            nix::unistd::close(fd)?;
        }
    }
    Ok(())
}
