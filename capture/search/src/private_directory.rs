//! The index's directory, whose files only their owner can read, whatever the umask.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tantivy::{
    Directory,
    directory::{
        DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
        error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError},
    },
};

/// Index files on disk.
#[derive(Debug, Clone)]
pub(crate) struct PrivateDirectory {
    files: MmapDirectory,
    root: PathBuf,
}

impl PrivateDirectory {
    /// Opens an existing directory.
    pub(crate) fn open(root: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { files: MmapDirectory::open(root)?, root: root.to_owned() })
    }

    fn make_private(&self, path: &Path) -> io::Result<()> {
        fs::set_permissions(self.root.join(path), Permissions::from_mode(0o600))
    }
}

impl Directory for PrivateDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let writer = self.files.open_write(path)?;
        self.make_private(path).map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        Ok(writer)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.files.atomic_write(path, data)?;
        self.make_private(path)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let held = self.files.acquire_lock(lock)?;
        self.make_private(&lock.filepath).map_err(LockError::wrap_io_error)?;
        Ok(held)
    }

    fn watch(&self, changed: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn every_index_file_has_mode_0600() {
        let place = tempfile::tempdir().unwrap();
        let directory = PrivateDirectory::open(place.path()).unwrap();
        directory.open_write(Path::new("a.idx")).unwrap().write_all(b"x").unwrap();
        directory.atomic_write(Path::new("meta.json"), b"{}").unwrap();
        let lock = directory.acquire_lock(&tantivy::directory::INDEX_WRITER_LOCK).unwrap();
        let mut files = 0;
        for file in fs::read_dir(place.path()).unwrap().map(Result::unwrap) {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
            files += 1;
        }
        assert_eq!(files, 3);
        drop(lock);
    }
}
