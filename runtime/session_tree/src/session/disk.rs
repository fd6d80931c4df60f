//! Session files on disk: opened with a lock, appended to with single writes, replaced as a whole.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::session_error::SessionError;

/// Maximum number of attempts to open a file that is being replaced.
const TRIES: usize = 16;
/// Maximum number of attempts to lock a file, and the delay between them. If a program is killed while starting another
/// one, the new process keeps the lock until it has closed the inherited descriptors.
const LOCK_TRIES: u32 = 15;
const LOCK_WAIT: Duration = Duration::from_millis(20);
/// Mode of session files: only their owner may read them.
const MODE: u32 = 0o600;
/// Mode of directories created for session files.
const DIRECTORY_MODE: u32 = 0o700;

/// Opens a file for appending, locks it, and reads it.
pub(super) fn open(path: &Path) -> Result<(File, Vec<u8>), SessionError> {
    for _ in 0..TRIES {
        let mut file = File::options().read(true).append(true).open(path).map_err(SessionError::io("open", path))?;
        lock(&file, path)?;
        // If the file was replaced in the meantime, the lock is on the old one.
        if !is_at(&file, path) {
            continue;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(SessionError::io("read", path))?;
        return Ok((file, bytes));
    }
    Err(SessionError::Changed { path: path.to_owned() })
}

/// Creates a file atomically; never overwrites one.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<File, SessionError> {
    if let Some(directory) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
        made.map_err(SessionError::io("create the directory of", path))?;
    }
    let (file, temporary) = write_beside(path, bytes)?;
    // Unlike a rename, a link does not replace an existing file. Some file systems have no hard links.
    let linked = match fs::hard_link(&temporary, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !path.exists() => fs::rename(&temporary, path),
        linked => linked.and_then(|()| fs::remove_file(&temporary)),
    };
    linked.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        SessionError::io("create", path)(error)
    })?;
    sync_directory(path)?;
    Ok(file)
}

/// Replaces a file atomically. If the path is a symbolic link, its target is replaced.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<File, SessionError> {
    let path = &fs::canonicalize(path).map_err(SessionError::io("find", path))?;
    let (file, temporary) = write_beside(path, bytes)?;
    if let Ok(old) = fs::metadata(path) {
        // Keeps the permissions of the old file.
        file.set_permissions(old.permissions()).map_err(SessionError::io("write", path))?;
    }
    if let Err(error) = fs::rename(&temporary, path) {
        let _ = fs::remove_file(&temporary);
        return Err(SessionError::io("replace", path)(error));
    }
    sync_directory(path)?;
    Ok(file)
}

/// Appends a text with one write to a file of this length. A partial write is truncated.
pub(super) fn append(file: &mut File, path: &Path, len: u64, text: &[u8]) -> Result<(), SessionError> {
    check_unchanged(file, path, len)?;
    file.write_all(text).map_err(|error| {
        // If this fails too, a truncated line remains, and the next append is refused.
        let _ = file.set_len(len);
        SessionError::io("append to", path)(error)
    })
}

/// Whether the file is still the one at its path and has the length we left.
pub(super) fn check_unchanged(file: &File, path: &Path, len: u64) -> Result<(), SessionError> {
    let now = file.metadata().map_err(SessionError::io("inspect", path))?.len();
    if now == len && is_at(file, path) {
        return Ok(());
    }
    let path = path.to_owned();
    Err(if path.exists() { SessionError::Changed { path } } else { SessionError::Gone { path } })
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(held), Ok(there)) if identity(&held) == identity(&there))
}

fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(LOCK_WAIT),
            Err(TryLockError::Error(error)) => return Err(SessionError::io("lock", path)(error)),
        }
    }
    Err(SessionError::Locked { path: path.to_owned() })
}

/// Writes a locked and synced file beside another one.
fn write_beside(path: &Path, bytes: &[u8]) -> Result<(File, PathBuf), SessionError> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    // Left by a killed program with the same process id.
    let _ = fs::remove_file(&temporary);
    let mut options = File::options();
    let write = || -> std::io::Result<File> {
        let mut file = options.read(true).append(true).create_new(true).mode(MODE).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(file)
    };
    let file = { write }().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        SessionError::io("write", &temporary)(error)
    })?;
    lock(&file, &temporary)?;
    Ok((file, temporary))
}

/// A file name is durable once its directory is synced.
fn sync_directory(path: &Path) -> Result<(), SessionError> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|d| d.sync_all()).map_err(SessionError::io("write the directory of", path))
}
