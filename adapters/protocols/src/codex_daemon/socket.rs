//! Finds the daemon's socket below a home, and connects to it.
//!
//! Nothing is followed: the directory and the socket are ours and no links, and the process at the
//! other end runs as our user. No call here waits.

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
};

use events::Timestamp;
use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags},
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt},
};
use thiserror::Error;

const DIRECTORY: &str = "app-server-control";
const NAME: &str = "app-server-control.sock";

/// A socket that may be connected to.
#[derive(Debug)]
pub(super) struct DaemonSocket {
    directory: OwnedFd,
    /// When it was made.
    pub(super) made_at: Timestamp,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(super) enum ConnectError {
    /// A link, something else than a socket, or another user's.
    #[error("{DIRECTORY}/{NAME} is a link, not a socket, or owned by another user")]
    Foreign,
    /// The system refused.
    #[error("{DIRECTORY}/{NAME}: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for ConnectError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Looks for the socket of a home; `None` when there is none.
///
/// # Errors
/// When what is there is not to be trusted.
pub(super) fn find(home: &Path) -> Result<Option<DaemonSocket>, ConnectError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match fs::open(home.join(DIRECTORY), flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(ConnectError::Foreign),
        Err(errno) => return Err(errno.into()),
    };
    let stat = match fs::statat(&directory, NAME, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let ours = rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket
        || stat.st_uid != ours
        || fs::fstat(&directory)?.st_uid != ours
    {
        return Err(ConnectError::Foreign);
    }
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the widths differ between platforms")]
    let made_at = Timestamp::from_millisecond(
        (stat.st_ctime as i64).saturating_mul(1_000).saturating_add(stat.st_ctime_nsec as i64 / 1_000_000),
    );
    Ok(Some(DaemonSocket { directory, made_at }))
}

impl DaemonSocket {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens, too many wait, or the listener is not ours.
    pub(super) fn connect(&self) -> Result<UnixStream, ConnectError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // By the open directory: short whatever the home is called, and it cannot be exchanged.
        let address = SocketAddrUnix::new(format!("/proc/self/fd/{}/{NAME}", self.directory.as_raw_fd()))?;
        connect(&socket, &address)?;
        if sockopt::socket_peercred(&socket)?.uid != rustix::process::geteuid() {
            return Err(ConnectError::Foreign);
        }
        Ok(UnixStream::from(socket))
    }
}
