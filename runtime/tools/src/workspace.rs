//! The directories of a session, and how files are opened: never through a link created after the path was resolved.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat},
    io::Errno,
};

use crate::os;

/// The directories of a session. Both are absolute and without links.
#[derive(Debug)]
pub(crate) struct Workspace {
    cwd: PathBuf,
    root: PathBuf,
    root_dir: OwnedFd,
}

/// A path with its links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// Absolute, without links.
    pub(crate) path: PathBuf,
    /// Whether the path exists.
    pub(crate) exists: bool,
}

/// A regular file and its state when it was opened.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    pub(crate) stat: rustix::fs::Stat,
}

impl OpenedFile {
    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or_default()
    }
}

impl Workspace {
    /// A workspace `root` with the working directory `cwd`.
    pub(crate) fn new(root: &Path, cwd: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        let cwd = fs::canonicalize(cwd)?;
        let root_dir = rustix::fs::open(&root, os::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { cwd, root, root_dir })
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Whether a resolved path is in the workspace.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    /// A path as shown to users and models: relative to the working directory if below it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let short = path.strip_prefix(&self.cwd).unwrap_or(path);
        if short.as_os_str().is_empty() { ".".to_owned() } else { short.display().to_string() }
    }

    /// Resolves a path that a model wrote.
    pub(crate) fn resolve(&self, text: &str) -> Result<ResolvedPath, String> {
        let path = self.cwd.join(text);
        match fs::canonicalize(&path) {
            Ok(path) => Ok(ResolvedPath { path, exists: true }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing(&path).map_err(|why| format!("cannot use {text}: {why}"))
            }
            Err(error) => Err(format!("cannot use {text}: {error}")),
        }
    }

    /// Opens a resolved path; fails if it now contains a link.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let below = |root: &OwnedFd, relative: &Path| {
            let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
            os::open_beneath(root, relative, flags)
        };
        let opened = match path.strip_prefix(&self.root) {
            Ok(relative) => below(&self.root_dir, relative),
            Err(_) => {
                let root = rustix::fs::open("/", os::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
                below(&root, path.strip_prefix("/").map_err(io::Error::other)?)
            }
        };
        opened.map_err(|error| match error {
            Errno::LOOP | Errno::XDEV => io::Error::other("a symbolic link was put there after the call was checked"),
            other => other.into(),
        })
    }

    /// Opens a regular file for reading. Never blocks, for example on a FIFO without a writer.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<OpenedFile> {
        let file = File::from(self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        let stat = fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(OpenedFile { file, stat }),
            FileType::Directory => Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory")),
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Err(io::Error::other("is not a regular file")),
        }
    }

    /// Opens the directory of a resolved path, creating it if `make` is set; also returns the file name.
    pub(crate) fn open_parent(&self, path: &Path, make: bool) -> io::Result<(OwnedFd, OsString)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other("is not a file"));
        };
        match self.open(parent, flags) {
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                self.make_directory(parent)?;
                Ok((self.open(parent, flags)?, name.to_owned()))
            }
            opened => Ok((opened?, name.to_owned())),
        }
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.open_parent(path, true)?;
        match rustix::fs::mkdirat(&dir, name.as_os_str(), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Resolves a path that does not exist: resolves its existing directories and appends the rest.
fn missing(path: &Path) -> Result<ResolvedPath, String> {
    let mut rest: Vec<&OsStr> = Vec::new();
    let mut at = path;
    loop {
        match fs::symlink_metadata(at) {
            Ok(found) if found.is_symlink() && fs::metadata(at).is_err() => {
                return Err(format!("{} is a symbolic link that leads nowhere", at.display()));
            }
            Ok(found) if !rest.is_empty() && !found.is_dir() && fs::metadata(at).is_ok_and(|file| !file.is_dir()) => {
                return Err(format!("{} is not a directory", at.display()));
            }
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.to_string()),
        }
        match at.components().next_back() {
            Some(Component::Normal(name)) => rest.push(name),
            Some(Component::ParentDir) => return Err("`..` follows a directory that does not exist".to_owned()),
            Some(Component::CurDir | Component::RootDir | Component::Prefix(_)) | None => {}
        }
        at = at.parent().ok_or("no such directory")?;
    }
    let mut resolved = fs::canonicalize(at).map_err(|error| error.to_string())?;
    resolved.extend(rest.into_iter().rev());
    Ok(ResolvedPath { path: resolved, exists: false })
}

#[cfg(test)]
mod tests;
