//! What is wrong with the store, for whoever asks: why the last commit failed, whether its files are still the ones
//! that were opened, what is damaged in it.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use store::{DamagedRows, ReadFailure};

/// What is wrong with the store.
#[derive(Debug, Default)]
pub struct StoreHealth {
    /// Why the database is not accepting writes.
    failing: Mutex<Option<String>>,
    /// Why the files of the store are lost; they do not come back.
    gone: OnceLock<String>,
    database: OnceLock<(PathBuf, DamagedRows)>,
}

impl StoreHealth {
    /// The store is the database at `path`.
    pub fn opened(&self, path: &Path, damaged: &DamagedRows) {
        self.database.get_or_init(|| (path.to_owned(), damaged.clone()));
    }

    /// A commit failed.
    pub fn failed(&self, failure: ReadFailure, error: &dyn std::fmt::Display) {
        let why = match failure {
            ReadFailure::Full => "the disk is full".to_owned(),
            ReadFailure::Locked => "another program has locked the database".to_owned(),
            ReadFailure::ReadOnly => "the database is read-only".to_owned(),
            ReadFailure::Damaged => "the database is damaged".to_owned(),
            ReadFailure::Io => format!("reading or writing the database failed: {error}"),
            ReadFailure::Other => error.to_string(),
        };
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// A commit succeeded again.
    pub fn recovered(&self) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The files of the store are not the ones that were opened any more.
    pub fn lost(&self, why: String) {
        if self.gone.set(why).is_ok()
            && let Some(why) = self.gone.get()
        {
            tracing::error!("{why}: nothing is recorded any more");
        }
    }

    /// Why nothing is recorded, in one line; `None` while everything is.
    #[must_use]
    pub fn not_recording(&self) -> Option<String> {
        let failing = || self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let why = self.gone.get().cloned().or_else(failing)?;
        Some(format!("nothing is recorded: {why}"))
    }

    /// How many rows cannot be read.
    #[must_use]
    pub fn damaged_rows(&self) -> u64 {
        self.database.get().map_or(0, |(_, damaged)| damaged.count())
    }

    /// What a person should look at, though everything is recorded.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        let (path, damaged) = self.database.get()?;
        let aside = path.parent().map(store::put_aside).unwrap_or_default();
        let aside = aside.last().map(|aside| {
            format!(
                "the database was damaged and was rebuilt; the damaged one is {} (remove it when you have seen it)",
                aside.display()
            )
        });
        let rows = damaged.first().map(|first| {
            let count = damaged.count();
            format!("rows that cannot be read are skipped: {count}, for instance {first}")
        });
        let all: Vec<String> = aside.into_iter().chain(rows).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Which files a store consists of, whatever is done to their names.
#[derive(Debug, Clone)]
pub struct StoreFiles(Vec<StoreFile>);

#[derive(Debug, Clone)]
struct StoreFile {
    name: &'static str,
    path: PathBuf,
    /// Device and inode when the store was opened.
    identity: Option<(u64, u64)>,
}

impl StoreFiles {
    /// The files of the database at `path` as they are now.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let directory = path.parent().unwrap_or(path).to_owned();
        let lock = store::lock_file(&directory);
        let files = [("the data directory", directory), ("its lock file", lock), ("the database", path.to_owned())];
        let file = |(name, path): (&'static str, PathBuf)| StoreFile { name, identity: identity(&path), path };
        Self(files.map(file).into())
    }

    /// What happened to them, without their paths: `None` while they are the same.
    #[must_use]
    pub fn change(&self) -> Option<String> {
        self.0.iter().find_map(|StoreFile { name, path, identity: before }| match identity(path) {
            now if now == *before => None,
            None => Some(format!("{name} was removed")),
            Some(_) => Some(format!("{name} was replaced")),
        })
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
