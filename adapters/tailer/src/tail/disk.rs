//! Opens the agents' files safely.
//!
//! Below a provider's root, no symbolic link is followed and only regular files of our own user are read. No open
//! blocks (a FIFO is refused before it is opened). The root itself may be a link, because people move their dot files.

use std::{fmt, io, sync::Arc};

use events::FileKey;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{self, AtFlags, FileType, Mode, OFlags},
};

use super::FileFormat;
use crate::os;

/// The path of a file below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootedPath {
    path: Arc<str>,
    root_bytes: u32,
}

impl RootedPath {
    /// The path `relative` (separated by `/`, not empty) below the absolute path `root`.
    #[must_use]
    pub fn new(root: &str, relative: &str) -> Self {
        let root = root.trim_end_matches('/');
        let root_bytes = u32::try_from(root.len()).unwrap_or(u32::MAX);
        Self { path: Arc::from(format!("{root}/{relative}")), root_bytes }
    }

    /// The write-ahead log of the database at this path.
    pub(crate) fn write_ahead_log(&self) -> Self {
        Self { path: Arc::from(format!("{}{WRITE_AHEAD_LOG}", self.path)), root_bytes: self.root_bytes }
    }

    /// The absolute path.
    #[must_use]
    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &str {
        if self.root_bytes == 0 { "/" } else { &self.path[..self.root_bytes as usize] }
    }

    /// The path below the root.
    #[must_use]
    pub fn relative(&self) -> &str {
        &self.path[self.root_bytes as usize + 1..]
    }
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Device and inode.
    pub key: FileKey,
    /// Size, bytes.
    pub size: u64,
    /// Last change of content or inode (ctime), nanoseconds since 1970. Programs cannot set it.
    pub changed_ns: i64,
    /// Last change of content (mtime), which programs can set, nanoseconds since 1970.
    pub modified_ns: i64,
    /// The type of the file.
    pub kind: PathKind,
    /// The owner's user id.
    pub owner: u32,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Special,
}

impl From<fs::Stat> for Stat {
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the widths differ between platforms")]
    fn from(stat: fs::Stat) -> Self {
        let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            key: FileKey { device: stat.st_dev as u64, inode: stat.st_ino as u64 },
            size: u64::try_from(stat.st_size).unwrap_or(0),
            changed_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            modified_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            kind: PathKind::from(FileType::from_raw_mode(stat.st_mode)),
            owner: stat.st_uid,
        }
    }
}

impl From<FileType> for PathKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Special,
        }
    }
}

/// The reason why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadRefusal {
    /// The file, or a directory between it and the root, is a symbolic link.
    Symlink,
    /// The path is a directory, FIFO, socket or device.
    NotRegular,
    /// The file belongs to another user.
    Owner(u32),
}

impl fmt::Display for ReadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symlink => f.write_str("its path contains a symbolic link"),
            Self::NotRegular => f.write_str("not a regular file"),
            Self::Owner(uid) => write!(f, "it belongs to another user (uid {uid})"),
        }
    }
}

/// The reason why a file could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The file does not exist (any more).
    Gone,
    /// The file must not be read.
    Refused(ReadRefusal),
    /// The system refused.
    Io(io::Error),
}

impl OpenError {
    fn from_errno(errno: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Gone,
            Errno::LOOP | Errno::XDEV => Self::Refused(ReadRefusal::Symlink),
            Errno::NXIO => Self::Refused(ReadRefusal::NotRegular),
            other => Self::Io(other.into()),
        }
    }
}

/// An open file that is read by position. The tests have a second implementation, which fails on demand.
pub(crate) trait Source: Send {
    /// The metadata of the open file.
    fn stat(&self) -> io::Result<Stat>;
    /// Reads up to `into.len()` bytes from `offset`; 0 at the end.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// How files are found and opened.
pub(crate) trait Disk: Send {
    /// The metadata of a path, without following a link at its end; `None` if it does not exist.
    fn stat(&self, place: &RootedPath) -> io::Result<Option<Stat>>;
    /// Opens a file for reading.
    fn open(&self, place: &RootedPath) -> Result<Box<dyn Source>, OpenError>;
}

/// The real disk.
pub(crate) struct System;

struct SystemFile(OwnedFd);

impl Source for SystemFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(fs::fstat(&self.0)?.into())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match rustix::io::pread(&self.0, &mut *into, offset) {
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

impl Disk for System {
    fn stat(&self, place: &RootedPath) -> io::Result<Option<Stat>> {
        stat_path(place.path())
    }

    fn open(&self, place: &RootedPath) -> Result<Box<dyn Source>, OpenError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open_beneath(place.root(), place.relative(), flags)?;
        let stat = Stat::from(fs::fstat(&file).map_err(OpenError::from_errno)?);
        admit(&stat)?;
        Ok(Box::new(SystemFile(file)))
    }
}

/// The metadata of an absolute path, without following a link at its end.
pub(crate) fn stat_path(path: &str) -> io::Result<Option<Stat>> {
    use rustix::io::Errno;
    match fs::lstat(path) {
        Ok(stat) => Ok(Some(stat.into())),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// The suffix that SQLite adds to a database's name for its write-ahead log.
pub(crate) const WRITE_AHEAD_LOG: &str = "-wal";

/// The metadata of a file of this format. A database is combined with its write-ahead log: a commit changes the log
/// first, and the database later.
pub(crate) fn stat_file(place: &RootedPath, format: FileFormat) -> io::Result<Option<Stat>> {
    let stat = stat_path(place.path())?;
    match (stat, format) {
        (Some(stat), FileFormat::Rows(_)) => Ok(Some(with_log(stat, stat_path(place.write_ahead_log().path())?))),
        (stat, FileFormat::Lines | FileFormat::Compressed | FileFormat::Whole | FileFormat::Rows(_)) => Ok(stat),
    }
}

/// Combines a database and its write-ahead log, if there is one. For the log only the mtime counts: when root opens a
/// database, SQLite sets the owner of the log again, so our own check would cause the next one.
pub(crate) fn with_log(database: Stat, log: Option<Stat>) -> Stat {
    let Some(log) = log else { return database };
    Stat {
        size: database.size.saturating_add(log.size),
        changed_ns: database.changed_ns.max(log.modified_ns),
        modified_ns: database.modified_ns.max(log.modified_ns),
        ..database
    }
}

/// The metadata of a name in an open directory, without following a link.
pub(crate) fn stat_in(directory: impl AsFd, name: &str) -> Option<Stat> {
    fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(Stat::from)
}

/// Whether the file with this metadata may be read.
pub(crate) fn admit(stat: &Stat) -> Result<(), OpenError> {
    match stat.kind {
        PathKind::File => {}
        PathKind::Symlink => return Err(OpenError::Refused(ReadRefusal::Symlink)),
        PathKind::Directory | PathKind::Special => return Err(OpenError::Refused(ReadRefusal::NotRegular)),
    }
    if stat.owner != rustix::process::geteuid().as_raw() {
        return Err(OpenError::Refused(ReadRefusal::Owner(stat.owner)));
    }
    Ok(())
}

/// Opens a directory for listing; `relative` is empty for the root.
pub(crate) fn open_directory(root: &str, relative: &str) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    if relative.is_empty() {
        return fs::open(root, flags | OFlags::CLOEXEC, Mode::empty()).map_err(OpenError::from_errno);
    }
    // If a link replaced the directory, ENOTDIR refers to the last component only.
    open_beneath(root, relative, flags)
}

fn open_beneath(root: &str, relative: &str, flags: OFlags) -> Result<OwnedFd, OpenError> {
    let top =
        fs::open(root, os::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(OpenError::from_errno)?;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match os::resolve(&top, relative, flags) {
        Some(opened) => opened.map_err(OpenError::from_errno),
        None => walk(top, relative, flags),
    }
}

/// Opens a path component by component, without following links.
fn walk(top: OwnedFd, relative: &str, flags: OFlags) -> Result<OwnedFd, OpenError> {
    let (folders, name) = relative.rsplit_once('/').unwrap_or(("", relative));
    let mut at = top;
    for folder in folders.split('/').filter(|part| !part.is_empty()) {
        at = step(&at, folder, os::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
    }
    step(&at, name, flags)
}

fn step(at: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, OpenError> {
    if name == ".." {
        return Err(OpenError::Refused(ReadRefusal::Symlink));
    }
    fs::openat(at, name, flags, Mode::empty()).map_err(|errno| {
        // With O_DIRECTORY, a link fails with ENOTDIR: distinguish a link from a file with that name.
        match stat_in(at, name) {
            Some(Stat { kind: PathKind::Symlink, .. }) => OpenError::Refused(ReadRefusal::Symlink),
            _ => OpenError::from_errno(errno),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn refused(result: Result<OwnedFd, OpenError>) -> bool {
        matches!(result, Err(OpenError::Refused(ReadRefusal::Symlink)))
    }

    #[test]
    fn a_new_ctime_without_a_write_does_not_count_as_a_log_change() {
        let home = tempfile::tempdir().unwrap();
        let (database, log) = (home.path().join("a.db"), home.path().join("a.db-wal"));
        std::fs::write(&database, "d").unwrap();
        std::fs::write(&log, "l").unwrap();
        let look = || {
            let stat = |path: &Path| stat_path(path.to_str().unwrap()).unwrap();
            (with_log(stat(&database).unwrap(), stat(&log)), stat(&log).unwrap())
        };
        let (before, log_before) = look();
        // SQLite does this whenever it opens a log as root.
        while look().1.changed_ns == log_before.changed_ns {
            std::os::unix::fs::chown(&log, Some(rustix::process::geteuid().as_raw()), None).unwrap();
        }
        assert_eq!(look().0, before);
        std::fs::write(&log, "more").unwrap();
        assert_ne!(look().0, before);
    }

    #[test]
    fn tail_open_beneath_and_walk_both_refuse_symlinks() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("root");
        let outside = home.path().join("outside");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(outside.join("b")).unwrap();
        for folder in [root.join("a/b"), outside.join("b")] {
            std::fs::write(folder.join("f"), "x\n").unwrap();
        }
        symlink(&outside, root.join("link")).unwrap();
        symlink(outside.join("b/f"), root.join("a/direct")).unwrap();
        let root_text = root.to_str().unwrap();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = || fs::open(root_text, os::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        assert!(open_beneath(root_text, "a/b/f", flags).is_ok());
        assert!(walk(top(), "a/b/f", flags).is_ok());
        for path in ["link/b/f", "a/direct", "a/../../outside/b/f"] {
            assert!(refused(open_beneath(root_text, path, flags)), "{path}");
            assert!(refused(walk(top(), path, flags)), "walk {path}");
        }
        assert!(open_directory(root_text, "link").is_err());
        assert!(matches!(walk(top(), "none/f", flags), Err(OpenError::Gone)));
    }

    #[test]
    fn tail_a_linked_root_is_followed() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("real")).unwrap();
        std::fs::write(home.path().join("real/f"), "x\n").unwrap();
        symlink(home.path().join("real"), home.path().join("dot")).unwrap();
        let place = RootedPath::new(home.path().join("dot").to_str().unwrap(), "f");
        assert!(System.open(&place).is_ok());
    }
}
