//! Replaces the content of a file atomically.

use std::{
    io::{self, Write},
    path::Path,
};

use atomic_file::Draft;
use rustix::fs::{Access, AtFlags, Gid, Mode, Stat, Uid, accessat, fchmod, fchown, fstat, statat};

use crate::{os, workspace::Workspace};

/// Checks, without trying, whether a file that had the state `before` when it was opened can be replaced, or a new file
/// created.
pub(crate) fn check(workspace: &Workspace, path: &Path, before: Option<&Stat>) -> io::Result<()> {
    if let Some(links) = before.map(|before| before.st_nlink).filter(|links| *links > 1) {
        return Err(io::Error::other(format!(
            "the file has {links} hard links, and replacing it would leave the others as they are"
        )));
    }
    // If directories are missing, checks the lowest existing ancestor.
    let (dir, _) = match workspace.open_parent(path, false) {
        Err(error) if before.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return path.parent().map_or(Err(error), |parent| check(workspace, parent, None));
        }
        opened => opened?,
    };
    accessat(&dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
    Ok(())
}

/// Replaces a file that had the state `before` when it was opened; keeps its mode and owner.
pub(crate) fn replace(workspace: &Workspace, path: &Path, before: &Stat, content: &[u8]) -> io::Result<()> {
    check(workspace, path, Some(before))?;
    let (dir, name) = workspace.open_parent(path, false)?;
    // Through the descriptor of the directory, so that moving directories or replacing them by links has no effect.
    let place = os::path_in(&dir, &name)?;
    let mut draft = Draft::beside(&place, ".tmp")?;
    draft.file_mut().write_all(content)?;
    let own = fstat(draft.file())?;
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid) {
        fchown(draft.file(), Some(Uid::from_raw(before.st_uid)), Some(Gid::from_raw(before.st_gid)))
            .map_err(|error| io::Error::other(format!("cannot preserve the owner of the file: {error}")))?;
    }
    fchmod(draft.file(), Mode::from_raw_mode(before.st_mode))?;
    draft.file().sync_all()?;
    let now = statat(&dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)?;
    if identity(&now) != identity(before) {
        return Err(io::Error::other("the file changed while it was being replaced; read it again"));
    }
    draft.replace(&place)
}

/// Creates a file that does not exist, with its parent directories.
pub(crate) fn create(workspace: &Workspace, path: &Path, content: &[u8]) -> io::Result<()> {
    let (dir, name) = workspace.open_parent(path, true)?;
    let place = os::path_in(&dir, &name)?;
    let mut draft = Draft::beside(&place, ".tmp")?;
    draft.file_mut().write_all(content)?;
    fchmod(draft.file(), Mode::from_raw_mode(0o666 & !os::umask()))?;
    draft.file().sync_all()?;
    draft.place_new(&place)
}

#[allow(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
fn identity(stat: &Stat) -> (u64, u64, i64, i64, i64, u64) {
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    (stat.st_dev as u64, stat.st_ino, stat.st_size, stat.st_mtime, nanoseconds, u64::from(stat.st_mode))
}
