//! Reads the store through a pool of read-only connections; cheap to clone. Calls block: from async code, use
//! `spawn_blocking`.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use events::{Cursor, CursorSummary, Event, Kind, SessionId, Timestamp};
use projections::{Conclusion, Drift, Session, SessionState, Turn, WorkLog};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    damage::DamagedRows,
    error::{ReadError, ReadFailure},
    rows::{COLUMNS, HISTORY, bits, event, lossy},
    schema::plan_once,
    session_row::{KNOWN, StoredSession, known_session},
    text::{unhex, unpack},
    tombstones::REMOVED,
};

/// Maximum number of idle connections in the pool.
const POOL: usize = 4;
/// The last assigned position, even if its event was removed later.
pub(crate) const POSITION: &str =
    "SELECT max(ifnull((SELECT max(position) FROM events), 0), ifnull((SELECT position FROM log_end), 0))";
/// Number of events read at a time for a session's work log.
const WORK_PAGE: usize = 1_000;
/// Length of the prompts that are read in full for one answer, bytes.
const PROMPT_BYTES: u64 = 8 << 20;
/// Longest wait for a database lock of another program.
const PATIENCE: Duration = Duration::from_secs(5);

/// Selects the sessions to list.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Only sessions after this one in the list: (last event in ms, id).
    pub before: Option<(i64, SessionId)>,
    /// Maximum number of sessions.
    pub limit: usize,
}

/// Reads the store.
#[derive(Debug, Clone)]
pub struct Reader {
    path: Arc<PathBuf>,
    pool: Arc<Mutex<Vec<Connection>>>,
    patience: Duration,
    damaged: DamagedRows,
}

impl Reader {
    /// A reader of the database at `path`, which is opened on first use.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self::noting(path, DamagedRows::default())
    }

    /// Like [`new`](Self::new), recording damaged rows in a shared set.
    pub(crate) fn noting(path: PathBuf, damaged: DamagedRows) -> Self {
        Self { path: Arc::new(path), pool: Arc::default(), patience: PATIENCE, damaged }
    }

    /// The damaged or unknown rows found so far.
    #[must_use]
    pub const fn damaged(&self) -> &DamagedRows {
        &self.damaged
    }

    /// A reader of the same database that waits at most `patience` for another program's lock.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { path: Arc::clone(&self.path), pool: Arc::default(), patience, damaged: self.damaged.clone() }
    }

    /// The directory of the database.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.path.parent()
    }

    pub(crate) fn with<T>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let sqlite = |source| ReadError::Sqlite { what, source };
        let pooled = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => {
                let connection = Connection::open_with_flags(
                    &*self.path,
                    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
                )
                .map_err(sqlite)?;
                connection.busy_timeout(self.patience).map_err(sqlite)?;
                connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -512;").map_err(sqlite)?;
                plan_once(&connection).map_err(sqlite)?;
                connection
            }
        };
        let result = read(&connection);
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOL {
            pool.push(connection);
        }
        result
    }

    /// The cursors of all files. Damaged ones are skipped: their files are read again.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn cursors(&self) -> Result<Vec<Cursor>, ReadError> {
        self.with("cursors", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "cursors", source };
            let mut statement = c.prepare("SELECT cursor FROM files WHERE cursor IS NOT NULL").map_err(sqlite)?;
            let mut rows = statement.query([]).map_err(sqlite)?;
            let mut cursors = Vec::new();
            while let Some(row) = rows.next().map_err(sqlite)? {
                let cursor = lossy(row, 0).map_err(sqlite)?.unwrap_or_default();
                match serde_json::from_str(&cursor) {
                    Ok(cursor) => cursors.push(cursor),
                    Err(error) => {
                        tracing::warn!(%error, "a stored cursor is damaged; its file is read again from the start");
                    }
                }
            }
            Ok(cursors)
        })
    }

    /// How far files were read, by path. Damaged cursors are skipped: their files are read again.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn cursor_summaries(&self) -> Result<Vec<(String, CursorSummary)>, ReadError> {
        self.with("cursors", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "cursors", source };
            let mut statement = c.prepare("SELECT path, cursor FROM files WHERE cursor IS NOT NULL").map_err(sqlite)?;
            let mut rows = statement.query([]).map_err(sqlite)?;
            let mut summaries = Vec::new();
            while let Some(row) = rows.next().map_err(sqlite)? {
                let path = lossy(row, 0).map_err(sqlite)?.unwrap_or_default();
                let cursor = lossy(row, 1).map_err(sqlite)?.unwrap_or_default();
                match serde_json::from_str(&cursor) {
                    Ok(summary) => summaries.push((path, summary)),
                    Err(error) => {
                        tracing::warn!(path, %error, "a stored cursor is damaged; its file is read again from the start");
                    }
                }
            }
            Ok(summaries)
        })
    }

    /// The cursor of a file; `None` if there is none or it is damaged.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn cursor(&self, path: &str) -> Result<Option<Cursor>, ReadError> {
        let json = self.with("cursor", |c| {
            c.prepare_cached("SELECT cursor FROM files WHERE path = ?1")
                .and_then(|mut statement| statement.query_row([path], |row| lossy(row, 0)).optional())
                .map_err(|source| ReadError::Sqlite { what: "cursor", source })
        })?;
        Ok(json.flatten().and_then(|json| self.parsed("cursor", path, &json)))
    }

    /// The session as last committed; `None` if there is none or its row is damaged.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn session(&self, id: SessionId) -> Result<Option<Session>, ReadError> {
        Ok(self.session_json(id)?.and_then(|json| self.parsed("session", id, &json)))
    }

    /// The title of a session as last committed.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn title(&self, id: SessionId) -> Result<Option<String>, ReadError> {
        #[derive(Deserialize)]
        struct Titled {
            title: Option<String>,
        }
        let titled: Option<Titled> = self.session_json(id)?.and_then(|json| self.parsed("session", id, &json));
        Ok(titled.and_then(|titled| titled.title))
    }

    /// The session as last committed, as stored JSON.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn session_json(&self, id: SessionId) -> Result<Option<String>, ReadError> {
        Ok(self.session_jsons(&[id])?.pop().flatten())
    }

    /// All sessions in the store, as last written.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn stored_sessions(&self) -> Result<Vec<StoredSession>, ReadError> {
        self.with("sessions", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "sessions", source };
            let mut statement =
                c.prepare(&format!("SELECT {KNOWN}, last_event_at, view FROM sessions")).map_err(sqlite)?;
            let read = |row: &Row<'_>| {
                Ok(StoredSession { known: known_session(row)?, last_event_at: row.get(5)?, view: lossy(row, 6)? })
            };
            let rows = statement.query_map([], read).map_err(sqlite)?;
            rows.collect::<Result<_, _>>().map_err(sqlite)
        })
    }

    /// These sessions as last committed, from one snapshot, as stored JSON, in the order of `ids`; `None` for unknown
    /// sessions.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn session_jsons(&self, ids: &[SessionId]) -> Result<Vec<Option<String>>, ReadError> {
        self.with("sessions", |c| {
            let read = || -> rusqlite::Result<Vec<_>> {
                // One transaction locks the database only once.
                let transaction = c.unchecked_transaction()?;
                let mut statement = transaction.prepare_cached("SELECT view FROM sessions WHERE id = ?1")?;
                ids.iter()
                    .map(|id| {
                        let view = |row: &Row<'_>| lossy(row, 0);
                        statement.query_row([id.to_bytes().as_slice()], view).optional().map(Option::flatten)
                    })
                    .collect()
            };
            read().map_err(|source| ReadError::Sqlite { what: "sessions", source })
        })
    }

    /// The reducer of a session as last committed. `None` if there is none, it is damaged, or another version wrote it
    /// in another form: then the log can be folded again.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn state(&self, id: SessionId) -> Result<Option<SessionState>, ReadError> {
        let state: Option<SessionState> = self.with("snapshot", |c| {
            let text = c
                .prepare_cached("SELECT snapshot FROM sessions WHERE id = ?1")
                .and_then(|mut s| s.query_row([id.to_bytes().as_slice()], |row| lossy(row, 0)).optional())
                .map_err(|source| ReadError::Sqlite { what: "snapshot", source })?;
            Ok(text.flatten().and_then(|text| serde_json::from_str(&text).ok()))
        })?;
        let Some(mut state) = state else { return Ok(None) };
        // The row may be some seconds behind the log.
        for event in self.events(id, state.session.last_sequence, usize::MAX, &[])? {
            self.fold(&mut state, event)?;
        }
        Ok(Some(state))
    }

    /// Sessions by last event, newest first; damaged rows are skipped.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>, ReadError> {
        let views = self.views(filter)?;
        Ok(views.iter().filter_map(|(id, json)| self.parsed("session", id, json)).collect())
    }

    /// Sessions by last event, newest first, each with its stored JSON.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn views(&self, filter: &SessionFilter) -> Result<Vec<(SessionId, String)>, ReadError> {
        let (before, id) = filter.before.map_or((i64::MAX, [0xff; 16]), |(at, id)| (at, id.to_bytes()));
        self.with("sessions", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "sessions", source };
            let mut statement = c
                .prepare_cached(
                    "SELECT view, id FROM sessions WHERE view IS NOT NULL AND (last_event_at, id) < (?1, ?2) ORDER BY last_event_at DESC, id DESC LIMIT ?3",
                )
                .map_err(sqlite)?;
            let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
            let read = |row: &Row<'_>| {
                let id = SessionId::from_bytes(bits(row.get_ref(1)?.as_blob()?));
                Ok((id, lossy(row, 0)?.unwrap_or_default()))
            };
            let rows = statement.query_map(params![before, id.as_slice(), limit], read).map_err(sqlite)?;
            rows.collect::<Result<_, _>>().map_err(sqlite)
        })
    }

    /// Finds a session by the provider's id.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn find(&self, provider_session_id: &str) -> Result<Option<SessionId>, ReadError> {
        self.with("session", |c| {
            c.prepare_cached("SELECT id FROM sessions WHERE provider_session_id = ?1")
                .and_then(|mut s| s.query_row([provider_session_id], |row| row.get::<_, [u8; 16]>(0)).optional())
                .map(|found| found.map(SessionId::from_bytes))
                .map_err(|source| ReadError::Sqlite { what: "session", source })
        })
    }

    /// Parses the JSON of a row; records a row that cannot be read.
    pub fn parsed<T: DeserializeOwned>(&self, what: &'static str, place: impl fmt::Display, json: &str) -> Option<T> {
        serde_json::from_str(json).map_err(|error| self.damaged.note(what, place, error)).ok()
    }

    pub(crate) fn select(&self, tail: &str, parameters: &[&dyn rusqlite::ToSql]) -> Result<Vec<Event>, ReadError> {
        self.with("events", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "events", source };
            let mut statement = c.prepare_cached(&format!("SELECT {COLUMNS} {tail}")).map_err(sqlite)?;
            let mut rows = statement.query(parameters).map_err(sqlite)?;
            let mut events = Vec::new();
            while let Some(row) = rows.next().map_err(sqlite)? {
                events.push(event(row, &self.damaged)?);
            }
            Ok(events)
        })
    }

    /// Events of a session with a sequence above `after`, in order; empty `kinds` means all. Events that this version
    /// cannot read are `unrecognized`.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn events(&self, id: SessionId, after: u64, limit: usize, kinds: &[Kind]) -> Result<Vec<Event>, ReadError> {
        let tail = format!(
            "WHERE e.session = (SELECT key FROM sessions WHERE id = ?1) AND e.sequence > ?2 {} ORDER BY e.sequence LIMIT ?3",
            among(kinds)
        );
        self.select(&tail, &[&id.to_bytes().as_slice(), &clamp(after), &clamp(limit as u64)])
    }

    /// The last `limit` events of a session, in order.
    ///
    /// # Errors
    /// When SQLite cannot read, or a row is damaged.
    pub fn last_events(&self, id: SessionId, limit: usize, kinds: &[Kind]) -> Result<Vec<Event>, ReadError> {
        let mut events = self.last_before(id, u64::MAX, limit, kinds)?;
        events.reverse();
        Ok(events)
    }

    /// Events with a position above `after`, in order, of one session or of all.
    ///
    /// # Errors
    /// When SQLite cannot read, or a row is damaged.
    pub fn log(&self, after: u64, limit: usize, session: Option<SessionId>) -> Result<Vec<Event>, ReadError> {
        match session {
            None => self.select("WHERE e.position > ?1 ORDER BY e.position LIMIT ?2", &[&clamp(after), &clamp(limit as u64)]),
            Some(id) => self.select(
                "WHERE e.session = (SELECT key FROM sessions WHERE id = ?3) AND e.position > ?1 ORDER BY e.sequence LIMIT ?2",
                &[&clamp(after), &clamp(limit as u64), &id.to_bytes().as_slice()],
            ),
        }
    }

    /// Events seen as they happened, with a position above `after` and up to `until`, in order.
    ///
    /// # Errors
    /// When SQLite cannot read, or a row is damaged.
    pub fn live_log(&self, after: u64, until: u64, limit: usize) -> Result<Vec<Event>, ReadError> {
        let tail = format!(
            "WHERE e.position > ?1 AND e.position <= ?2 AND e.marks & {} = 0 ORDER BY e.position LIMIT ?3",
            HISTORY
        );
        self.select(&tail, &[&clamp(after), &clamp(until), &clamp(limit as u64)])
    }

    /// Events of these kinds with a position above `after` and up to `until`, in order.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn log_of(&self, after: u64, until: u64, limit: usize, kinds: &[Kind]) -> Result<Vec<Event>, ReadError> {
        let tail = format!("WHERE e.position > ?1 AND e.position <= ?2 {} ORDER BY e.position LIMIT ?3", among(kinds));
        self.select(&tail, &[&clamp(after), &clamp(until), &clamp(limit as u64)])
    }

    /// The event at a position.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn event_at(&self, position: u64) -> Result<Option<Event>, ReadError> {
        Ok(self.select("WHERE e.position = ?1", &[&clamp(position)])?.pop())
    }

    /// The last events of these kinds in a session with a sequence below `before`, newest first.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn last_before(
        &self,
        id: SessionId,
        before: u64,
        limit: usize,
        kinds: &[Kind],
    ) -> Result<Vec<Event>, ReadError> {
        let tail = format!(
            "WHERE e.session = (SELECT key FROM sessions WHERE id = ?1) AND e.sequence < ?2 {} ORDER BY e.sequence DESC LIMIT ?3",
            among(kinds)
        );
        self.select(&tail, &[&id.to_bytes().as_slice(), &clamp(before), &clamp(limit as u64)])
    }

    /// The id of the log. Positions of logs with different ids are unrelated.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn log_id(&self) -> Result<[u8; 16], ReadError> {
        self.with("log", |c| {
            c.query_row("SELECT id FROM log_id", [], |row| Ok(bits(row.get_ref(0)?.as_blob()?)))
                .map_err(|source| ReadError::Sqlite { what: "log", source })
        })
    }

    /// Finished turns of a session with a number above `after`, in order.
    ///
    /// # Errors
    /// When SQLite cannot read, or a row is damaged.
    pub fn turns(&self, id: SessionId, after: u32, limit: usize) -> Result<Vec<Turn>, ReadError> {
        self.with("turns", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "turns", source };
            let mut statement = c
                .prepare_cached("SELECT turn FROM turns WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND number > ?2 ORDER BY number LIMIT ?3")
                .map_err(sqlite)?;
            let rows = statement.query_map(params![id.to_bytes().as_slice(), after, clamp(limit as u64)], |row| lossy(row, 0)).map_err(sqlite)?;
            let mut turns = Vec::new();
            for row in rows {
                turns.extend(self.parsed("turn", format_args!("session {id}"), &row.map_err(sqlite)?.unwrap_or_default()));
            }
            Ok(turns)
        })
    }

    /// Turns that ended since a time or have not ended, of all sessions with an event since then. Ordered by session
    /// and number, starting after the turn `after`.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn turns_since(
        &self,
        since: Timestamp,
        after: Option<(SessionId, u32)>,
        limit: usize,
    ) -> Result<Vec<(SessionId, Turn)>, ReadError> {
        let (session, number) = after.unwrap_or((SessionId::from_bytes([0; 16]), 0));
        self.with("turns", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "turns", source };
            let mut statement = c
                .prepare_cached(
                    "WITH behind (session) AS (SELECT ifnull((SELECT key FROM sessions WHERE id = ?2), 0)) \
                     SELECT s.id, t.turn FROM behind, turns t JOIN sessions s ON s.key = t.session \
                     WHERE t.session IN (SELECT key FROM sessions WHERE last_event_at >= ?1) \
                     AND t.session >= behind.session AND (t.session > behind.session OR t.number > ?3) \
                     ORDER BY t.session, t.number",
                )
                .map_err(sqlite)?;
            let session = session.to_bytes();
            let parameters = params![since.as_millisecond(), session.as_slice(), number];
            let mut rows = statement.query(parameters).map_err(sqlite)?;
            let mut turns = Vec::new();
            while turns.len() < limit
                && let Some(row) = rows.next().map_err(sqlite)?
            {
                let id = SessionId::from_bytes(bits(row.get_ref(0).and_then(|id| Ok(id.as_blob()?)).map_err(sqlite)?));
                let json = lossy(row, 1).map_err(sqlite)?.unwrap_or_default();
                let turn: Option<Turn> = self.parsed("turn", format_args!("session {id}"), &json);
                let turn = turn.filter(|turn| turn.completed_at.is_none_or(|end| end >= since));
                turns.extend(turn.map(|turn| (id, turn)));
            }
            Ok(turns)
        })
    }

    /// The work log of a session from its last `events` events, with the complete last answer.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn work(&self, id: SessionId, events: u64) -> Result<WorkLog, ReadError> {
        let newest = self.last_events(id, 1, &[])?;
        let mut after = newest.first().map_or(0, |event| event.sequence).saturating_sub(events);
        let mut work = WorkLog::default();
        loop {
            let page = self.events(id, after, WORK_PAGE, WorkLog::KINDS)?;
            page.iter().for_each(|event| work.apply(event));
            match page.last() {
                Some(last) if page.len() == WORK_PAGE => after = last.sequence,
                Some(_) | None => {
                    work.complete(|part| self.text(&part.hash))?;
                    return Ok(work);
                }
            }
        }
    }

    /// How far the edits among the last `events` events of a session are from what its prompts name. Prompts count
    /// however old they are.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn drift(&self, id: SessionId, events: u64) -> Result<Drift, ReadError> {
        let newest = self.last_events(id, 1, &[])?;
        let begin = newest.first().map_or(0, |event| event.sequence).saturating_sub(events);
        let mut drift = Drift::default();
        let mut left = PROMPT_BYTES;
        for (mut after, end, kinds) in [(0, begin, Drift::NAMING_KINDS), (begin, u64::MAX, Drift::KINDS)] {
            while after < end {
                let page = self.events(id, after, WORK_PAGE, kinds)?;
                after = page.last().filter(|_| page.len() == WORK_PAGE).map_or(end, |event| event.sequence);
                for mut event in page.into_iter().take_while(|event| event.sequence <= end) {
                    if event.payload.kind() == Kind::UserPrompt {
                        self.whole_text(&mut event, &mut left)?;
                    }
                    drift.apply(&event);
                }
            }
        }
        Ok(drift)
    }

    /// Folds an event into its session, with the complete text if the reducer needs it. If the text is unreadable or
    /// gone, the part in the event is folded.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn fold(&self, state: &mut SessionState, mut event: Event) -> Result<Vec<Conclusion>, ReadError> {
        if let Some(whole) = state.whole_text_of(&event) {
            match self.text(&whole.hash) {
                Ok(Some(text)) => event.text = Some(text),
                Ok(None) => {}
                Err(error) if error.failure() == ReadFailure::Damaged => {
                    self.damaged.note("text", &whole.hash, error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(state.fold(&event))
    }

    /// Replaces the partial text of an event with the complete text if it fits into `left` bytes, and subtracts its
    /// length from `left`.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn whole_text(&self, event: &mut Event, left: &mut u64) -> Result<(), ReadError> {
        let Some(part) = event.text_ref.as_ref().filter(|part| part.stored && part.length <= *left) else {
            return Ok(());
        };
        if let Some(text) = self.text(&part.hash)? {
            *left -= part.length;
            (event.text, event.text_ref) = (Some(text), None);
        }
        Ok(())
    }

    /// The complete text that an event's `text_ref` refers to by its hexadecimal hash.
    ///
    /// # Errors
    /// When SQLite cannot read, or the text is damaged.
    pub fn text(&self, hash: &str) -> Result<Option<String>, ReadError> {
        let Some(bytes) = unhex(hash) else { return Ok(None) };
        self.with("text", |c| {
            let row: Option<(u8, Vec<u8>)> = c
                .prepare_cached("SELECT codec, body FROM texts WHERE hash = ?1")
                .and_then(|mut s| s.query_row([bytes.as_slice()], |row| Ok((row.get(0)?, row.get(1)?))).optional())
                .map_err(|source| ReadError::Sqlite { what: "text", source })?;
            row.map(|(codec, body)| {
                unpack(codec, &body).ok_or_else(|| ReadError::Damaged {
                    what: "text",
                    place: hash.to_owned(),
                    detail: "cannot be decompressed".into(),
                })
            })
            .transpose()
        })
    }

    /// The last committed position; 0 if the log is empty.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn position(&self) -> Result<u64, ReadError> {
        self.number("position", POSITION)
    }

    /// The number of sessions, without removed ones.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn session_count(&self) -> Result<u64, ReadError> {
        let sql = format!("SELECT count(*) FROM sessions WHERE provider_session_id NOT LIKE '{REMOVED}%'");
        self.number("sessions", &sql)
    }

    fn number(&self, what: &'static str, sql: &str) -> Result<u64, ReadError> {
        self.with(what, |c| {
            c.prepare_cached(sql)
                .and_then(|mut s| s.query_row([], |row| row.get::<_, i64>(0)))
                .map(|n| n.max(0) as u64)
                .map_err(|source| ReadError::Sqlite { what, source })
        })
    }
}

pub(crate) fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// An SQL condition on the kind; the codes are our own numbers, so no escaping is needed.
fn among(kinds: &[Kind]) -> String {
    if kinds.is_empty() {
        return String::new();
    }
    let codes: Vec<String> = kinds.iter().map(|k| k.code().to_string()).collect();
    format!("AND e.kind IN ({})", codes.join(","))
}
