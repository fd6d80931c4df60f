//! Problems with the store: why the last commit failed, whether its files are still those that were opened, and whether
//! rows are damaged.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
};

use store::{DamagedRows, ReadFailure};

/// Problems with the store.
#[derive(Debug, Default)]
pub struct StoreHealth {
    /// Why the database is not accepting writes.
    failing: Mutex<Option<String>>,
    /// Why the store's files are lost, which is permanent.
    gone: OnceLock<String>,
    database: OnceLock<(PathBuf, DamagedRows)>,
}

impl StoreHealth {
    /// Sets the path of the database and its damaged rows.
    pub fn opened(&self, path: &Path, damaged: &DamagedRows) {
        self.database.get_or_init(|| (path.to_owned(), damaged.clone()));
    }

    /// Records a failed commit.
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

    /// Records that commits succeed again.
    pub fn recovered(&self) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Records that the store's files are no longer those that were opened.
    pub fn lost(&self, why: String) {
        if self.gone.set(why).is_ok()
            && let Some(why) = self.gone.get()
        {
            tracing::error!("{why}: nothing more is recorded");
        }
    }

    /// Why nothing is recorded, in one line; `None` while recording works.
    #[must_use]
    pub fn not_recording(&self) -> Option<String> {
        let failing = || self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let why = self.gone.get().cloned().or_else(failing)?;
        Some(format!("nothing is recorded: {why}"))
    }

    /// The number of unreadable rows.
    #[must_use]
    pub fn damaged_rows(&self) -> u64 {
        self.database.get().map_or(0, |(_, damaged)| damaged.count())
    }

    /// Damage the user should look at although recording works.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        let (path, damaged) = self.database.get()?;
        let aside = path.parent().map(store::put_aside).unwrap_or_default();
        let aside = aside.last().map(|aside| {
            format!(
                "the database was damaged and was rebuilt; the damaged one is {} (remove it when no longer needed)",
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

/// Identifies the store's files independently of their names.
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
    /// The current files of the database at `path`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let directory = path.parent().unwrap_or(path).to_owned();
        let lock = store::lock_file(&directory);
        let files = [("the data directory", directory), ("its lock file", lock), ("the database", path.to_owned())];
        let file = |(name, path): (&'static str, PathBuf)| StoreFile { name, identity: identity(&path), path };
        Self(files.map(file).into())
    }

    /// What happened to the files, without their paths; `None` while they are unchanged.
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
