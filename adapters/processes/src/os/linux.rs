//! Linux: `/proc`, pidfd, resource limits, netlink and `SO_PEERCRED`.

use std::{
    ffi::OsStr,
    fs, io,
    net::{IpAddr, SocketAddr},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
        netlink::{SOCK_DIAG, SocketAddrNetlink},
        recv, sendto, socket_with, sockopt,
    },
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, prlimit, setrlimit},
    time::{ClockId, Timespec, clock_gettime},
};

use crate::local_socket::Listener;

/// Whether this system lets capture read the process table. If not, an agent may have started any process.
pub const READS_PROCESSES: bool = true;

/// The ids of all processes.
pub(crate) fn process_ids() -> io::Result<impl Iterator<Item = u32>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()))
}

/// The arguments of a process; each ends with NUL.
pub(crate) fn arguments(pid: u32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/cmdline"))
}

/// The environment a process was started with; each variable ends with NUL.
pub(crate) fn environment(pid: u32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ"))
}

/// The user of a process.
pub(crate) fn user(pid: u32) -> io::Result<u32> {
    fs::metadata(format!("/proc/{pid}")).map(|process| process.uid())
}

/// The working directory of a process.
pub(crate) fn working_directory(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd"))
}

/// The path of the file that a descriptor of a process refers to.
pub(crate) fn descriptor(pid: u32, number: u32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{number}"))
}

/// The targets of the descriptors of a process; `None` for a descriptor that cannot be read.
pub(crate) fn descriptors(pid: u32) -> io::Result<impl Iterator<Item = Option<PathBuf>>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    Ok(entries.map(|entry| fs::read_link(entry.ok()?.path()).ok()))
}

/// A field of `/proc/<pid>/stat`, numbered as in proc(5), from 3.
pub(crate) fn stat_field(pid: u32, number: usize) -> Option<String> {
    let stat = read_with_name(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any bytes, including parentheses.
    stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().nth(number.checked_sub(3)?).map(str::to_owned)
}

/// The children of a process, started by any of its threads; empty if the process cannot be examined.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The time since boot, including sleep: the clock of the start times of processes.
pub(crate) fn since_boot() -> Timespec {
    clock_gettime(ClockId::Boottime)
}

/// Whether another process runs the executable file of this process.
pub(crate) fn runs_own_executable(pid: u32) -> bool {
    let file = |path: &str| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let own = file("/proc/self/exe");
    own.is_some() && own == file(&format!("/proc/{pid}/exe"))
}

/// The content of `/proc/<pid>/status`.
pub(crate) fn status(pid: u32) -> io::Result<String> {
    read_with_name(format!("/proc/{pid}/status"))
}

/// Reads a file that contains the name of a program. The kernel cuts the name after 15 bytes, so it may end within a
/// character; such bytes are replaced.
fn read_with_name(path: String) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The mark of a process: its hard limit on file locks. `None` if unlimited, as for every process without a mark.
pub(crate) fn mark_of(pid: u32) -> io::Result<Option<u64>> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"));
    let hard = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    match hard {
        Some("unlimited") => Ok(None),
        Some(number) => number.parse().map(Some).map_err(io::Error::other),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Marks another process.
pub(crate) fn mark(program: Pid, mark: u64) -> io::Result<()> {
    prlimit(Some(program), Resource::Locks, limit(mark))?;
    Ok(())
}

/// Marks this process, unless its mark is already lower.
pub(crate) fn lower_own_mark(mark: u64) -> io::Result<()> {
    let lowest = getrlimit(Resource::Locks).maximum.map_or(mark, |hard| hard.min(mark));
    setrlimit(Resource::Locks, limit(lowest)).map_err(Into::into)
}

fn limit(mark: u64) -> Rlimit {
    Rlimit { current: Some(mark), maximum: Some(mark) }
}

/// Opens a descriptor that becomes readable when the process ends.
pub(crate) fn exit_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Creates a non-blocking pipe that is closed on exec. Returns its reading end and its writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

/// A Unix socket that is closed on exec.
pub(crate) fn unix_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// The process at the other end of a Unix socket.
pub(crate) fn peer(socket: impl AsFd) -> io::Result<Listener> {
    let peer = sockopt::socket_peercred(&socket)?;
    Ok(Listener { uid: peer.uid.as_raw(), pid: u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or_default() })
}

/// A short path to a file through a descriptor of its directory. The path is valid while the descriptor is open.
pub(crate) fn by_descriptor(directory: &Path, name: &OsStr) -> io::Result<(PathBuf, OwnedFd)> {
    let directory = openat(CWD, directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    Ok((path, directory))
}

/// The kernel's tables of TCP sockets; each is read when the iterator reaches it.
pub(crate) fn tcp_tables() -> impl Iterator<Item = String> {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().map(|table| fs::read_to_string(table).unwrap_or_default())
}

/// `SOCK_DIAG_BY_FAMILY`: the type of the request and of its answer.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// `TCP_LISTEN`. If the connection does not exist, the kernel may return a listener instead.
const LISTEN: u8 = 10;
/// Length of a netlink header.
const HEADER: usize = 16;
/// Length of `struct inet_diag_sockid`.
const SOCKET_ID: usize = 48;

/// The user of a TCP connection of this machine, as sock_diag(7) reports it.
pub(crate) fn query_user(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    sendto(&socket, &request(local, remote), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 512];
    // The kernel queues the answer before `sendto` returns.
    let (length, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    user_in(answer.get(..length).unwrap_or_default(), local, remote)
}

/// The request: a netlink header and a `struct inet_diag_req_v2` (linux/inet_diag.h).
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let (local_ip, remote_ip) = (local.ip().to_canonical(), remote.ip().to_canonical());
    let family = if local_ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let length = HEADER + 8 + SOCKET_ID;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or_default().to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    const TCP: u8 = 6;
    bytes.extend([family.as_raw() as u8, TCP, 0, 0]);
    // All states.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    for ip in [local_ip, remote_ip] {
        match ip {
            IpAddr::V4(ip) => {
                bytes.extend(ip.octets());
                bytes.extend([0; 12]);
            }
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
    }
    // Any interface, and no cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

/// The user in an answer: a header and a `struct inet_diag_msg`, or an error.
fn user_in(answer: &[u8], local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let cut = || io::Error::from(io::ErrorKind::InvalidData);
    let word = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes).ok_or_else(cut)?;
    if kind == ERROR {
        let errno = word(HEADER).ok_or_else(cut)?.wrapping_neg();
        let errno = i32::try_from(errno).map_err(|_| cut())?;
        return if errno == Errno::NOENT.raw_os_error() { Ok(None) } else { Err(io::Error::from_raw_os_error(errno)) };
    }
    let message = answer.get(HEADER..).filter(|_| kind == BY_FAMILY).ok_or_else(cut)?;
    let &[family, state, ..] = message else { return Err(cut()) };
    let id = message.get(4..4 + SOCKET_ID).ok_or_else(cut)?;
    let port = |at: usize| Some(u16::from_be_bytes(id.get(at..at + 2)?.try_into().ok()?));
    let ip = |at: usize| -> Option<IpAddr> {
        if u16::from(family) == AddressFamily::INET.as_raw() {
            Some(<[u8; 4]>::try_from(id.get(at..at + 4)?).ok()?.into())
        } else {
            Some(<[u8; 16]>::try_from(id.get(at..at + 16)?).ok()?.into())
        }
    };
    let is = |address: SocketAddr, ip: Option<IpAddr>, port: Option<u16>| {
        port == Some(address.port()) && ip.map(|ip| ip.to_canonical()) == Some(address.ip().to_canonical())
    };
    if state == LISTEN || !is(local, ip(4), port(0)) || !is(remote, ip(20), port(2)) {
        return Ok(None);
    }
    // The id is followed by three words, the user and the inode. A socket without an inode is not open in any process.
    let (uid, inode) = (word(HEADER + 4 + SOCKET_ID + 12), word(HEADER + 4 + SOCKET_ID + 16));
    Ok(uid.filter(|_| inode.is_some_and(|inode| inode != 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_netlink_replies_yield_no_user() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let full = {
            let mut bytes = request(address, address);
            bytes.resize(512, 0);
            bytes
        };
        for length in 0..HEADER + 4 + SOCKET_ID + 20 {
            assert_eq!(user_in(&full[..length], address, address).ok().flatten(), None, "{length}");
        }
    }
}
