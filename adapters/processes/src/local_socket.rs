//! Connects to a Unix socket of our own user, and identifies the process that listens there.

use std::{io, os::unix::net::UnixStream, path::Path, time::Duration};

use rustix::{
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt},
    process::geteuid,
};

/// The process that listens at the other end of a connection, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Its user.
    pub uid: u32,
    /// Its process id; 0 when it runs in another pid namespace.
    pub pid: u32,
}

/// Connects to the socket at `path` and checks that the process listening there runs as our own
/// user. `within` bounds the connect and every later write.
///
/// # Errors
/// When nobody listens, the listener's queue stays full for `within`, or the listener runs as
/// another user ([`io::ErrorKind::PermissionDenied`]).
pub fn connect(path: &Path, within: Duration) -> io::Result<(UnixStream, Listener)> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(within))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let peer = sockopt::socket_peercred(&socket)?;
    let listener =
        Listener { uid: peer.uid.as_raw(), pid: u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or_default() };
    if peer.uid != geteuid() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the process listening on {} runs as another user (uid {})", path.display(), listener.uid),
        ));
    }
    Ok((UnixStream::from(socket), listener))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn names_the_process_that_listens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        assert_eq!(connect(&path, Duration::from_secs(5)).unwrap_err().kind(), io::ErrorKind::NotFound);
        let _listening = UnixListener::bind(&path).unwrap();
        let (_, listener) = connect(&path, Duration::from_secs(5)).unwrap();
        assert_eq!(listener, Listener { uid: geteuid().as_raw(), pid: std::process::id() });
    }
}
