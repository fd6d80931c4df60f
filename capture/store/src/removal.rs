//! Removes sessions: first from everything shown, in one transaction; then their events and texts in small
//! transactions; finally their traces in free pages and in the write-ahead log.
//!
//! The row of a session stays, with a hash as its name. So its number is not reused, its records stay known, and a copy
//! of its file adds nothing. Unfinished erasures are in the table `erasing`: after a kill the next start continues
//! them. A session has a row there from the transaction that removes it until it is erased completely, and no
//! [`Reader`] returns events of a session with such a row (`rows::COLUMNS`). So readers of the log, such as the search
//! index, see a session's events under the session's own id, or not at all.
//!
//! A session removed to save space also has a row in `pruned` with its ids and the places where traces are kept on
//! purpose. This allows forgetting it later.

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

/// The facts needed about a removed session until it is erased everywhere, and about a pruned one until it is
/// forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The agent's id of the session, and capture's.
    pub names: Vec<String>,
    /// The session's parent, or the session it was merged into.
    pub above: Option<SessionId>,
    /// The runs that hosted it.
    pub runs: Vec<String>,
    /// Its transcripts.
    pub files: Vec<PathBuf>,
    /// When its last event happened.
    pub last_event_at: Option<Timestamp>,
    /// Whether everything is erased except what the write-ahead log contains.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

impl About {
    /// The facts about a stored session.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        Self {
            names: session.provider_session_id.clone().into_iter().chain([session.id.to_string()]).collect(),
            above: session.merged_into.or(session.parent_session_id),
            runs: session.run_id.iter().map(ToString::to_string).collect(),
            files: session.transcripts.iter().map(|transcript| PathBuf::from(&transcript.path)).collect(),
            last_event_at: Some(session.last_event_at),
            erased: false,
        }
    }

    fn stored(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the facts in a row. Damaged facts are treated as empty, and traces of the row's session in files stay.
    fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Self> {
        let text = lossy(row, column)?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, "the record of a removed session cannot be read");
            Self::default()
        }))
    }
}

/// A session that was removed to save space and can still be forgotten.
#[derive(Debug, Clone)]
pub struct PrunedSession {
    /// The session, with the ids it had.
    pub known: KnownSession,
    /// The recorded facts.
    pub about: About,
}

/// A request to remove a session.
#[derive(Debug, Clone)]
pub struct SessionRemoval<'a> {
    /// The session.
    pub known: &'a KnownSession,
    /// The reason for the removal.
    pub kind: RemovalKind,
    /// The facts needed until it is erased everywhere.
    pub about: &'a About,
    /// The time of the removal.
    pub at: Timestamp,
}

/// A removed session that is not erased everywhere yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasePending {
    /// Its row.
    pub row: SessionRow,
    /// The id it had.
    pub id: SessionId,
    /// The reason for the removal.
    pub kind: RemovalKind,
    /// The recorded facts.
    pub about: About,
}

/// The size of the database before and after it was compacted, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Size before.
    pub before: u64,
    /// Size after.
    pub after: u64,
}

/// Tables with a column `session` whose rows are not deleted at once for a removed session: the events are many, and
/// the known records prevent copies from being read.
const LATER: &[&str] = &["events", "erasing"];
/// Number of pages released per step.
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

    /// The reason the session with this name was removed; `None` if it was not.
    #[must_use]
    pub fn removed(&self, provider: Provider, provider_session_id: &str) -> Option<RemovalKind> {
        self.tombstones.of(provider, provider_session_id)
    }

    /// Removes sessions from everything shown, within the open transaction, all for the same reason. Returns the new
    /// end of the audit record if rows of it were emptied.
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

    /// The id of a pruned session, by the agent's id.
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

    /// Reserves positions up to the current end of the log and up to this one, so that they are not reused after their
    /// events are removed.
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

    /// Removes sessions that are on the list of removed sessions but still in the database: the process was killed in
    /// between, or the database is a backup.
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

    /// The sessions of which the database contains more than the list of removed sessions allows, with the kind of
    /// removal on the list.
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

    /// Deletes texts that only removed sessions used when the log ended at `until`.
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

    /// Deletes up to `limit` events of removed sessions; returns the number deleted.
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

    /// Overwrites the recorded facts of sessions that are erased everywhere else, on their pages too. The sessions stay
    /// listed until [`Self::finish_erasing`]. A session that was read as pruned and forgotten since then keeps its
    /// facts.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn overwrite_facts(&mut self, erased: &[(SessionRow, RemovalKind)]) -> Result<(), CommitError> {
        let sql = "UPDATE erasing SET about = ?3 WHERE session = ?1 AND forgotten = ?2";
        let nothing = About { erased: true, ..About::default() }.stored();
        self.with_secure_delete(erased, |row, is_forgotten| {
            self.connection().execute(sql, params![row.number(), is_forgotten, nothing])
        })
    }

    /// Deletes sessions from the list of those to be erased. Call it once their facts are overwritten and
    /// [`Self::empty_log`] succeeded: nothing looks for their traces afterwards. A session that was read as pruned and
    /// forgotten since then stays listed.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn finish_erasing(&mut self, erased: &[(SessionRow, RemovalKind)]) -> Result<(), CommitError> {
        let sql = "DELETE FROM erasing WHERE session = ?1 AND forgotten = ?2";
        self.with_secure_delete(erased, |row, is_forgotten| {
            self.connection().execute(sql, params![row.number(), is_forgotten])
        })
    }

    /// Changes the row of each session, overwriting the previous content with zeros.
    fn with_secure_delete(
        &self,
        erased: &[(SessionRow, RemovalKind)],
        change: impl Fn(SessionRow, bool) -> rusqlite::Result<usize>,
    ) -> Result<(), CommitError> {
        let failed = failed("the list of removed sessions");
        self.connection().execute_batch("PRAGMA secure_delete = ON").map_err(&failed)?;
        let changed = erased.iter().try_for_each(|(row, kind)| change(*row, *kind == RemovalKind::Forgotten).map(drop));
        self.connection().execute_batch("PRAGMA secure_delete = OFF").map_err(&failed)?;
        changed.map_err(failed)
    }

    /// Rewrites the whole database without free pages and remains of deleted data, and empties the write-ahead log
    /// unless a reader uses it. Blocks all other writes.
    ///
    /// # Errors
    /// When SQLite fails, for example for lack of space.
    pub fn compact(&mut self) -> Result<Compacted, CommitError> {
        let failed = failed("the compacted database");
        let before = self.file_bytes();
        // Temporary files have no name: they are unlinked as soon as they are opened.
        let sql = "PRAGMA temp_store = FILE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM;";
        let done = self.connection().execute_batch(sql);
        self.connection().execute_batch("PRAGMA temp_store = MEMORY").map_err(&failed)?;
        done.map_err(failed)?;
        // If a reader uses the log, a later call empties it.
        self.empty_log()?;
        Ok(Compacted { before, after: self.file_bytes() })
    }

    /// Releases some free pages to the file system; returns the number left. `None` if the database was never
    /// compacted: then only [`Self::compact`] can release them.
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

    /// Removes the content of decisions about these sessions from the audit record. A later row lists the rows and
    /// their hashes, so that the chain can still be verified.
    pub(crate) fn forget_decisions(&mut self, ids: &[SessionId], at: Timestamp) -> Result<AuditHead, CommitError> {
        let rows = audit::forget_rows(self.connection(), ids).map_err(failed("the record of a decision"))?;
        let body = serde_json::json!({ "at": at, "what": AuditKind::Forgot, "sessions": ids.len(), "rows": rows });
        self.audit(&body.to_string())
    }
}

/// The tables with rows for sessions.
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
    // Deletes a row that another start created under the placeholder name: nothing refers to it.
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

/// Removes the paths of a session's files and their read positions from the table of files.
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
    /// The removed sessions that are not erased everywhere yet.
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

    /// The former ids of removed sessions that are not erased everywhere yet.
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

    /// The pruned sessions that were not forgotten since.
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

    /// The texts used only by these sessions, and the position of the log up to which this was determined.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn texts_only_of(&self, rows: &[SessionRow]) -> Result<(Vec<[u8; 16]>, u64), ReadError> {
        self.with("texts", |c| {
            let read = || -> rusqlite::Result<_> {
                // One transaction, so that everything belongs to the same commit.
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

    /// The number of a session's events and the approximate size of the events and their texts in bytes.
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
