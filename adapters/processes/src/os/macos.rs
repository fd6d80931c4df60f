//! macOS: the peer of a socket, the end of a process, pipes and clocks.
//!
//! The dependencies have no safe calls for the process table, so the functions that need it fail. Callers then treat
//! every process as started by an agent, and find no agents.

use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use nix::sys::{
    event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue},
    socket::{
        getsockopt,
        sockopt::{LocalPeerCred, LocalPeerPid},
    },
};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::{FdFlags, fcntl_getfd, fcntl_setfd},
    net::{AddressFamily, SocketType},
    process::Pid,
    time::{ClockId, Timespec, clock_gettime},
};

use crate::local_socket::Listener;

fn unsupported<T>() -> io::Result<T> {
    Err(ErrorKind::Unsupported.into())
}

/// Whether this system lets capture read the process table. If not, an agent may have started any process.
pub const READS_PROCESSES: bool = false;

/// The ids of all processes.
pub(crate) fn process_ids() -> io::Result<impl Iterator<Item = u32>> {
    unsupported::<std::iter::Empty<u32>>()
}

/// The arguments of a process; each ends with NUL.
pub(crate) fn arguments(_: u32) -> io::Result<Vec<u8>> {
    unsupported()
}

/// The environment a process was started with; each variable ends with NUL.
pub(crate) fn environment(_: u32) -> io::Result<Vec<u8>> {
    unsupported()
}

/// The user of a process.
pub(crate) fn user(_: u32) -> io::Result<u32> {
    unsupported()
}

/// The working directory of a process.
pub(crate) fn working_directory(_: u32) -> io::Result<PathBuf> {
    unsupported()
}

/// The path of the file that a descriptor of a process refers to.
pub(crate) fn descriptor(_: u32, _: u32) -> io::Result<PathBuf> {
    unsupported()
}

/// The targets of the descriptors of a process; `None` for a descriptor that cannot be read.
pub(crate) fn descriptors(_: u32) -> io::Result<impl Iterator<Item = Option<PathBuf>>> {
    unsupported::<std::iter::Empty<Option<PathBuf>>>()
}

/// A field of `/proc/<pid>/stat`: macOS has none.
pub(crate) fn stat_field(_: u32, _: usize) -> Option<String> {
    None
}

/// The children of a process: unknown, so none.
pub(crate) fn children(_: u32) -> Vec<u32> {
    Vec::new()
}

/// The time since boot, including sleep.
pub(crate) fn since_boot() -> Timespec {
    clock_gettime(ClockId::Monotonic)
}

/// Whether another process runs the executable file of this process: unknown, so false.
pub(crate) fn runs_own_executable(_: u32) -> bool {
    false
}

/// The content of `/proc/<pid>/status`: macOS has none.
pub(crate) fn status(_: u32) -> io::Result<String> {
    unsupported()
}

/// The mark of a process: macOS has no limit that is inherited and otherwise unused.
pub(crate) fn mark_of(_: u32) -> io::Result<Option<u64>> {
    unsupported()
}

/// Marks another process.
pub(crate) fn mark(_: Pid, _: u64) -> io::Result<()> {
    unsupported()
}

/// Marks this process, unless its mark is already lower.
pub(crate) fn lower_own_mark(_: u64) -> io::Result<()> {
    unsupported()
}

/// Opens a descriptor that becomes readable when the process ends: a kernel queue (kqueue(2), `NOTE_EXIT`).
pub(crate) fn exit_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    let queue = Kqueue::new()?;
    let ident = usize::try_from(pid.as_raw_nonzero().get()).map_err(io::Error::other)?;
    let flags = EvFlags::EV_ADD | EvFlags::EV_ENABLE;
    let exit = KEvent::new(ident, EventFilter::EVFILT_PROC, flags, FilterFlag::NOTE_EXIT, 0, 0);
    queue.kevent(&[exit], &mut [], None)?;
    Ok(queue.into())
}

/// Creates a non-blocking pipe that is closed on exec. Returns its reading end and its writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    let ends = (OwnedFd::from(read), OwnedFd::from(write));
    for end in [&ends.0, &ends.1] {
        fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
    }
    Ok(ends)
}

/// A Unix socket that is closed on exec.
pub(crate) fn unix_socket() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, fcntl_getfd(&socket)? | FdFlags::CLOEXEC)?;
    Ok(socket)
}

/// The process at the other end of a Unix socket.
pub(crate) fn peer(socket: impl AsFd) -> io::Result<Listener> {
    let uid = getsockopt(&socket, LocalPeerCred)?.uid();
    let pid = u32::try_from(getsockopt(&socket, LocalPeerPid)?).map_err(io::Error::other)?;
    Ok(Listener { uid, pid })
}

/// A short path to a file through a descriptor of its directory: macOS has no such paths.
pub(crate) fn by_descriptor(_: &Path, _: &OsStr) -> io::Result<(PathBuf, OwnedFd)> {
    unsupported()
}

/// The kernel's tables of TCP sockets: macOS does not provide them as text.
pub(crate) fn tcp_tables() -> impl Iterator<Item = String> {
    std::iter::empty()
}

/// The user of a TCP connection of this machine.
pub(crate) fn query_user(_: SocketAddr, _: SocketAddr) -> io::Result<Option<u32>> {
    unsupported()
}
