//! Rebuilds a database that is damaged beyond use: moves it away, and creates a new one with the data that exists
//! nowhere else.
//!
//! Data from the agents' files is read again from there. The rest is copied row by row: sessions with their ids,
//! approvals, the audit record, findings, prompts, labels, marks, and the complete logs of sessions whose files are
//! gone. Only unreadable rows are lost.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use events::{Kind, Payload, Topic};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter, types::Value};

use crate::{
    accounts, known,
    schema::{MigrationError, migrate},
    tombstones::REMOVED,
};

/// Name prefix of damaged databases.
const ASIDE: &str = "capture.db.damaged-";

/// The result of rebuilding a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rebuilt {
    /// The path of the damaged database.
    pub aside: PathBuf,
    /// Number of copied rows, by kind.
    pub salvaged: Vec<(&'static str, u64)>,
    /// Number of rows known to be lost.
    pub lost: u64,
}

/// Why a database could not be rebuilt. It was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// A file could not be created, renamed or removed.
    #[error("cannot move a damaged database to {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The new database could not be written.
    #[error("cannot write a new database: {0}")]
    Write(#[from] rusqlite::Error),
    /// The tables of the new database could not be created.
    #[error(transparent)]
    Migration(#[from] MigrationError),
}

/// The damaged databases moved aside in `directory`.
#[must_use]
pub fn put_aside(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_aside = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(ASIDE)).is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(is_aside).collect();
    found.sort();
    found
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove(path: &Path) -> Result<(), RebuildError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(RebuildError::File { path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Replaces the database at `path`. The damaged one stays in place until the new one is complete.
///
/// # Errors
/// When the new database cannot be written, or files cannot be renamed.
pub(crate) fn rebuild(path: &Path) -> Result<Rebuilt, RebuildError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let new_path = directory.join("capture.db.rebuilding");
    for suffix in ["", "-wal", "-shm", "-journal"] {
        remove(&beside(&new_path, suffix))?;
    }
    let mut rebuilt = Rebuilt::default();
    {
        let mut new = Connection::open(&new_path)?;
        new.execute_batch("PRAGMA page_size = 4096; PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF;")?;
        migrate(&mut new)?;
        if let Ok(old) = open_damaged(path) {
            let transaction = new.transaction()?;
            Salvage { old: &old, new: &transaction, rebuilt: &mut rebuilt }.run()?;
            transaction.commit()?;
        }
    }
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| RebuildError::File { path, source }
    };
    fs::File::open(&new_path).and_then(|new| new.sync_all()).map_err(file(&new_path))?;
    let aside = (1_u32..)
        .map(|number| directory.join(format!("{ASIDE}{number}")))
        .find(|aside| !aside.exists())
        .unwrap_or_default();
    // A database exists under its name at all times, and the damaged one's write-ahead log must not be applied to the
    // new one.
    fs::hard_link(path, &aside).map_err(file(&aside))?;
    let log = beside(path, "-wal");
    if log.exists() {
        fs::rename(&log, beside(&aside, "-wal")).map_err(file(&log))?;
    }
    remove(&beside(path, "-shm"))?;
    fs::rename(&new_path, path).map_err(file(path))?;
    rebuilt.aside = aside;
    Ok(rebuilt)
}

fn open_damaged(path: &Path) -> Result<Connection, rusqlite::Error> {
    let old = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // The database is unusable if its schema table cannot be read.
    old.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(old)
}

struct Salvage<'a> {
    old: &'a Connection,
    new: &'a Connection,
    rebuilt: &'a mut Rebuilt,
}

/// The facts about an event needed before it is copied.
struct Sketch {
    position: i64,
    session: i64,
    file: Option<i64>,
    is_label: bool,
}

impl Salvage<'_> {
    fn run(mut self) -> Result<(), rusqlite::Error> {
        let files = self.keys("files", "key", &["files"]);
        self.copy("files", "key", &files, &[("cursor", Value::Null)], None)?;
        let there = self.files_that_are_there();
        let events = self.events();
        let read_again: HashSet<i64> = events
            .iter()
            .filter(|event| event.file.is_some_and(|file| there.contains(&file)))
            .map(|event| event.session)
            .collect();
        let kept: Vec<Value> = events
            .iter()
            .filter(|event| event.is_label || !read_again.contains(&event.session))
            .map(|event| Value::Integer(event.position))
            .collect();
        let unread: HashSet<i64> =
            events.iter().map(|event| event.session).filter(|session| !read_again.contains(session)).collect();

        let sources = ["sessions", "sessions INDEXED BY sessions_by_last_event"];
        let (whole, rest): (Vec<_>, Vec<_>) = self
            .keys("sessions", "key", &sources)
            .into_iter()
            .partition(|key| matches!(key, Value::Integer(key) if unread.contains(key)));
        // An unreadable view is rebuilt from the log; without a log there is nothing to show yet.
        self.copy("sessions", "key", &rest, &[("view", Value::Null), ("snapshot", Value::Null)], Some("sessions"))?;
        let empty = Value::Text(String::new());
        self.copy("sessions", "key", &whole, &[("view", empty), ("snapshot", Value::Null)], Some("sessions"))?;
        self.sessions_of_indexes()?;
        self.copy("events", "position", &kept, &[], Some("events"))?;
        let texts = self.hashes_of(&kept);
        self.copy("texts", "hash", &texts, &[], Some("texts"))?;
        self.copy_of_sessions("turns", "turns", &unread)?;
        // The usage of each call is in the log.
        self.new.execute_batch(include_str!("usage_from_log.sql"))?;
        accounts::put_all_from_log(self.new)?;
        let quotas = "SELECT provider, name, at, window_minutes, used_permille, resets_at FROM quotas";
        let mut insert = self.new.prepare("INSERT OR IGNORE INTO quotas VALUES (?, ?, ?, ?, ?, ?)")?;
        self.each(quotas, |row| {
            let values = (0..6).map(|index| row.get::<_, Value>(index)).collect::<Result<Vec<_>, _>>()?;
            insert.execute(params_from_iter(values)).map(drop)
        });
        // The known records of removed sessions prevent copies from being read.
        let mut unread = unread;
        unread.extend(self.removed_sessions());
        let there: HashSet<i64> =
            self.new.prepare("SELECT key FROM sessions")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        unread.retain(|session| *session <= 0 || there.contains(session));
        for table in ["known_blocks", "known_batches"] {
            self.copy_known(table, &unread)?;
        }
        for (table, key) in [("removed", "hash"), ("erasing", "session"), ("pruned", "session")] {
            let keys = self.keys(table, key, &[table]);
            self.copy(table, key, &keys, &[], None)?;
        }
        for (table, name) in [("approvals", "approvals"), ("findings", "findings"), ("prompts", "prompts")] {
            let by_time = format!("{table} INDEXED BY {table}_by_time");
            let keys = self.keys(table, "id", &[table, &by_time]);
            self.copy(table, "id", &keys, &[], Some(name))?;
        }
        let notified = self.keys("notified", "finding", &["notified"]);
        self.copy("notified", "finding", &notified, &[], None)?;
        let decisions = numbered(self.keys("audit", "sequence", &["audit"]));
        self.copy("audit", "sequence", &decisions, &[], Some("decisions"))?;
        self.detach_strays()
    }

    /// Restores sessions with unreadable rows from the indexes that contain their ids.
    fn sessions_of_indexes(&mut self) -> Result<(), rusqlite::Error> {
        let mut ids: HashMap<i64, Value> = HashMap::new();
        self.each("SELECT key, id FROM sessions INDEXED BY sqlite_autoindex_sessions_1", |row| {
            ids.insert(row.get(0)?, row.get(1)?);
            Ok(())
        });
        let mut named = Vec::new();
        let names = "SELECT key, provider, provider_session_id FROM sessions INDEXED BY sqlite_autoindex_sessions_2";
        self.each(names, |row| {
            named.push((row.get::<_, i64>(0)?, row.get::<_, Value>(1)?, row.get::<_, Value>(2)?));
            Ok(())
        });
        let sql =
            "INSERT OR IGNORE INTO sessions (key, id, provider, provider_session_id, view) VALUES (?1, ?2, ?3, ?4, '')";
        let mut insert = self.new.prepare(sql)?;
        for (key, provider, name) in named {
            if let Some(id) = ids.get(&key) {
                let added = insert.execute((key, id, provider, name))? as u64;
                self.rebuilt.lost = self.rebuilt.lost.saturating_sub(added);
                if let Some((_, count)) = self.rebuilt.salvaged.iter_mut().find(|(name, _)| *name == "sessions") {
                    *count += added;
                }
            }
        }
        Ok(())
    }

    /// Detaches rows of lost sessions, so that they do not end up in a later session with the same number.
    fn detach_strays(&mut self) -> Result<(), rusqlite::Error> {
        let strays = "session > 0 AND session NOT IN (SELECT key FROM sessions)";
        for table in ["events", "turns", "usage", "accounts"] {
            let gone = self.new.execute(&format!("DELETE FROM {table} WHERE {strays}"), [])?;
            self.rebuilt.lost += gone as u64;
        }
        for table in ["approvals", "findings", "prompts"] {
            self.new.execute(&format!("UPDATE {table} SET session = -session WHERE {strays}"), [])?;
        }
        Ok(())
    }

    /// The readable keys of a table: read from both ends, and from indexes, which the damage may have spared.
    fn keys(&self, table: &str, key: &str, sources: &[&str]) -> Vec<Value> {
        let mut keys = Vec::new();
        for source in sources {
            let mut whole = true;
            for order in ["ASC", "DESC"] {
                if order == "DESC" && whole {
                    break;
                }
                let by = if *source == table { format!("ORDER BY {key} {order}") } else { String::new() };
                whole = self.each(&format!("SELECT {key} FROM {source} {by}"), |row| {
                    keys.push(row.get::<_, Value>(0)?);
                    Ok(())
                });
            }
        }
        keys.sort_by(|a, b| order_of(a).cmp(&order_of(b)));
        keys.dedup();
        keys
    }

    /// Reads rows until one is unreadable; returns whether all were readable.
    fn each(&self, sql: &str, mut read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>) -> bool {
        let Ok(mut statement) = self.old.prepare(sql) else { return false };
        let Ok(mut rows) = statement.query([]) else { return false };
        loop {
            match rows.next() {
                Ok(Some(row)) => drop(read(row)),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn files_that_are_there(&self) -> HashSet<i64> {
        let mut there = HashSet::new();
        self.each("SELECT key, path FROM files", |row| {
            if Path::new(&row.get::<_, String>(1)?).exists() {
                there.insert(row.get(0)?);
            }
            Ok(())
        });
        there
    }

    fn removed_sessions(&self) -> HashSet<i64> {
        let mut removed = HashSet::new();
        let sql = format!("SELECT key FROM sessions WHERE provider_session_id LIKE '{REMOVED}%'");
        self.each(&sql, |row| {
            removed.insert(row.get(0)?);
            Ok(())
        });
        removed
    }

    fn events(&mut self) -> Vec<Sketch> {
        let annotation = i64::from(Kind::Annotation.code());
        let positions = self.keys("events", "position", &["events", "events INDEXED BY events_by_session"]);
        let sql =
            "SELECT position, session, file, kind, CASE kind WHEN ?2 THEN data END FROM events WHERE position = ?1";
        let Ok(mut statement) = self.old.prepare(sql) else { return Vec::new() };
        let sketch = |row: &rusqlite::Row<'_>| {
            let data: Option<String> = row.get(4)?;
            let label = data.and_then(|data| Payload::from_json(Kind::Annotation, &data).ok());
            let is_label = matches!(label, Some(Payload::Annotation(annotation)) if matches!(annotation.topic, Topic::Label | Topic::Mark));
            Ok(Sketch { position: row.get(0)?, session: row.get(1)?, file: row.get(2)?, is_label })
        };
        let found: Vec<_> =
            positions.iter().filter_map(|key| statement.query_row((key, annotation), sketch).ok()).collect();
        self.rebuilt.lost += (positions.len() - found.len()) as u64;
        found
    }

    fn hashes_of(&self, positions: &[Value]) -> Vec<Value> {
        let sql = "SELECT text_hash FROM events WHERE position = ?1 AND text_hash IS NOT NULL";
        let Ok(mut statement) = self.old.prepare(sql) else { return Vec::new() };
        let found = positions.iter().filter_map(|key| statement.query_row([key], |row| row.get(0)).ok());
        found.collect()
    }

    /// Copies the rows with these keys one by one; `replaced` columns get the given values.
    fn copy(
        &mut self,
        table: &str,
        key: &str,
        keys: &[Value],
        replaced: &[(&str, Value)],
        counted: Option<&'static str>,
    ) -> Result<(), rusqlite::Error> {
        let Some(columns) = self.columns(table, table) else { return Ok(()) };
        let ours: HashMap<&str, &Value> = replaced.iter().map(|(name, value)| (*name, value)).collect();
        let read: Vec<&str> = columns.iter().map(String::as_str).filter(|name| !ours.contains_key(name)).collect();
        let written: Vec<&str> = read.iter().copied().chain(replaced.iter().map(|(name, _)| *name)).collect();
        let select = format!("SELECT {} FROM {table} WHERE {key} = ?1", read.join(", "));
        let Ok(mut select) = self.old.prepare(&select) else { return Ok(()) };
        let places = vec!["?"; written.len()].join(", ");
        let mut insert =
            self.new.prepare(&format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({places})", written.join(", ")))?;
        let (mut copied, mut lost) = (0, 0);
        for key in keys {
            let row = select.query_row([key], |row| {
                (0..read.len()).map(|index| row.get::<_, Value>(index)).collect::<Result<Vec<_>, _>>()
            });
            match row {
                Ok(row) => {
                    let values = row.iter().chain(replaced.iter().map(|(_, value)| value)).map(|v| v as &dyn ToSql);
                    copied += insert.execute(params_from_iter(values))? as u64;
                }
                Err(_) => lost += 1,
            }
        }
        if let Some(name) = counted {
            match self.rebuilt.salvaged.iter_mut().find(|(other, _)| *other == name) {
                Some((_, count)) => *count += copied,
                None => self.rebuilt.salvaged.push((name, copied)),
            }
        }
        self.rebuilt.lost += lost;
        Ok(())
    }

    /// Copies the readable rows of these sessions into a table.
    fn copy_of_sessions(&self, table: &str, into: &str, sessions: &HashSet<i64>) -> Result<(), rusqlite::Error> {
        let Some(columns) = self.columns(table, into) else { return Ok(()) };
        let places = vec!["?"; columns.len()].join(", ");
        let columns = columns.join(", ");
        let mut insert = self.new.prepare(&format!("INSERT OR IGNORE INTO {into} ({columns}) VALUES ({places})"))?;
        let count = columns.split(", ").count();
        self.each(&format!("SELECT {columns}, session FROM {table}"), |row| {
            if sessions.contains(&row.get::<_, i64>(count)?) {
                let values = (0..count).map(|i| row.get::<_, Value>(i)).collect::<Result<Vec<_>, _>>()?;
                insert.execute(params_from_iter(values))?;
            }
            Ok(())
        });
        Ok(())
    }

    /// Copies the known records of these sessions.
    fn copy_known(&self, table: &str, sessions: &HashSet<i64>) -> Result<(), rusqlite::Error> {
        let mut insert = self.new.prepare("INSERT INTO known_batches (entries) VALUES (?1)")?;
        self.each(&format!("SELECT entries FROM {table}"), |row| {
            let mut kept = Vec::new();
            for (identity, session) in known::entries(row.get_ref(0)?.as_blob()?) {
                if sessions.contains(&session.number()) {
                    known::put_entry(&mut kept, identity, session);
                }
            }
            if !kept.is_empty() {
                insert.execute([kept])?;
            }
            Ok(())
        });
        Ok(())
    }

    /// The columns that a table of the old database shares with one of the new database.
    fn columns(&self, old: &str, new: &str) -> Option<Vec<String>> {
        let of = |connection: &Connection, table: &str| -> Option<Vec<String>> {
            let statement = connection.prepare(&format!("SELECT * FROM {table} LIMIT 0")).ok()?;
            Some(statement.column_names().map(str::to_owned).collect())
        };
        let old = of(self.old, old)?;
        Some(of(self.new, new)?.into_iter().filter(|name| old.contains(name)).collect())
    }
}

/// Fills the gaps in consecutive numeric keys: rows between those found may be readable individually.
fn numbered(keys: Vec<Value>) -> Vec<Value> {
    match (keys.first(), keys.last()) {
        (Some(Value::Integer(first)), Some(Value::Integer(last))) => (*first..=*last).map(Value::Integer).collect(),
        _ => keys,
    }
}

/// The sort order of keys of one type.
fn order_of(key: &Value) -> (i64, &str) {
    match key {
        Value::Integer(number) => (*number, ""),
        Value::Text(text) => (0, text),
        Value::Null | Value::Real(_) | Value::Blob(_) => (0, ""),
    }
}
