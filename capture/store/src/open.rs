//! Opening the database: made, checked, brought to the present schema, or rebuilt.

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

/// Longest wait for a database that another program holds: longer would keep quiet about it.
pub(crate) const BUSY: Duration = Duration::from_secs(1);

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// Another process has it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The directory could not be made private.
    #[error("cannot use {path} as data directory: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite is too old to be safe.
    #[error("SQLite {found} is too old: 3.51.3 or newer is needed (older ones can corrupt a database in WAL mode)")]
    OldSqlite {
        /// Its version.
        found: String,
    },
    /// The schema could not be brought up to date.
    #[error("{path}: {source}")]
    Migration {
        /// The database.
        path: PathBuf,
        /// Why.
        source: MigrationError,
    },
    /// A damaged database could not be rebuilt.
    #[error("{path} is damaged: {source}")]
    Rebuild {
        /// The database.
        path: PathBuf,
        /// Why.
        source: Box<RebuildError>,
    },
    /// SQLite cannot open the file.
    #[error("cannot open {path}: {source}")]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

impl StoreOpenError {
    /// Whether it says that the database file is damaged.
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

/// Opens the database, or makes it.
pub(crate) fn connect(path: &Path) -> Result<Connection, StoreOpenError> {
    let unusable = |source| StoreOpenError::Directory { path: path.to_owned(), source };
    if !path.exists() {
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(path).map_err(unusable)?;
    }
    let sqlite = |source| StoreOpenError::Sqlite { path: path.to_owned(), source };
    let mut connection = Connection::open(path).map_err(sqlite)?;
    connection.busy_timeout(BUSY).map_err(sqlite)?;
    // Small pages: what arrives live changes few rows of many pages, and each changed page is written whole. The size is
    // that of the first start.
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

/// After an end that was not clean: checks the database, and rebuilds it when it is beyond repair.
pub(crate) fn repaired(path: &Path, was_unclean: bool) -> Result<Option<Rebuilt>, StoreOpenError> {
    if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        if path.with_file_name(HEAD_FILE).exists() {
            tracing::error!(path = %path.display(), "the database was removed or emptied; it is made again from the agents' files, and the audit record is lost");
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

/// Rebuilds the database, and says so.
pub(crate) fn rebuilt_as(path: &Path, faults: &[String]) -> Result<Rebuilt, StoreOpenError> {
    tracing::error!(path = %path.display(), ?faults, "the database is damaged beyond repair; it is rebuilt");
    let rebuilt =
        rebuild(path).map_err(|source| StoreOpenError::Rebuild { path: path.to_owned(), source: Box::new(source) })?;
    let salvaged: Vec<String> = rebuilt.salvaged.iter().map(|(name, count)| format!("{count} {name}")).collect();
    tracing::error!(
        aside = %rebuilt.aside.display(), salvaged = salvaged.join(", "), lost = rebuilt.lost,
        "the database was rebuilt; what agents' files hold is read again, the rest was copied row by row"
    );
    Ok(rebuilt)
}
