//! Session files on disk: opened with their lock, appended to with one write, replaced as a whole.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::session_error::SessionError;

/// Maximum number of attempts to open a file that is replaced meanwhile.
const TRIES: usize = 16;
/// How often the lock of a file is tried, and how long it is waited for in between. A program that was killed while it
/// started another one is gone, while the other one has the lock until it has closed what it inherited.
const LOCK_TRIES: u32 = 15;
const LOCK_WAIT: Duration = Duration::from_millis(20);
/// Mode of session files: only their owner may read them.
const MODE: u32 = 0o600;
/// Mode of directories that are made for them.
const DIRECTORY_MODE: u32 = 0o700;

/// Opens a file for appending, locks it, and reads it.
pub(super) fn open(path: &Path) -> Result<(File, Vec<u8>), SessionError> {
    for _ in 0..TRIES {
        let mut file = File::options().read(true).append(true).open(path).map_err(SessionError::io("open", path))?;
        lock(&file, path)?;
        // Whoever replaced it meanwhile holds the lock of the other one.
        if !is_at(&file, path) {
            continue;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(SessionError::io("read", path))?;
        return Ok((file, bytes));
    }
    Err(SessionError::Changed { path: path.to_owned() })
}

/// Makes a file that is there whole or not at all; none is overwritten.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<File, SessionError> {
    if let Some(directory) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
        made.map_err(SessionError::io("create the directory of", path))?;
    }
    let (file, temporary) = write_beside(path, bytes)?;
    // Unlike a rename, a link does not replace what is there. Some file systems have none.
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

/// Puts another file in the place of one. A link stays, and leads to the other file.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<File, SessionError> {
    let path = &fs::canonicalize(path).map_err(SessionError::io("find", path))?;
    let (file, temporary) = write_beside(path, bytes)?;
    if let Ok(old) = fs::metadata(path) {
        // Whoever could read it still can.
        file.set_permissions(old.permissions()).map_err(SessionError::io("write", path))?;
    }
    if let Err(error) = fs::rename(&temporary, path) {
        let _ = fs::remove_file(&temporary);
        return Err(SessionError::io("replace", path)(error));
    }
    sync_directory(path)?;
    Ok(file)
}

/// Appends a text by one write to a file of this length. What was written of a text that failed is cut off.
pub(super) fn append(file: &mut File, path: &Path, len: u64, text: &[u8]) -> Result<(), SessionError> {
    check_unchanged(file, path, len)?;
    file.write_all(text).map_err(|error| {
        // When this fails too, a line that is cut remains, and the next append is refused.
        let _ = file.set_len(len);
        SessionError::io("append to", path)(error)
    })
}

/// Whether the file is still the one at its path, and as long as we left it.
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

/// Writes a file beside another one, locked and on the disk.
fn write_beside(path: &Path, bytes: &[u8]) -> Result<(File, PathBuf), SessionError> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    // One of a program that was killed, with our number.
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

/// A name is on the disk when its directory is.
fn sync_directory(path: &Path) -> Result<(), SessionError> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|d| d.sync_all()).map_err(SessionError::io("write the directory of", path))
}
