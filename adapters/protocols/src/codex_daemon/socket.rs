//! Finds the daemon's socket below a home, and connects to it.
//!
//! The directory, the socket and the process at the other end must belong to our user. The socket may be a symbolic
//! link, as created by Codex (0.169.0, 0.171.0), to a socket in a directory of the temporary folder that only our user
//! may enter. One link is followed. No call here blocks.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStringExt, net::UnixStream},
    },
    path::{Path, PathBuf},
};

use events::Timestamp;
use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags},
    io::Errno,
};
use thiserror::Error;

use crate::os;

const DIRECTORY: &str = "app-server-control";
const NAME: &str = "app-server-control.sock";

/// A socket that is safe to connect to.
#[derive(Debug)]
pub(super) struct DaemonSocket {
    directory: OwnedFd,
    name: OsString,
    /// When it was created.
    pub(super) made_at: Timestamp,
}

/// Why connecting failed.
#[derive(Debug, Error)]
pub(super) enum ConnectError {
    /// It is not a socket, belongs to another user, or links into a directory that other users may enter.
    #[error(
        "{DIRECTORY}/{NAME} is not a socket of this user, or links to a directory that other users may enter; capture does \
         not connect to it"
    )]
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

/// Finds the socket of a home; `None` if there is none.
///
/// # Errors
/// If it cannot be trusted.
pub(super) fn find(home: &Path) -> Result<Option<DaemonSocket>, ConnectError> {
    let Some(directory) = open_directory(&home.join(DIRECTORY))? else { return Ok(None) };
    if !is_ours(&fs::fstat(&directory)?) {
        return Err(ConnectError::Foreign);
    }
    let name = OsStr::new(NAME);
    let Some(stat) = stat_of(&directory, name)? else { return Ok(None) };
    if !is_ours(&stat) {
        return Err(ConnectError::Foreign);
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket => Ok(Some(DaemonSocket::new(directory, name, &stat))),
        FileType::Symlink => linked(&directory),
        FileType::RegularFile
        | FileType::Directory
        | FileType::Fifo
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(ConnectError::Foreign),
    }
}

/// The target of a link, in a directory that only our user may enter.
fn linked(directory: &OwnedFd) -> Result<Option<DaemonSocket>, ConnectError> {
    let target = fs::readlinkat(directory, NAME, Vec::new())?.into_bytes();
    let target = PathBuf::from(OsString::from_vec(target));
    let (Some(parent), Some(name), true) = (target.parent(), target.file_name(), target.is_absolute()) else {
        return Err(ConnectError::Foreign);
    };
    let Some(directory) = open_directory(parent)? else { return Ok(None) };
    let about = fs::fstat(&directory)?;
    if !is_ours(&about) || about.st_mode & 0o077 != 0 {
        return Err(ConnectError::Foreign);
    }
    let Some(stat) = stat_of(&directory, name)? else { return Ok(None) };
    if !is_ours(&stat) || FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(ConnectError::Foreign);
    }
    Ok(Some(DaemonSocket::new(directory, name, &stat)))
}

/// Opens a directory that is not a link; `None` if it does not exist.
fn open_directory(path: &Path) -> Result<Option<OwnedFd>, ConnectError> {
    let flags = os::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match fs::open(path, flags, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => Err(ConnectError::Foreign),
        Err(errno) => Err(errno.into()),
    }
}

/// The metadata of a name in a directory, without following a link.
fn stat_of(directory: &OwnedFd, name: &OsStr) -> Result<Option<fs::Stat>, ConnectError> {
    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn is_ours(stat: &fs::Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

impl DaemonSocket {
    fn new(directory: OwnedFd, name: &OsStr, stat: &fs::Stat) -> Self {
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the widths differ between platforms")]
        let made_at = Timestamp::from_millisecond(
            (stat.st_ctime as i64).saturating_mul(1_000).saturating_add(stat.st_ctime_nsec as i64 / 1_000_000),
        );
        Self { directory, name: name.to_owned(), made_at }
    }

    /// Connects to the socket.
    ///
    /// # Errors
    /// If nothing listens, the backlog is full, or the listener belongs to another user.
    pub(super) fn connect(&self) -> Result<UnixStream, ConnectError> {
        let socket = os::connect_in(&self.directory, &self.name)?;
        if processes::local_socket::peer(&socket)?.uid != rustix::process::geteuid().as_raw() {
            return Err(ConnectError::Foreign);
        }
        Ok(UnixStream::from(socket))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs as files,
        os::unix::{fs::PermissionsExt, fs::symlink, net::UnixListener},
    };

    use super::*;

    struct Home {
        dir: tempfile::TempDir,
    }

    impl Home {
        fn new() -> Self {
            let home = Self { dir: tempfile::tempdir().unwrap() };
            files::create_dir(home.path(DIRECTORY)).unwrap();
            home
        }

        fn path(&self, below: &str) -> PathBuf {
            self.dir.path().join(below)
        }

        fn socket(&self) -> PathBuf {
            self.path(DIRECTORY).join(NAME)
        }

        /// A socket in a directory with this mode.
        fn elsewhere(&self, mode: u32) -> (UnixListener, PathBuf) {
            let directory = self.path("codex-daemon-0");
            files::create_dir(&directory).unwrap();
            files::set_permissions(&directory, files::Permissions::from_mode(mode)).unwrap();
            let path = directory.join("4f2a");
            (UnixListener::bind(&path).unwrap(), path)
        }

        fn find(&self) -> Result<Option<DaemonSocket>, ConnectError> {
            find(self.dir.path())
        }
    }

    #[test]
    fn a_socket_is_accepted_directly_or_through_one_private_link() {
        let home = Home::new();
        assert!(home.find().unwrap().is_none());
        let listener = UnixListener::bind(home.socket()).unwrap();
        home.find().unwrap().unwrap().connect().unwrap();
        drop(listener);
        files::remove_file(home.socket()).unwrap();

        let (_listener, path) = home.elsewhere(0o700);
        symlink(&path, home.socket()).unwrap();
        home.find().unwrap().unwrap().connect().unwrap();
    }

    #[test]
    fn a_dangling_symlink_counts_as_no_socket() {
        let home = Home::new();
        symlink(home.path("gone/socket"), home.socket()).unwrap();
        assert!(home.find().unwrap().is_none());
        let (listener, path) = home.elsewhere(0o700);
        drop(listener);
        files::remove_file(&path).unwrap();
        files::remove_file(home.socket()).unwrap();
        symlink(&path, home.socket()).unwrap();
        assert!(home.find().unwrap().is_none());
    }

    #[test]
    fn links_to_shared_directories_and_non_socket_files_are_refused() {
        let refused = |home: &Home| assert!(matches!(home.find(), Err(ConnectError::Foreign)));
        // A directory that other users may enter.
        for mode in [0o755, 0o710, 0o701] {
            let home = Home::new();
            let (_listener, path) = home.elsewhere(mode);
            symlink(&path, home.socket()).unwrap();
            refused(&home);
        }
        // A second link, a relative one, a directory that is a link, a file that is not a socket.
        let home = Home::new();
        let (_listener, path) = home.elsewhere(0o700);
        let second = path.with_file_name("second");
        symlink(&path, &second).unwrap();
        symlink(&second, home.socket()).unwrap();
        refused(&home);
        for target in [PathBuf::from("../codex-daemon-0/4f2a"), home.path("linked/4f2a"), home.path("file")] {
            files::remove_file(home.socket()).unwrap();
            symlink(&target, home.socket()).unwrap();
            if !home.path("linked").exists() {
                symlink(path.parent().unwrap(), home.path("linked")).unwrap();
                files::write(home.path("file"), "").unwrap();
            }
            refused(&home);
        }
        files::remove_file(home.socket()).unwrap();
        files::write(home.socket(), "").unwrap();
        refused(&home);
    }
}
