//! Reads a settings file without following unsafe links, and replaces it atomically.
//!
//! This module has all rules about which file may be touched, and does not interpret the content.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use atomic_file::{Draft, Durability};
use events::Provider;
use rustix::{
    fs::{Access, OFlags, access, fchown},
    process::{Gid, geteuid},
};

use crate::error::Error;

/// A settings file as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettingsFile {
    /// The file itself, with all links resolved.
    pub(super) path: PathBuf,
    /// Its content; `None` if it does not exist.
    pub(super) content: Option<SettingsContent>,
}

/// The content and ownership of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettingsContent {
    pub(super) bytes: Vec<u8>,
    mode: u32,
    group: u32,
    identity: (u64, u64),
}

/// Reads a settings file.
///
/// # Errors
/// If it is not a regular file, belongs to another user, is too large, or cannot be read.
pub(super) fn read_settings(path: &Path) -> Result<SettingsFile, Error> {
    let target = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => fs::canonicalize(path)
            .map_err(|error| Error::refused(path, format!("a link to a file that does not exist ({error})")))?,
        Ok(_) => path.to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(SettingsFile { path: path.to_owned(), content: None });
        }
        Err(error) => return Err(Error::io(path, error)),
    };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let before = fs::symlink_metadata(&target).map_err(|error| Error::io(&target, error))?;
    if !before.is_file() {
        return Err(Error::refused(&target, "not a regular file"));
    }
    let mut file =
        OpenOptions::new().read(true).custom_flags(flags).open(&target).map_err(|e| Error::io(&target, e))?;
    let meta = file.metadata().map_err(|error| Error::io(&target, error))?;
    let refused = |what: String| Err(Error::refused(&target, what));
    if !meta.is_file() {
        return refused("not a regular file".into());
    }
    if meta.uid() != geteuid().as_raw() {
        return refused(format!("belongs to another user (uid {})", meta.uid()));
    }
    if meta.len() > LARGEST {
        return refused(format!("the file has {} bytes; the limit for settings files is {LARGEST}", meta.len()));
    }
    let mut bytes = Vec::new();
    (&mut file).take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| Error::io(&target, error))?;
    if bytes.len() as u64 > LARGEST {
        return refused(format!("larger than {LARGEST} bytes, the limit for settings files"));
    }
    let content =
        SettingsContent { bytes, mode: meta.mode() & 0o7777, group: meta.gid(), identity: (meta.dev(), meta.ino()) };
    Ok(SettingsFile { path: target, content: Some(content) })
}

impl SettingsFile {
    /// Checks that the file could be replaced, before a change is announced.
    ///
    /// # Errors
    /// If the file or its directory is read-only, or the file has other hard links.
    pub(super) fn writable(&self, provider: Provider) -> Result<(), Error> {
        let dir = self.dir()?;
        let meta = match fs::metadata(dir) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoDirectory { provider, directory: dir.to_owned() });
            }
            Err(error) => return Err(Error::io(dir, error)),
        };
        // Checks the mode in addition to `access`, which lets root write everywhere.
        let closed = meta.uid() == geteuid().as_raw() && meta.mode() & 0o200 == 0;
        if closed || access(dir, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            return Err(Error::refused(dir, "the directory is read-only"));
        }
        let Some(content) = &self.content else { return Ok(()) };
        if content.mode & 0o200 == 0 || access(&self.path, Access::WRITE_OK).is_err() {
            return Err(Error::refused(&self.path, "the file is read-only"));
        }
        let names = fs::metadata(&self.path).map_err(|error| Error::io(&self.path, error))?.nlink();
        if names > 1 {
            // A replaced file has one name; its other names would keep the old content.
            return Err(Error::refused(&self.path, format!("the file has {names} hard links")));
        }
        Ok(())
    }

    /// Replaces the file with these bytes, unless it was changed in the meantime.
    ///
    /// # Errors
    /// If it was changed or cannot be written; in that case it is unchanged.
    pub(super) fn replace(&self, bytes: &[u8]) -> Result<(), Error> {
        let io = |error| Error::io(&self.path, error);
        let mut draft = Draft::beside(&self.path, ".capture").map_err(io)?;
        self.fill(draft.file_mut(), bytes)?;
        draft.sync().map_err(io)?;
        self.unchanged()?;
        let put = match self.content {
            Some(_) => draft.replace(&self.path),
            None => draft.place_new(&self.path),
        };
        match put {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::Changed { path: self.path.clone() });
            }
            put => put.map_err(io)?,
        }
        self.sync_dir()
    }

    fn fill(&self, file: &mut File, bytes: &[u8]) -> Result<(), Error> {
        let io = |error| Error::io(&self.path, error);
        file.write_all(bytes).map_err(io)?;
        if let Some(content) = &self.content {
            if file.metadata().map_err(io)?.gid() != content.group {
                fchown(&*file, None, Some(Gid::from_raw(content.group)))
                    .map_err(|error| Error::io(&self.path, error))?;
            }
            file.set_permissions(PermissionsExt::from_mode(content.mode)).map_err(io)?;
        }
        Ok(())
    }

    /// Removes the file, unless it was changed in the meantime.
    ///
    /// # Errors
    /// If it was changed or cannot be removed.
    pub(super) fn remove(&self) -> Result<(), Error> {
        self.unchanged()?;
        fs::remove_file(&self.path).map_err(|error| Error::io(&self.path, error))?;
        self.sync_dir()
    }

    /// Checks that the file is still as it was read.
    fn unchanged(&self) -> Result<(), Error> {
        if read_settings(&self.path)? == *self { Ok(()) } else { Err(Error::Changed { path: self.path.clone() }) }
    }

    fn dir(&self) -> Result<&Path, Error> {
        self.path.parent().ok_or_else(|| Error::refused(&self.path, "not below a directory"))
    }

    fn sync_dir(&self) -> Result<(), Error> {
        let dir = self.dir()?;
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| Error::io(dir, error))
    }
}

/// Writes one of our own files atomically, readable only by its owner.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    atomic_file::replace(path, bytes, Durability::Synced).map_err(|error| Error::io(path, error))
}

/// Creates one of our own directories and its parents.
///
/// # Errors
/// If it cannot be created.
pub(super) fn make_private_dir(dir: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| Error::io(dir, error))
}

/// Maximum size of a settings file that is read or changed, in bytes.
pub const LARGEST: u64 = 4 * 1024 * 1024;
