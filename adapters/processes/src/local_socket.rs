//! Connects to a Unix socket of our own user, and identifies the process that listens on it.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    net::{SocketAddrUnix, sockopt},
    process::geteuid,
};

use crate::os;

/// The process that listens at the other end of a connection, according to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Its user id.
    pub uid: u32,
    /// Its process id; 0 if it runs in another pid namespace.
    pub pid: u32,
}

/// Longest path that fits in a socket address on every platform, bytes.
const ADDRESS_BYTES: usize = 100;

/// A path to a socket that fits in an address while this value exists.
#[derive(Debug)]
pub struct AddressPath {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

impl AddressPath {
    /// The path unchanged or, if it is too long for an address, through a descriptor of its directory.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Self { path: path.to_owned(), _directory: None });
        };
        if path.as_os_str().len() <= ADDRESS_BYTES {
            return Ok(Self { path: path.to_owned(), _directory: None });
        }
        let (path, directory) = os::by_descriptor(directory, name)?;
        Ok(Self { path, _directory: Some(directory) })
    }
}

impl AsRef<Path> for AddressPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// The process at the other end of a connected Unix socket.
///
/// # Errors
/// If the kernel does not identify it.
pub fn peer(socket: impl AsFd) -> io::Result<Listener> {
    os::peer(socket)
}

/// Connects to the socket at `path` and checks that the process listening there runs as our own user. `within` bounds
/// the connect and every later write.
///
/// # Errors
/// If no process listens, the listener's queue stays full for `within`, or the listener runs as another user
/// ([`io::ErrorKind::PermissionDenied`]).
pub fn connect(path: &Path, within: Duration) -> io::Result<(UnixStream, Listener)> {
    let socket = os::unix_socket()?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(within))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(AddressPath::of(path)?.as_ref())?)?;
    let listener = os::peer(&socket)?;
    if listener.uid != geteuid().as_raw() {
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
    fn connecting_to_a_unix_socket_identifies_the_listening_process() {
        let dir = tempfile::tempdir().unwrap();
        // An address has 108 bytes.
        for directory in ["short".to_owned(), "d".repeat(120)] {
            let directory = dir.path().join(directory);
            std::fs::create_dir(&directory).unwrap();
            let path = directory.join("s");
            assert_eq!(connect(&path, Duration::from_secs(5)).unwrap_err().kind(), io::ErrorKind::NotFound);
            let _listening = UnixListener::bind(AddressPath::of(&path).unwrap().as_ref()).unwrap();
            assert!(path.exists());
            let (_, listener) = connect(&path, Duration::from_secs(5)).unwrap();
            assert_eq!(listener, Listener { uid: geteuid().as_raw(), pid: std::process::id() });
        }
    }
}
