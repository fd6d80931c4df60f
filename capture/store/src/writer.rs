//! Writes the store: one connection, one transaction at a time, prepared statements.
//!
//! The caller assigns positions and sequences; an uncommitted transaction has no effect, not even on the caches.

use std::{
    fs::DirBuilder,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use events::{Cursor, Event, Identity, Provider, SessionId, Timestamp};
use projections::{SessionState, Turn};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::{
    appender::{EventAppender, FileKeys},
    damage::DamagedRows,
    error::{CommitError, ReadError, failed},
    known::KnownRecords,
    lock::InstanceLock,
    open::{BUSY, StoreOpenError, connect, rebuilt_as, repaired},
    reader::Reader,
    rebuild::Rebuilt,
    rows::lossy,
    schema::SQLITE_OLDEST,
    session_row::{KNOWN, KnownSession, SessionRow, known_session},
    text::PackedText,
    tombstones::Tombstones,
};

/// The only writer.
#[derive(Debug)]
pub struct Writer {
    connection: Connection,
    path: PathBuf,
    files: FileKeys,
    known: KnownRecords,
    pub(crate) tombstones: Tombstones,
    damaged: DamagedRows,
    rebuilt: Option<Rebuilt>,
    lock: InstanceLock,
}

/// Longest wait for a reader that prevents the write-ahead log from being emptied.
const CHECKPOINT_BUSY: Duration = Duration::from_millis(50);
/// Size of a page's header in the write-ahead log.
const FRAME_HEADER: u64 = 24;

/// The used part of the write-ahead log. Its file may be larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogUse {
    /// Bytes written since the log was started.
    pub written: u64,
    /// Bytes already moved to the database.
    pub moved: u64,
}

impl LogUse {
    /// Bytes still to be moved to the database.
    #[must_use]
    pub const fn left(self) -> u64 {
        self.written.saturating_sub(self.moved)
    }
}

fn log_use(connection: &Connection) -> Result<LogUse, CommitError> {
    let read = || -> rusqlite::Result<LogUse> {
        let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let bytes = |frames: i64| frames.max(0) as u64 * (page.max(0) as u64 + FRAME_HEADER);
        // `NOOP` moves nothing and returns the number of frames and of moved frames.
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
            Ok(LogUse { written: bytes(row.get(1)?), moved: bytes(row.get(2)?) })
        })
    };
    read().map_err(failed("the write-ahead log"))
}

impl Writer {
    /// Opens or creates the store in `directory`, which becomes private to its owner.
    ///
    /// # Errors
    /// When another process uses the store, the directory cannot be used, SQLite is too old, or the database is damaged
    /// or of a newer version.
    pub fn open(directory: &Path) -> Result<Self, StoreOpenError> {
        let unusable = |source| StoreOpenError::Directory { path: directory.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unusable)?;
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700)).map_err(unusable)?;
        let lock = InstanceLock::acquire(&crate::lock_file(directory))?;
        if rusqlite::version_number() < SQLITE_OLDEST {
            return Err(StoreOpenError::OldSqlite { found: rusqlite::version().to_owned() });
        }
        let path = directory.join("capture.db");
        let rebuilt = repaired(&path, lock.was_unclean())?;
        let opened = || {
            let connection = connect(&path)?;
            let known = KnownRecords::load(&connection)
                .map_err(|source| StoreOpenError::Sqlite { path: path.clone(), source })?;
            Ok::<_, StoreOpenError>((connection, known))
        };
        let ((connection, known), rebuilt) = match (opened(), rebuilt) {
            // Damaged even after a clean end: the header, the schema table, or data that is read at each start.
            (Err(error), None) if error.is_damage() => {
                let rebuilt = rebuilt_as(&path, &[error.to_string()])?;
                (opened()?, Some(rebuilt))
            }
            (opened, rebuilt) => (opened?, rebuilt),
        };
        let tombstones = Tombstones::load(directory, &connection)
            .map_err(|source| StoreOpenError::Sqlite { path: path.clone(), source })?;
        let (files, damaged) = (FileKeys::default(), DamagedRows::default());
        let mut writer = Self { connection, path, files, known, tombstones, damaged, rebuilt, lock };
        writer.remove_again()?;
        if let Err(error) = writer.write_first_head() {
            tracing::warn!(%error, "cannot write audit.head (the last row of the audit record)");
        }
        Ok(writer)
    }

    /// How a damaged database was rebuilt at this start; `None` if it was not damaged.
    #[must_use]
    pub const fn rebuilt(&self) -> Option<&Rebuilt> {
        self.rebuilt.as_ref()
    }

    /// Marks the database as damaged, so that the next start checks it.
    pub const fn suspect(&mut self) {
        self.lock.suspect();
    }

    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Clears the cache of files' rows.
    pub(crate) fn lose_files(&mut self) {
        self.files = FileKeys::default();
    }

    /// A reader of this store.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::noting(self.path.clone(), self.damaged.clone())
    }

    /// The last committed position; 0 for an empty log.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn position(&self) -> Result<u64, ReadError> {
        let position: Option<i64> = self
            .connection
            .query_row(crate::reader::POSITION, [], |row| row.get(0))
            .map_err(|source| ReadError::Sqlite { what: "position", source })?;
        Ok(position.unwrap_or(0).max(0) as u64)
    }

    /// The agent's id of the session whose transcript this file is, if the file was read.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn session_of_file(&self, path: &str) -> Result<Option<String>, ReadError> {
        let cursor: Option<String> = self
            .connection
            .prepare_cached("SELECT cursor FROM files WHERE path = ?1")
            .and_then(|mut s| s.query_row([path], |row| lossy(row, 0)).optional())
            .map(Option::flatten)
            .map_err(|source| ReadError::Sqlite { what: "cursor", source })?;
        let cursor = cursor.and_then(|json| self.reader().parsed::<Cursor>("cursor", path, &json));
        Ok(cursor.and_then(|cursor| cursor.provider_session_id))
    }

    /// All sessions in the store.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn sessions(&self) -> Result<Vec<KnownSession>, ReadError> {
        let sqlite = |source| ReadError::Sqlite { what: "sessions", source };
        let mut statement = self.connection.prepare(&format!("SELECT {KNOWN} FROM sessions")).map_err(sqlite)?;
        let rows = statement.query_map([], known_session).map_err(sqlite)?;
        rows.collect::<Result<_, _>>().map_err(sqlite)
    }

    /// The reducer of a session as last written; its log may be ahead. `None` if there is none, it is damaged, or
    /// another version wrote it in another form: then the log is folded again.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn snapshot(&self, row: SessionRow) -> Result<Option<SessionState>, ReadError> {
        let sqlite = |source| ReadError::Sqlite { what: "snapshot", source };
        let mut statement =
            self.connection.prepare_cached("SELECT snapshot FROM sessions WHERE key = ?1").map_err(sqlite)?;
        let text = statement.query_row([row.number()], |row| lossy(row, 0)).optional().map_err(sqlite)?.flatten();
        let Some(text) = text else { return Ok(None) };
        // Damaged, or written by another version.
        let unreadable = |error: &serde_json::Error| {
            tracing::info!(row = row.number(), %error, "the snapshot of a session cannot be read; the session is computed again from its log");
        };
        Ok(serde_json::from_str(&text).inspect_err(unreadable).ok())
    }

    /// The sessions whose rows may be behind the log.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn unsettled(&self) -> Result<Vec<SessionRow>, ReadError> {
        let sqlite = |source| ReadError::Sqlite { what: "sessions", source };
        let mut statement = self
            .connection
            // Without the hint, SQLite scans the index by session, which has a row for each event.
            .prepare("SELECT DISTINCT session FROM events NOT INDEXED WHERE position > ?1")
            .map_err(sqlite)?;
        let settled = self.settled()? as i64;
        let rows = statement.query_map([settled], |row| row.get(0).map(SessionRow::of)).map_err(sqlite)?;
        rows.collect::<Result<_, _>>().map_err(sqlite)
    }

    /// The position up to which the rows of all sessions were last recorded as complete; 0 if never.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn settled(&self) -> Result<u64, ReadError> {
        let sqlite = |source| ReadError::Sqlite { what: "sessions", source };
        let settled: i64 = self
            .connection
            .query_row("SELECT ifnull(max(position), 0) FROM settled", [], |row| row.get(0))
            .map_err(sqlite)?;
        Ok(settled.max(0) as u64)
    }

    /// Records that the rows of all sessions are complete up to this position.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn settle(&mut self, position: u64) -> Result<(), CommitError> {
        let failed = failed("the position up to which sessions are complete");
        let mut statement =
            self.connection.prepare_cached("INSERT OR REPLACE INTO settled VALUES (0, ?1)").map_err(&failed)?;
        statement.execute([position as i64]).map_err(&failed)?;
        Ok(())
    }

    /// The sequence of a session's last event; 0 if it has none.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn last_sequence(&self, row: SessionRow) -> Result<u64, ReadError> {
        let sqlite = |source| ReadError::Sqlite { what: "events", source };
        let mut statement =
            self.connection.prepare_cached("SELECT max(sequence) FROM events WHERE session = ?1").map_err(sqlite)?;
        let last: Option<i64> = statement.query_row([row.number()], |row| row.get(0)).map_err(sqlite)?;
        Ok(last.unwrap_or(0).max(0) as u64)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn begin(&mut self) -> Result<(), CommitError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed("a transaction"))
    }

    /// Commits. If it fails, nothing was written.
    ///
    /// # Errors
    /// When SQLite fails, for example for lack of space.
    pub fn commit(&mut self) -> Result<(), CommitError> {
        let done = self.known.write(&self.connection).and_then(|()| self.connection.execute_batch("COMMIT"));
        match done {
            Ok(()) => {
                self.files.committed();
                self.known.committed();
                self.tombstones.committed();
                Ok(())
            }
            Err(source) => {
                self.rollback();
                Err(CommitError { what: "a transaction", source })
            }
        }
    }

    /// Rolls back the open transaction, if any.
    pub fn rollback(&mut self) {
        self.files.rolled_back();
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "cannot roll back a transaction");
        }
        self.known.rolled_back();
        self.tombstones.rolled_back();
    }

    /// The session a record belongs to, if the record is known.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn known(&self, identity: Identity) -> Result<Option<SessionRow>, CommitError> {
        self.known.find(&self.connection, identity.bits()).map_err(failed("the list of known records"))
    }

    /// Marks a record as known. Returns false if it was already known.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn learn(&mut self, identity: Identity, session: SessionRow) -> Result<bool, CommitError> {
        self.known.add(&self.connection, identity.bits(), session).map_err(failed("the list of known records"))
    }

    /// Adds a session.
    ///
    /// # Errors
    /// When SQLite cannot write, or the session already exists.
    pub fn add_session(
        &mut self,
        id: SessionId,
        provider: Provider,
        provider_session_id: &str,
    ) -> Result<SessionRow, CommitError> {
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO sessions (id, provider, provider_session_id) VALUES (?1, ?2, ?3)")
            .map_err(failed("a session"))?;
        statement
            .insert(params![id.to_bytes().as_slice(), provider.code(), provider_session_id])
            .map(SessionRow::of)
            .map_err(failed("a session"))
    }

    /// Replaces a session's snapshot and the view made from it (both JSON).
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn put_session(
        &mut self,
        row: SessionRow,
        last_event_at: Timestamp,
        view: &str,
        snapshot: &str,
    ) -> Result<(), CommitError> {
        let mut statement = self
            .connection
            .prepare_cached("UPDATE sessions SET last_event_at = ?2, view = ?3, snapshot = ?4 WHERE key = ?1")
            .map_err(failed("the state of a session"))?;
        statement
            .execute(params![row.number(), last_event_at.as_millisecond(), view, snapshot])
            .map_err(failed("the state of a session"))?;
        Ok(())
    }

    /// Turns capture of a session on or off.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn set_capture(&mut self, row: SessionRow, on: bool) -> Result<(), CommitError> {
        self.connection
            .execute("UPDATE sessions SET capture = ?2 WHERE key = ?1", params![row.number(), on])
            .map_err(failed("a setting"))?;
        Ok(())
    }

    /// Stores a finished turn.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn put_turn(&mut self, row: SessionRow, turn: &Turn) -> Result<(), CommitError> {
        let json = serde_json::to_string(turn).unwrap_or_default();
        let mut statement = self
            .connection
            .prepare_cached("INSERT OR REPLACE INTO turns (session, number, turn) VALUES (?1, ?2, ?3)")
            .map_err(failed("a turn"))?;
        statement.execute(params![row.number(), turn.number, json]).map_err(failed("a turn"))?;
        Ok(())
    }

    /// Stores the cursor of a file.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn put_cursor(&mut self, cursor: &Cursor) -> Result<(), CommitError> {
        let key = self.files.key_of(&self.connection, &Arc::from(cursor.path.as_str()))?;
        let json = serde_json::to_string(cursor).unwrap_or_default();
        let mut statement = self
            .connection
            .prepare_cached("UPDATE files SET cursor = ?2 WHERE key = ?1")
            .map_err(failed("the position in a file"))?;
        statement.execute(params![key, json]).map_err(failed("the position in a file"))?;
        Ok(())
    }

    /// Appends an event that has its position and sequence, with the text that was too long for it.
    ///
    /// # Errors
    /// When SQLite cannot write, or the position or sequence is taken.
    pub fn append(&mut self, row: SessionRow, event: &Event, text: Option<&PackedText>) -> Result<(), CommitError> {
        self.appender()?.append(row, event, text, None)
    }

    /// An appender for several events.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn appender(&mut self) -> Result<EventAppender<'_>, CommitError> {
        EventAppender::new(&self.connection, &mut self.files)
    }

    /// The used part of the write-ahead log.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn log_use(&self) -> Result<LogUse, CommitError> {
        log_use(&self.connection)
    }

    /// Like [`log_use`](Self::log_use), from another thread over a separate connection.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn log_use_of(path: &Path) -> Result<LogUse, CommitError> {
        // Never creates a database: the file may have been removed.
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
        log_use(&connection.map_err(failed("the write-ahead log"))?)
    }

    /// Moves the whole write-ahead log into the database, so that the next commit restarts the log; its file keeps its
    /// size. Call between transactions. A reader that uses the log for longer than a moment prevents this; then the
    /// next call tries again.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn restart_log(&self) -> Result<(), CommitError> {
        self.checkpoint_all("RESTART").map(drop)
    }

    /// Moves the whole write-ahead log into the database and truncates the log. Call between transactions. A reader
    /// that uses the log for longer than a moment prevents this: returns `false`, and the next call tries again.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn empty_log(&self) -> Result<bool, CommitError> {
        self.checkpoint_all("TRUNCATE")
    }

    /// Returns whether the checkpoint was completed.
    fn checkpoint_all(&self, mode: &str) -> Result<bool, CommitError> {
        let failed = failed("a checkpoint");
        self.connection.busy_timeout(CHECKPOINT_BUSY).map_err(&failed)?;
        // The first column is 1 if a reader or writer prevented it.
        let completed = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(0)? == 0);
        let done = self.connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], completed);
        self.connection.busy_timeout(BUSY).map_err(&failed)?;
        done.map_err(&failed)
    }

    /// Releases the memory of cached database pages, for example after an import. Needed pages are read again.
    pub fn release_memory(&self) {
        if let Err(error) = self.connection.execute_batch("PRAGMA shrink_memory") {
            tracing::debug!(%error, "cannot release the memory of the database's pages");
        }
    }

    /// Moves committed pages that no reader still needs in the write-ahead log into the database. Opens a separate
    /// connection, so it can be called from another thread.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn checkpoint(path: &Path, truncate: bool) -> Result<(), CommitError> {
        // Never creates a database: the file may have been removed.
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed("a checkpoint"))?;
        connection.busy_timeout(Duration::from_millis(500)).map_err(failed("a checkpoint"))?;
        let mode = if truncate { "TRUNCATE" } else { "PASSIVE" };
        connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).map_err(failed("a checkpoint"))
    }

    /// Truncates the write-ahead log if there is no reader or writer right now. Never waits.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn truncate_log(path: &Path) -> Result<(), CommitError> {
        // Leaves little to copy in the second step, so that concurrent commits do not wait for it.
        Self::checkpoint(path, false)?;
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed("a checkpoint"))?;
        connection.busy_timeout(Duration::ZERO).map_err(failed("a checkpoint"))?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed("a checkpoint"))
    }

    /// Releases the memory used for reading everything at start.
    pub fn shrink(&self) {
        if let Err(error) = self.connection.execute_batch("PRAGMA shrink_memory") {
            tracing::debug!(%error, "cannot release memory");
        }
    }

    /// The path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests;
