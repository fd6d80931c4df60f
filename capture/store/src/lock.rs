//! The lock file beside the database, which allows one writer at a time. The process holds it while it runs.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// The lock file of a data directory.
#[must_use]
pub fn lock_file(directory: &Path) -> PathBuf {
    directory.join("capture.lock")
}

/// Why the store could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("{path} is in use by another capture server (pid {pid}); stop it first, or use another data directory")]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The holder's pid, if it could be read.
        pid: String,
    },
    /// The lock file could not be created or locked.
    #[error("cannot lock {path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Holds the lock until it is dropped or the process ends for any reason. Dropping removes the pid from the file: a pid
/// found at the next start means that the previous process did not end cleanly.
#[derive(Debug)]
pub struct InstanceLock {
    file: File,
    was_unclean: bool,
    is_suspect: bool,
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        if !self.is_suspect
            && let Err(error) = self.file.set_len(0)
        {
            tracing::debug!(%error, "the next start checks the database");
        }
    }
}

impl InstanceLock {
    /// Acquires the lock and writes our pid into the file.
    ///
    /// # Errors
    /// When another process holds it (the error contains its pid), or the file cannot be created.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        let io = |source: std::io::Error| LockError::Io { path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).ok();
                let pid = if pid.trim().is_empty() { "unknown".to_owned() } else { pid.trim().to_owned() };
                return Err(LockError::Held { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let was_unclean = file.metadata().is_ok_and(|file| file.len() > 0);
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(io)?;
        Ok(Self { file, was_unclean, is_suspect: false })
    }

    /// Whether the previous holder did not end cleanly.
    #[must_use]
    pub const fn was_unclean(&self) -> bool {
        self.was_unclean
    }

    /// Makes the next start treat this process as one that did not end cleanly.
    pub(crate) const fn suspect(&mut self) {
        self.is_suspect = true;
    }
}

/// Whether a process holds the lock now. A lock that cannot be checked counts as free.
#[must_use]
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_instance_is_refused_with_the_pid_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = InstanceLock::acquire(&path).unwrap();
        assert!(is_held(&path));
        let refused = InstanceLock::acquire(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("pid {}", std::process::id())), "{refused}");
        assert!(!held.was_unclean());
        drop(held);
        assert!(!is_held(&path));
        let mut held = InstanceLock::acquire(&path).unwrap();
        assert!(!held.was_unclean(), "it was given back");
        held.suspect();
        drop(held);
        assert!(InstanceLock::acquire(&path).unwrap().was_unclean());
    }
}
