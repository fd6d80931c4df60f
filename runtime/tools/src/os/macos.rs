//! macOS: opens paths component by component. Running commands and changing files fail, because macOS lacks the calls
//! they need.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, RawMode, openat},
    io::Errno,
    process::{Pid, Signal},
};

/// Flag for opening a directory that is not read: macOS opens it for reading.
pub(crate) const PATH: OFlags = OFlags::RDONLY;

/// Opens a path below a directory; fails if a component is a link, because each is opened without following links.
pub(crate) fn open_beneath(root: &OwnedFd, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let always = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    let Some((name, folders)) = names.split_last() else {
        return openat(root, ".", flags | always, Mode::empty());
    };
    let mut at: Option<OwnedFd> = None;
    for folder in folders {
        let opened = openat(at.as_ref().unwrap_or(root), *folder, PATH | OFlags::DIRECTORY | always, Mode::empty())?;
        at = Some(opened);
    }
    openat(at.as_ref().unwrap_or(root), *name, flags | always, Mode::empty())
}

/// A path to a file name in an open directory: macOS has no path that follows the descriptor, so this fails.
pub(crate) fn path_in(_: &OwnedFd, _: &OsStr) -> io::Result<PathBuf> {
    Err(ErrorKind::Unsupported.into())
}

/// The mode bits that the kernel clears on new files of this process: unknown, so all bits of the group and of others.
pub(crate) fn umask() -> RawMode {
    0o077
}

/// Creates a pipe that is closed on exec. Returns its reading end and its writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}

/// Adopts the orphans among the descendants of this process: macOS has no subreaper, so this fails and commands are not
/// run.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Opens a descriptor of a process: macOS has none, so this fails.
pub(crate) fn process_descriptor(_: Pid) -> io::Result<OwnedFd> {
    Err(ErrorKind::Unsupported.into())
}

/// Sends a signal to the process of a descriptor: macOS has no such call, so this fails.
pub(crate) fn signal(_: &OwnedFd, _: Signal) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Closes inherited descriptors: macOS cannot list them safely, so this fails.
pub(crate) fn close_inherited() -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
