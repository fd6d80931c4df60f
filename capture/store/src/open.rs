//! Opens the database: creates, checks, migrates or rebuilds it.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::Connection;

use crate::{
    audit::HEAD_FILE,
    check::{self, DatabaseCheck},
    lock::LockError,
    rebuild::{RebuildError, Rebuilt, rebuild},
    schema::{MigrationError, migrate, plan_once},
};

/// Longest wait for a database lock of another program: a longer wait would delay the error message.
pub(crate) const BUSY: Duration = Duration::from_secs(1);

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// Another process holds the lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The directory could not be made private.
    #[error("cannot use {path} as data directory: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// SQLite is too old to be safe.
    #[error("SQLite {found} is too old: 3.51.3 or newer is needed (older ones can corrupt a database in WAL mode)")]
    OldSqlite {
        /// The version of SQLite.
        found: String,
    },
    /// The schema could not be migrated.
    #[error("{path}: {source}")]
    Migration {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: MigrationError,
    },
    /// A damaged database could not be rebuilt.
    #[error("{path} is damaged: {source}")]
    Rebuild {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: Box<RebuildError>,
    },
    /// SQLite cannot open the file.
    #[error("cannot open {path}: {source}")]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
}

impl StoreOpenError {
    /// Whether the error means that the database file is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite { source, .. }
            | Self::Migration {
                source: MigrationError::Version(source) | MigrationError::Step { source, .. }, ..
            } => check::is_damage(source),
            Self::Migration { source: MigrationError::Newer { .. } | MigrationError::Unreleased { .. }, .. }
            | Self::Lock(_)
            | Self::Directory { .. }
            | Self::OldSqlite { .. }
            | Self::Rebuild { .. } => false,
        }
    }
}

/// Opens the database, or creates it.
pub(crate) fn connect(path: &Path) -> Result<Connection, StoreOpenError> {
    let unusable = |source| StoreOpenError::Directory { path: path.to_owned(), source };
    if !path.exists() {
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(path).map_err(unusable)?;
    }
    let sqlite = |source| StoreOpenError::Sqlite { path: path.to_owned(), source };
    let mut connection = Connection::open(path).map_err(sqlite)?;
    connection.busy_timeout(BUSY).map_err(sqlite)?;
    // Small pages: live events change few rows on many pages, and each changed page is written completely. The page
    // size is fixed when the database is created.
    connection
        .execute_batch(
            "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; \
             PRAGMA journal_size_limit = 167772160; PRAGMA cache_size = -12288; PRAGMA temp_store = MEMORY; \
             PRAGMA foreign_keys = OFF;",
        )
        .map_err(sqlite)?;
    migrate(&mut connection).map_err(|source| StoreOpenError::Migration { path: path.to_owned(), source })?;
    plan_once(&connection).map_err(sqlite)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// After an unclean end: checks the database, and rebuilds it if it is beyond repair.
pub(crate) fn repaired(path: &Path, was_unclean: bool) -> Result<Option<Rebuilt>, StoreOpenError> {
    if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        if path.with_file_name(HEAD_FILE).exists() {
            tracing::error!(path = %path.display(), "the database was removed or emptied; it is rebuilt from the agents' files, and the audit record is lost");
        }
        return Ok(None);
    }
    if !was_unclean {
        return Ok(None);
    }
    match check::quick(path, check::QUICK) {
        Ok(DatabaseCheck::Whole) => Ok(None),
        Ok(DatabaseCheck::Unfinished) => {
            tracing::warn!(
                "the check of the database was not finished in time; `capture doctor --deep` checks all of it"
            );
            Ok(None)
        }
        Ok(DatabaseCheck::Rows(rows)) => {
            tracing::warn!(?rows, "rows of the database are damaged and will be skipped");
            Ok(None)
        }
        Ok(DatabaseCheck::Damaged(faults)) => rebuilt_as(path, &faults).map(Some),
        Err(source) => Err(StoreOpenError::Sqlite { path: path.to_owned(), source }),
    }
}

/// Rebuilds the database and logs the result.
pub(crate) fn rebuilt_as(path: &Path, faults: &[String]) -> Result<Rebuilt, StoreOpenError> {
    tracing::error!(path = %path.display(), ?faults, "the database is damaged beyond repair; it is rebuilt");
    let rebuilt =
        rebuild(path).map_err(|source| StoreOpenError::Rebuild { path: path.to_owned(), source: Box::new(source) })?;
    let salvaged: Vec<String> = rebuilt.salvaged.iter().map(|(name, count)| format!("{count} {name}")).collect();
    tracing::error!(
        aside = %rebuilt.aside.display(), salvaged = salvaged.join(", "), lost = rebuilt.lost,
        "the database was rebuilt; the agents' files are read again, and the rest was copied row by row"
    );
    Ok(rebuilt)
}
