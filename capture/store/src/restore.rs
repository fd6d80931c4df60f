//! Backups of the database: copied while the server writes, checked, and restored while no server runs.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use crate::{
    audit::{AuditHead, write_head},
    check::{self, DatabaseCheck},
    error::ReadError,
    lock::{InstanceLock, LockError},
    open::BUSY,
    schema::{FIRST_VERSION, SCHEMA_VERSION},
};

/// Longest wait of a copy for another program's lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFacts {
    /// Size in bytes.
    pub bytes: u64,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of events.
    pub events: u64,
    /// End of the audit record.
    pub audit: AuditHead,
}

/// The result of restoring a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The contents of the restored database.
    pub facts: BackupFacts,
    /// The contents of the replaced database; `None` if there was none, or it could not be read.
    pub replaced: Option<BackupFacts>,
}

/// Why a backup could not be created or restored. The database was not changed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file could not be created, renamed or removed.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// The attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// SQLite could not read or write.
    #[error("cannot read or write {path}: {source}")]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The copy is damaged.
    #[error("{path} is damaged: {fault}")]
    Damaged {
        /// The copy.
        path: PathBuf,
        /// The first fault.
        fault: String,
    },
    /// The file is not a database.
    #[error("{path} is not a capture database")]
    NotDatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a backup of this program.
    #[error("{path} is not a backup that this version of capture can restore: {why}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A server is using the database.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The copy could not be checked.
    #[error(transparent)]
    Check(#[from] ReadError),
}

/// The first bytes of every SQLite database.
const HEADER: &[u8; 16] = b"SQLite format 3\0";

fn file_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    move |source| BackupError::File { what, path: path.to_owned(), source }
}

fn sqlite_error(path: &Path) -> impl Fn(rusqlite::Error) -> BackupError {
    move |source| BackupError::Sqlite { path: path.to_owned(), source }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove(path: &Path) -> Result<(), BackupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(file_error("write", path))
}

/// Copies the database at `database` to `target` as of one commit, mode 0600, while others read and write it. The copy
/// gets its name only after it was checked. Without `replaces` an existing file is not replaced.
///
/// # Errors
/// When the copy cannot be written or is damaged, or the file exists and may not be replaced.
pub fn backup(database: &Path, target: &Path, replaces: bool) -> Result<BackupFacts, BackupError> {
    if !replaces && target.symlink_metadata().is_ok() {
        return Err(file_error("write", target)(io::ErrorKind::AlreadyExists.into()));
    }
    let draft = beside(target, ".part");
    remove(&draft)?;
    // SQLite writes into the existing empty file, so that other users can never read it.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(file_error("write", target))?;
    let copied = copy(database, &draft).and_then(|()| {
        let facts = inspect(&draft)?;
        sync(&draft)?;
        if replaces {
            fs::rename(&draft, target).map_err(file_error("write", target))?;
        } else {
            // Unlike a rename, this fails if the file was created in the meantime.
            fs::hard_link(&draft, target).map_err(file_error("write", target))?;
            remove(&draft)?;
        }
        Ok(facts)
    });
    if copied.is_err() {
        fs::remove_file(&draft).ok();
    }
    copied
}

fn copy(database: &Path, draft: &Path) -> Result<(), BackupError> {
    let source =
        Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sqlite_error(database))?;
    source.busy_timeout(PATIENCE).map_err(sqlite_error(database))?;
    let target = draft.to_string_lossy();
    source.execute("VACUUM INTO ?1", [&*target]).map(drop).map_err(sqlite_error(draft))
}

/// Checks a backup completely and returns its contents.
///
/// # Errors
/// When it cannot be read, is damaged, or is not a capture database.
pub fn inspect(path: &Path) -> Result<BackupFacts, BackupError> {
    let bytes = fs::metadata(path).map_err(file_error("read", path))?.len();
    let foreign = |why: String| BackupError::Foreign { path: path.to_owned(), why };
    if bytes == 0 {
        return Err(foreign("it is empty".into()));
    }
    let mut start = [0; HEADER.len()];
    match File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) if start == *HEADER => {}
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(file_error("read", path)(error)),
        Ok(()) | Err(_) => return Err(BackupError::NotDatabase { path: path.to_owned() }),
    }
    match check::full(path)? {
        DatabaseCheck::Whole | DatabaseCheck::Unfinished => {}
        DatabaseCheck::Rows(faults) | DatabaseCheck::Damaged(faults) => {
            let fault = faults.into_iter().next().unwrap_or_default();
            return Err(BackupError::Damaged { path: path.to_owned(), fault });
        }
    }
    let sqlite = sqlite_error(path);
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(&sqlite)?;
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let version = number("PRAGMA user_version").map_err(&sqlite)?;
    let is_ours = number("SELECT count(*) FROM sqlite_schema WHERE name IN ('sessions', 'events', 'log_id')");
    if is_ours.map_err(&sqlite)? != 3 {
        return Err(foreign("it is a database of another program".into()));
    }
    if !(FIRST_VERSION..=SCHEMA_VERSION).contains(&version) {
        return Err(foreign(format!(
            "its schema has version {version}, and this version reads {FIRST_VERSION} to {SCHEMA_VERSION}"
        )));
    }
    let count = |sql: &str| number(sql).map(|count| count.max(0) as u64).map_err(&sqlite);
    Ok(BackupFacts {
        bytes,
        sessions: count("SELECT count(*) FROM sessions WHERE view IS NOT NULL")?,
        events: count("SELECT count(*) FROM events")?,
        audit: crate::audit::last(&connection).map_err(&sqlite)?,
    })
}

/// Replaces the database in `directory` with a backup. The replaced database stays until the new one is complete.
///
/// # Errors
/// When a server is running, the backup is damaged, or a file cannot be written; the database is then unchanged.
pub fn restore(directory: &Path, backup: &Path) -> Result<Restored, BackupError> {
    let facts = inspect(backup)?;
    let _lock = InstanceLock::acquire(&crate::lock_file(directory))?;
    let database = directory.join("capture.db");
    let draft = directory.join("capture.db.restoring");
    for suffix in ["", "-wal", "-shm", "-journal"] {
        remove(&beside(&draft, suffix))?;
    }
    let mut new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(file_error("write", &draft))?;
    let prepared = File::open(backup)
        .and_then(|mut old| io::copy(&mut old, &mut new))
        .map_err(file_error("write", &draft))
        .and_then(|_| rename_log(&draft))
        .and_then(|()| sync(&draft));
    if let Err(error) = prepared {
        fs::remove_file(&draft).ok();
        return Err(error);
    }
    // The write-ahead log of the replaced database must not be applied to the new one.
    let replaced = if database.exists() { settle_log(&database) } else { None };
    let aside = directory.join("capture.db.replaced");
    remove(&aside)?;
    if database.exists() {
        fs::hard_link(&database, &aside).map_err(file_error("keep", &aside))?;
    }
    for suffix in ["-wal", "-shm"] {
        let log = beside(&database, suffix);
        if log.exists() {
            fs::rename(&log, beside(&aside, suffix)).map_err(file_error("keep", &log))?;
        }
    }
    fs::rename(&draft, &database).map_err(file_error("write", &database))?;
    write_head(directory, facts.audit).map_err(file_error("write", directory))?;
    sync(directory)?;
    for suffix in ["", "-wal", "-shm"] {
        remove(&beside(&aside, suffix))?;
    }
    Ok(Restored { facts, replaced })
}

/// Gives a restored log a new id, because its positions differ from those of the replaced log.
fn rename_log(path: &Path) -> Result<(), BackupError> {
    let sqlite = sqlite_error(path);
    let connection = Connection::open(path).map_err(&sqlite)?;
    connection.execute_batch("PRAGMA journal_mode = DELETE; UPDATE log_id SET id = randomblob(16);").map_err(&sqlite)
}

/// Moves the write-ahead log into its database; returns the contents.
fn settle_log(path: &Path) -> Option<BackupFacts> {
    let settle = || -> rusqlite::Result<()> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(BUSY)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    };
    settle().ok()?;
    inspect(path).ok()
}

#[cfg(test)]
mod tests;
