//! The Unix socket, which accepts only processes of our own user.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixStream as Probe,
    },
    path::{Path, PathBuf},
};

use processes::local_socket::AddressPath;
use tokio::net::UnixListener;

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The directory or the socket could not be inspected, created or removed.
    #[error("{doing} {path}: {source}")]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Other users have access to the directory.
    #[error("{path} must belong to this user and have mode 0700 (it has mode {mode:04o}, owner {owner})")]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its owner.
        owner: u32,
    },
    /// The path exists and is not a socket.
    #[error("{path} exists and is not a socket")]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// Another server answers on the socket.
    #[error("another server listens on {path}")]
    InUse {
        /// The path.
        path: PathBuf,
    },
}

/// An open socket. Dropping it removes its file, unless another socket has replaced it.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    file: File,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    inode: u64,
}

/// Our own user.
pub(crate) fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

impl Socket {
    /// Opens a socket at this path, replacing one whose server is gone.
    pub(crate) fn open(path: &Path) -> Result<Self, SocketError> {
        let failed = |doing| {
            let path = path.to_owned();
            move |source| SocketError::Io { doing, path, source }
        };
        check_directory(path)?;
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(SocketError::NoSocket { path: path.to_owned() });
            }
            Ok(_) => match AddressPath::of(path).and_then(|address| Probe::connect(address.as_ref())) {
                Ok(_) => {
                    return Err(SocketError::InUse { path: path.to_owned() });
                }
                Err(_) => fs::remove_file(path).map_err(failed("cannot remove"))?,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("cannot inspect")(error)),
        }
        // Between bind and chmod, the directory's permissions keep other users out.
        let bind = |address: AddressPath| UnixListener::bind(address.as_ref());
        let listener = AddressPath::of(path).and_then(bind).map_err(failed("cannot listen on"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed("cannot restrict"))?;
        let inode = fs::symlink_metadata(path).map_err(failed("cannot inspect"))?.ino();
        Ok(Self { listener, file: File { path: path.to_owned(), inode } })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn check_directory(path: &Path) -> Result<(), SocketError> {
    let directory = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    };
    let found = fs::metadata(directory).map_err(|source| SocketError::Io {
        doing: "cannot inspect",
        path: directory.to_owned(),
        source,
    })?;
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    if !found.is_dir() || mode & 0o077 != 0 || owner != own_uid() {
        return Err(SocketError::OpenDirectory { path: directory.to_owned(), mode, owner });
    }
    Ok(())
}
