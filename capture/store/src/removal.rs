//! Removes sessions: first from everything that is shown, in one transaction, then their events and texts in small
//! ones, last what is left of them in free pages and in the write-ahead log.
//!
//! The row of a session stays, with a hash for a name. So its number is not given to another session, the records that
//! are known to be its own stay known, and a copy of its file adds nothing. What is still to be erased is in the table
//! `erasing`: a process that is killed goes on at the next start. A session has a row there from the transaction that
//! removes it until nothing of it is left, and no [`Reader`] returns events of a session with such a row
//! (`rows::COLUMNS`). So whoever reads the log, such as the search index, sees a session's events under the
//! session's own id, or not at all.
//!
//! A session that was removed to save space also has a row in `pruned`: its ids, and where something of it is left on
//! purpose. With that it can still be forgotten.

use std::{collections::HashSet, path::PathBuf};

use events::{AuditKind, Provider, SessionId, Timestamp};
use projections::Session;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::{
    audit::{self, AuditHead},
    error::{CommitError, ReadError},
    open::StoreOpenError,
    reader::Reader,
    rows::{bits, lossy},
    session_row::{KnownSession, SessionRow, known_session},
    tombstones::{REMOVED, RemovalKind, removed_name},
    writer::Writer,
};

/// What has to be known of a removed session until it is erased everywhere, and of a pruned one until it is forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The agent's id of it, and its own.
    pub names: Vec<String>,
    /// The session it is a sub-agent of, or was merged into.
    pub above: Option<SessionId>,
    /// The runs that hosted it.
    pub runs: Vec<String>,
    /// Its transcripts.
    pub files: Vec<PathBuf>,
    /// When its last event happened.
    pub last_event_at: Option<Timestamp>,
}

impl About {
    /// What has to be known of a session that is stored.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        Self {
            names: session.provider_session_id.clone().into_iter().chain([session.id.to_string()]).collect(),
            above: session.merged_into.or(session.parent_session_id),
            runs: session.run_id.iter().map(ToString::to_string).collect(),
            files: session.transcripts.iter().map(|transcript| PathBuf::from(&transcript.path)).collect(),
            last_event_at: Some(session.last_event_at),
        }
    }

    fn stored(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What a row says. One that is damaged says nothing, and what the row's session left in files stays.
    fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Self> {
        let text = lossy(row, column)?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, "what was noted of a removed session cannot be read");
            Self::default()
        }))
    }
}

/// A session that was removed to save space and can still be forgotten.
#[derive(Debug, Clone)]
pub struct PrunedSession {
    /// The session, with the ids it had.
    pub known: KnownSession,
    /// What was noted of it.
    pub about: About,
}

/// A session that is to be removed.
#[derive(Debug, Clone)]
pub struct SessionRemoval<'a> {
    /// The session.
    pub known: &'a KnownSession,
    /// Why.
    pub kind: RemovalKind,
    /// What has to be known of it until it is erased everywhere.
    pub about: &'a About,
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
    pub about: About,
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
const LATER: &[&str] = &["events", "erasing"];
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

    /// Removes sessions from everything that is shown, within the open transaction; all of them for the same reason.
    /// Gives the new end of the audit record when something was taken out of it.
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

    /// The id of a session that was removed to save space, by the agent's id of it.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn pruned_id(&self, provider: Provider, provider_session_id: &str) -> Result<Option<SessionId>, ReadError> {
        let sql =
            "SELECT p.id FROM pruned p JOIN sessions s ON s.key = p.session WHERE s.provider = ?1 AND p.name = ?2";
        self.connection()
            .prepare_cached(sql)
            .and_then(|mut statement| {
                let id = |row: &Row<'_>| Ok(SessionId::from_bytes(bits(row.get_ref(0)?.as_blob()?)));
                statement.query_row(params![provider.code(), provider_session_id], id).optional()
            })
            .map_err(|source| ReadError::Sqlite { what: "pruned sessions", source })
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
        let left = self.left_of_removed().map_err(|error| match error {
            ReadError::Sqlite { source, .. } => sqlite(source),
            ReadError::Damaged { .. } => sqlite(rusqlite::Error::InvalidQuery),
        })?;
        if left.is_empty() {
            return Ok(());
        }
        tracing::info!(sessions = left.len(), "removing sessions that were forgotten or pruned before");
        let done = self.begin().and_then(|()| {
            let mut head = None;
            for kind in [RemovalKind::Forgotten, RemovalKind::Pruned] {
                let of_kind = left.iter().filter(|(_, left)| *left == kind).map(|(session, _)| session);
                let removals: Vec<SessionRemoval<'_>> = of_kind
                    .map(|PrunedSession { known, about }| SessionRemoval { known, kind, about, at: Timestamp::MIN })
                    .collect();
                head = self.remove_sessions(&removals)?.or(head);
            }
            Ok(head)
        });
        match done.and_then(|head| self.commit().map(|()| head)) {
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

    /// The sessions of which the database has more than the list of removed sessions allows, and what the list says.
    fn left_of_removed(&self) -> Result<Vec<(PrunedSession, RemovalKind)>, ReadError> {
        let reader = self.reader();
        let mut left = Vec::new();
        for known in self.sessions()? {
            if let Some(kind) = self.removed(known.provider, &known.provider_session_id).filter(|_| !known.is_removed())
            {
                let names = vec![known.provider_session_id.to_string(), known.id.to_string()];
                let unlisted = About { names, ..About::default() };
                let about = reader.session(known.id)?.map_or(unlisted, |session| About::of(&session));
                left.push((PrunedSession { known, about }, kind));
            }
        }
        for session in reader.pruned()? {
            let kind = self.removed(session.known.provider, &session.known.provider_session_id);
            if kind == Some(RemovalKind::Forgotten) {
                left.push((session, RemovalKind::Forgotten));
            }
        }
        Ok(left)
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

    /// Removed sessions are erased everywhere: what was noted of them goes too, also from the pages it was in. One that
    /// was pruned when it was read and was forgotten since is not finished.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn finish_erasing(&mut self, erased: &[(SessionRow, RemovalKind)]) -> Result<(), CommitError> {
        let failed = failed("the list of removed sessions");
        self.connection().execute_batch("PRAGMA secure_delete = ON").map_err(&failed)?;
        let sql = "DELETE FROM erasing WHERE session = ?1 AND forgotten = ?2";
        let deleted = erased.iter().try_for_each(|(row, kind)| {
            self.connection().execute(sql, params![row.number(), *kind == RemovalKind::Forgotten]).map(drop)
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
        let body = serde_json::json!({ "at": at, "what": AuditKind::Forgot, "sessions": ids.len(), "rows": rows });
        self.audit(&body.to_string())
    }
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
    let (row, about) = (known.row.number(), about.stored());
    connection
        .prepare_cached("DELETE FROM notified WHERE finding IN (SELECT id FROM findings WHERE session = ?1)")?
        .execute([row])?;
    for table in tables {
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE session = ?1"))?.execute([row])?;
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO erasing (session, id, forgotten, about) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![row, known.id.to_bytes().as_slice(), *kind == RemovalKind::Forgotten, about])?;
    if *kind == RemovalKind::Pruned {
        connection
            .prepare_cached("INSERT INTO pruned (session, id, name, about) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![row, known.id.to_bytes().as_slice(), &*known.provider_session_id, about])?;
    }
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
                        about: About::read(row, 3)?,
                    })
                })
                .map_err(sqlite)?;
            rows.collect::<Result<_, _>>().map_err(sqlite)
        })
    }

    /// The ids that sessions had which were removed and are not erased everywhere yet.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn erasing_ids(&self) -> Result<Vec<SessionId>, ReadError> {
        self.with("removed sessions", |c| {
            c.prepare_cached("SELECT id FROM erasing")
                .and_then(|mut statement| {
                    let id = |row: &Row<'_>| Ok(SessionId::from_bytes(bits(row.get_ref(0)?.as_blob()?)));
                    statement.query_map([], id)?.collect()
                })
                .map_err(|source| ReadError::Sqlite { what: "removed sessions", source })
        })
    }

    /// The sessions that were removed to save space and were not forgotten since.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn pruned(&self) -> Result<Vec<PrunedSession>, ReadError> {
        self.with("pruned sessions", |c| {
            let sql = "SELECT p.session, p.id, s.provider, p.name, s.capture, p.about \
                       FROM pruned p JOIN sessions s ON s.key = p.session";
            c.prepare_cached(sql)
                .and_then(|mut statement| {
                    let read =
                        |row: &Row<'_>| Ok(PrunedSession { known: known_session(row)?, about: About::read(row, 5)? });
                    statement.query_map([], read)?.collect()
                })
                .map_err(|source| ReadError::Sqlite { what: "pruned sessions", source })
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
