//! Removes sessions: first from everything that is shown, in one transaction, then their events and texts in small
//! ones, last what is left of them in free pages and in the write-ahead log.
//!
//! The row of a session stays, with a hash for a name. So its number is not given to another session, the records that
//! are known to be its own stay known, and a copy of its file adds nothing. What is still to be erased is in the table
//! `erasing`: a process that is killed goes on at the next start.

use std::collections::HashSet;

use events::{Provider, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    audit::{self, AuditHead},
    error::ReadError,
    open::StoreOpenError,
    reader::{Reader, lossy},
    rows::bits,
    tombstones::{REMOVED, is_removed_name, removed_name},
    writer::{CommitError, KnownSession, SessionRow, Writer},
};

/// Why a session is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalKind {
    /// A person wants nothing of it to be left.
    Forgotten,
    /// To save space. Its decisions stay in the audit record, and where its files were read up to.
    Pruned,
}

/// A session that is to be removed.
#[derive(Debug, Clone)]
pub struct SessionRemoval<'a> {
    /// The session.
    pub known: &'a KnownSession,
    /// Why.
    pub kind: RemovalKind,
    /// What has to be known of it until it is erased everywhere; the store keeps it as it is.
    pub about: &'a str,
    /// When.
    pub at: Timestamp,
}

/// A session that was removed, and is not erased everywhere yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasePending {
    /// Its row.
    pub row: SessionRow,
    /// The id it had.
    pub id: SessionId,
    /// Why it was removed.
    pub kind: RemovalKind,
    /// What was noted of it.
    pub about: String,
}

/// The size of the database before and after it was compacted, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// Tables with a column `session` whose rows of a removed session are not deleted at once: the events are many, the known
/// records keep copies from being read.
const LATER: &[&str] = &["events", "known_recent", "known_sorted", "erasing"];
/// Pages that one step gives back.
const STEP_PAGES: u32 = 1_024;

fn failed(what: &'static str) -> impl Fn(rusqlite::Error) -> CommitError {
    move |source| CommitError { what, source }
}

fn io_failed(error: std::io::Error) -> CommitError {
    CommitError { what: "the list of removed sessions", source: rusqlite::Error::ToSqlConversionFailure(error.into()) }
}

impl Writer {
    /// Whether any session was ever removed.
    #[must_use]
    pub fn has_removed(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// Why a session of this name was removed; `None` when it was not.
    #[must_use]
    pub fn removed(&self, provider: Provider, provider_session_id: &str) -> Option<RemovalKind> {
        self.tombstones.of(provider, provider_session_id)
    }

    /// Removes sessions from everything that is shown, within the open transaction. Gives the new end of the audit record
    /// when something was taken out of it.
    ///
    /// # Errors
    /// When SQLite or the list of removed sessions cannot be written.
    pub fn remove_sessions(&mut self, removals: &[SessionRemoval<'_>]) -> Result<Option<AuditHead>, CommitError> {
        let Some(SessionRemoval { kind, at, .. }) = removals.first() else { return Ok(None) };
        let names = removals.iter().map(|removal| (removal.known.provider, &*removal.known.provider_session_id));
        let mut tombstones = std::mem::take(&mut self.tombstones);
        let added = tombstones.add(self.connection(), *kind, names, *at);
        self.tombstones = tombstones;
        added.map_err(io_failed)?.map_err(failed("the list of removed sessions"))?;
        self.keep_position(0)?;
        let tables = tables_of_sessions(self.connection()).map_err(failed("tables"))?;
        for removal in removals {
            remove_rows(self.connection(), removal, &tables).map_err(failed("a session's rows"))?;
            if removal.kind == RemovalKind::Forgotten {
                forget_files(self.connection(), &removal.known.provider_session_id).map_err(failed("files"))?;
                self.lose_files();
            }
        }
        if *kind == RemovalKind::Pruned {
            return Ok(None);
        }
        let ids: Vec<SessionId> = removals.iter().map(|removal| removal.known.id).collect();
        self.forget_decisions(&ids, *at).map(Some)
    }

    /// Positions up to the present end of the log, and up to this one, are not given again, also when their events are
    /// removed.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn keep_position(&mut self, position: u64) -> Result<(), CommitError> {
        self.connection()
            .prepare_cached(
                "INSERT OR REPLACE INTO log_end SELECT 0, max(?1, ifnull((SELECT max(position) FROM events), 0), \
                 ifnull((SELECT position FROM log_end), 0))",
            )
            .and_then(|mut s| s.execute([position as i64]))
            .map(drop)
            .map_err(failed("the end of the log"))
    }

    /// Removes the sessions that the list names and the database has all the same: the process was killed in between, or
    /// the database is a backup.
    pub(crate) fn remove_again(&mut self) -> Result<(), StoreOpenError> {
        if !self.has_removed() {
            return Ok(());
        }
        let path = self.path().to_owned();
        let sqlite = |source| StoreOpenError::Sqlite { path: path.clone(), source };
        let sessions = self.sessions().map_err(|error| match error {
            ReadError::Sqlite { source, .. } => sqlite(source),
            ReadError::Damaged { .. } => sqlite(rusqlite::Error::InvalidQuery),
        })?;
        let is_left = |known: &KnownSession| {
            !is_removed_name(&known.provider_session_id)
                && self.removed(known.provider, &known.provider_session_id).is_some()
        };
        let left: Vec<KnownSession> = sessions.into_iter().filter(is_left).collect();
        if left.is_empty() {
            return Ok(());
        }
        tracing::info!(sessions = left.len(), "removing sessions that were forgotten or pruned before");
        let removals: Vec<_> = left.iter().map(again).collect();
        let done = self.begin().and_then(|()| self.remove_sessions(&removals));
        let done = done.and_then(|head| self.commit().map(|()| head));
        match done {
            Ok(head) => {
                head.into_iter().for_each(|head| self.keep_head(head));
                Ok(())
            }
            Err(error) => {
                self.rollback();
                Err(sqlite(error.source))
            }
        }
    }

    fn keep_head(&self, head: AuditHead) {
        if let Some(directory) = self.path().parent()
            && let Err(error) = audit::write_head(directory, head)
        {
            tracing::warn!(%error, "cannot write audit.head (the last row of the audit record)");
        }
    }

    /// Deletes texts that only removed sessions used when the log went up to `until`.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn erase_texts(&mut self, hashes: &[[u8; 16]], until: u64) -> Result<(), CommitError> {
        let failed = failed("texts");
        let transaction = self.connection().unchecked_transaction().map_err(&failed)?;
        {
            let sql = "SELECT text_hash FROM events WHERE position > ?1 AND text_hash IS NOT NULL";
            let mut used = transaction.prepare_cached(sql).map_err(&failed)?;
            let used = used.query_map([until as i64], |row| Ok(bits(row.get_ref(0)?.as_blob()?))).map_err(&failed)?;
            let used: HashSet<[u8; 16]> = used.collect::<Result<_, _>>().map_err(&failed)?;
            let mut delete = transaction.prepare_cached("DELETE FROM texts WHERE hash = ?1").map_err(&failed)?;
            for hash in hashes.iter().filter(|hash| !used.contains(*hash)) {
                delete.execute([hash.as_slice()]).map_err(&failed)?;
            }
        }
        transaction.commit().map_err(failed)
    }

    /// Deletes up to `limit` events of removed sessions; gives how many there were.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn erase_events(&mut self, rows: &[SessionRow], limit: usize) -> Result<usize, CommitError> {
        let failed = failed("events");
        let transaction = self.connection().unchecked_transaction().map_err(&failed)?;
        let mut deleted = 0;
        {
            let sql = "DELETE FROM events WHERE position IN \
                       (SELECT position FROM events WHERE session = ?1 ORDER BY sequence LIMIT ?2)";
            let mut delete = transaction.prepare_cached(sql).map_err(&failed)?;
            for row in rows {
                deleted += delete.execute(params![row.number(), (limit - deleted) as i64]).map_err(&failed)?;
                if deleted >= limit {
                    break;
                }
            }
        }
        transaction.commit().map_err(failed)?;
        Ok(deleted)
    }

    /// Removed sessions are erased everywhere: what was noted of them goes too, also from the pages it was in.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn finish_erasing(&mut self, rows: &[SessionRow]) -> Result<(), CommitError> {
        let failed = failed("the list of removed sessions");
        self.connection().execute_batch("PRAGMA secure_delete = ON").map_err(&failed)?;
        let deleted = rows.iter().try_for_each(|row| {
            self.connection().execute("DELETE FROM erasing WHERE session = ?1", [row.number()]).map(drop)
        });
        self.connection().execute_batch("PRAGMA secure_delete = OFF").map_err(&failed)?;
        deleted.map_err(failed)?;
        self.empty_log()
    }

    /// Writes a new copy of the whole database in its place, without free pages and without remains of what was deleted, and empties the
    /// write-ahead log. Nothing else is written meanwhile.
    ///
    /// # Errors
    /// When SQLite cannot, for want of space, or because a reader holds the log.
    pub fn compact(&mut self) -> Result<Compacted, CommitError> {
        let failed = failed("the compacted database");
        let before = self.file_bytes();
        // Temporary files have no name: they are removed when they are opened.
        let sql = "PRAGMA temp_store = FILE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM;";
        let done = self.connection().execute_batch(sql);
        self.connection().execute_batch("PRAGMA temp_store = MEMORY").map_err(&failed)?;
        done.map_err(failed)?;
        self.empty_log()?;
        Ok(Compacted { before, after: self.file_bytes() })
    }

    /// Gives some free pages back to the system; gives how many are left. `None` when the database was never compacted:
    /// then only [`Self::compact`] can.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn give_back(&mut self) -> Result<Option<u64>, CommitError> {
        let failed = failed("free pages");
        let number = |pragma: &str| self.connection().query_row(pragma, [], |row| row.get::<_, i64>(0));
        if number("PRAGMA auto_vacuum").map_err(&failed)? != 2 {
            return Ok(None);
        }
        self.connection().execute_batch(&format!("PRAGMA incremental_vacuum({STEP_PAGES})")).map_err(&failed)?;
        let free = number("PRAGMA freelist_count").map_err(&failed)?;
        Ok(Some(free.max(0) as u64))
    }

    fn file_bytes(&self) -> u64 {
        [self.path().to_owned(), self.path().with_extension("db-wal")]
            .iter()
            .filter_map(|path| std::fs::metadata(path).ok())
            .map(|file| file.len())
            .sum()
    }

    /// Takes what decisions about these sessions say out of the audit record. A later row names the rows and their hashes,
    /// so that the chain can be followed across them.
    pub(crate) fn forget_decisions(&mut self, ids: &[SessionId], at: Timestamp) -> Result<AuditHead, CommitError> {
        let rows = audit::forget_rows(self.connection(), ids).map_err(failed("the record of a decision"))?;
        let body = serde_json::json!({ "at": at, "what": audit::FORGOT, "sessions": ids.len(), "rows": rows });
        self.audit(&body.to_string())
    }
}

/// A removal that is done again.
fn again(known: &KnownSession) -> SessionRemoval<'_> {
    SessionRemoval { known, kind: RemovalKind::Forgotten, about: "", at: Timestamp::MIN }
}

/// The tables with a row, or several, for a session.
fn tables_of_sessions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c ON c.name = 'session' \
               WHERE t.type = 'table'";
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    names.filter(|name| name.as_ref().map_or(true, |name| !LATER.contains(&name.as_str()))).collect()
}

fn remove_rows(connection: &Connection, removal: &SessionRemoval<'_>, tables: &[String]) -> rusqlite::Result<()> {
    let SessionRemoval { known, kind, about, .. } = removal;
    let row = known.row.number();
    connection
        .prepare_cached("DELETE FROM notified WHERE finding IN (SELECT id FROM findings WHERE session = ?1)")?
        .execute([row])?;
    for table in tables {
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE session = ?1"))?.execute([row])?;
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO erasing (session, id, forgotten, about) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![row, known.id.to_bytes().as_slice(), *kind == RemovalKind::Forgotten, about])?;
    // A row that another start made for the name goes: nothing belongs to it.
    let name = removed_name(known.provider, &known.provider_session_id);
    connection
        .prepare_cached("DELETE FROM sessions WHERE provider = ?1 AND provider_session_id = ?2 AND key <> ?3")?
        .execute(params![known.provider.code(), name, row])?;
    connection
        .prepare_cached(
            "UPDATE sessions SET id = randomblob(16), provider_session_id = ?2, last_event_at = 0, capture = 0, \
             view = NULL, snapshot = NULL WHERE key = ?1",
        )?
        .execute(params![row, name])?;
    Ok(())
}

/// Takes the paths of a session's files, and where they were read up to, out of the table of files.
fn forget_files(connection: &Connection, provider_session_id: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE files SET path = ?2 || hex(randomblob(16)), cursor = NULL \
             WHERE json_valid(cursor) AND json_extract(cursor, '$.provider_session_id') = ?1",
        )?
        .execute(params![provider_session_id, REMOVED])?;
    Ok(())
}

impl Reader {
    /// The sessions that were removed, and are not erased everywhere yet.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn erasing(&self) -> Result<Vec<ErasePending>, ReadError> {
        self.with("removed sessions", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "removed sessions", source };
            let mut statement = c
                .prepare_cached("SELECT session, id, forgotten, about FROM erasing ORDER BY session")
                .map_err(sqlite)?;
            let rows = statement
                .query_map([], |row| {
                    Ok(ErasePending {
                        row: SessionRow::of(row.get(0)?),
                        id: SessionId::from_bytes(bits(row.get_ref(1)?.as_blob()?)),
                        kind: if row.get(2)? { RemovalKind::Forgotten } else { RemovalKind::Pruned },
                        about: lossy(row, 3)?.unwrap_or_default(),
                    })
                })
                .map_err(sqlite)?;
            rows.collect::<Result<_, _>>().map_err(sqlite)
        })
    }

    /// The texts that no session but these uses, and up to which position of the log that was looked at.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn texts_only_of(&self, rows: &[SessionRow]) -> Result<(Vec<[u8; 16]>, u64), ReadError> {
        self.with("texts", |c| {
            let read = || -> rusqlite::Result<_> {
                // One transaction: all of it is of the same commit.
                let snapshot = c.unchecked_transaction()?;
                let until: i64 = snapshot.query_row(crate::reader::POSITION, [], |row| row.get(0))?;
                let rows: HashSet<i64> = rows.iter().map(|row| row.number()).collect();
                let mut texts = HashSet::new();
                {
                    let sql = "SELECT text_hash FROM events WHERE session = ?1 AND text_hash IS NOT NULL";
                    let mut own = snapshot.prepare_cached(sql)?;
                    for row in &rows {
                        let mut found = own.query([row])?;
                        while let Some(found) = found.next()? {
                            texts.insert(bits(found.get_ref(0)?.as_blob()?));
                        }
                    }
                    if !texts.is_empty() {
                        let sql = "SELECT session, text_hash FROM events WHERE text_hash IS NOT NULL";
                        let mut all = snapshot.prepare_cached(sql)?;
                        let mut found = all.query([])?;
                        while let Some(found) = found.next()? {
                            if !rows.contains(&found.get(0)?) {
                                texts.remove(&bits(found.get_ref(1)?.as_blob()?));
                            }
                        }
                    }
                }
                Ok((texts.into_iter().collect(), until.max(0) as u64))
            };
            read().map_err(|source| ReadError::Sqlite { what: "texts", source })
        })
    }

    /// How many events a session has, and about how many bytes they and their texts take.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn size_of(&self, id: SessionId) -> Result<(u64, u64), ReadError> {
        self.with("events", |c| {
            c.prepare_cached(
                "SELECT count(*), ifnull(sum(length(e.data) + ifnull(length(e.text), 0) + 120 \
                 + ifnull((SELECT length(body) FROM texts WHERE hash = e.text_hash), 0)), 0) \
                 FROM events e WHERE e.session = (SELECT key FROM sessions WHERE id = ?1)",
            )
            .and_then(|mut s| {
                s.query_row([id.to_bytes().as_slice()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
                    .optional()
            })
            .map(|found| found.map_or((0, 0), |(events, bytes)| (events.max(0) as u64, bytes.max(0) as u64)))
            .map_err(|source| ReadError::Sqlite { what: "events", source })
        })
    }

    /// The size of the database without its free pages, bytes.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn used_bytes(&self) -> Result<u64, ReadError> {
        self.with("size", |c| {
            let number = |pragma: &str| c.query_row(pragma, [], |row| row.get::<_, i64>(0));
            let read =
                || Ok((number("PRAGMA page_count")? - number("PRAGMA freelist_count")?) * number("PRAGMA page_size")?);
            read().map(|bytes: i64| bytes.max(0) as u64).map_err(|source| ReadError::Sqlite { what: "size", source })
        })
    }
}

#[cfg(test)]
mod tests;
