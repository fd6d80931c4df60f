//! Logs in a table of an SQLite database, which agents use in write-ahead mode.
//!
//! The cursor's offset is the number of the last row read, its hash the hash of the row's id: if the row has another id
//! or is gone, the table is read again from its start. Nothing is written: the database is opened read-only, without
//! following links, for one short transaction, and closed again. SQLite itself may create the shared memory file
//! (`-shm`) for a log that no program has open. A database without a log is read without a lock.

use std::{io, path::Path, sync::Arc, time::Duration};

use rusqlite::{Connection, OpenFlags, Row, config::DbConfig, types::ValueRef};

use super::{
    Now, Tail, TailRead, TailReader,
    disk::{self, OpenError, Stat},
    is_racy,
    lines::SplitLine,
    marks, modified_at,
    occurrence::Occurrences,
    spec::{ReadLimits, RowTable},
};
use crate::{decode::Decoded, tail::error::TailError};

/// Timeout for a locked database.
const LOCKED: Duration = Duration::from_millis(20);

/// One row.
struct LogRow {
    number: i64,
    mark: u64,
    /// Its length, bytes.
    length: u64,
    /// Absent if it is longer than the limit for records.
    record: Option<Vec<u8>>,
}

impl Tail {
    pub(super) fn read_rows(
        &mut self,
        table: &'static RowTable,
        reader: &mut TailReader,
        now: Now,
    ) -> Result<TailRead, TailError> {
        let log = self.place.write_ahead_log();
        let look = |reader: &TailReader| {
            let there = reader.disk.stat(&self.place)?;
            let log = if there.is_some() { reader.disk.stat(&log)? } else { None };
            io::Result::Ok(there.map(|there| (disk::with_log(there, log), log.is_some_and(|log| log.size > 0))))
        };
        let Some((stat, has_log)) = look(reader).map_err(|e| self.io(e))? else {
            return Ok(self.vanish(now));
        };
        // Checks the owner and that no link leads to it, as for any other file.
        match disk::admit(&stat).and_then(|()| reader.disk.open(&self.place)) {
            Ok(_) => {}
            Err(OpenError::Gone) => return Ok(self.vanish(now)),
            Err(OpenError::Refused(reason)) => {
                return Err(TailError::Refused { path: Arc::clone(self.place.path()), reason });
            }
            Err(OpenError::Io(source)) => return Err(self.io(source)),
        }
        self.gone = false;
        let before = (self.cursor.offset, self.cursor.generation, self.cursor.issues);
        let (rows, more) = self.query(table, &stat, has_log, &reader.limits)?;
        let decoder = self.decoder.get_or_insert_with(|| {
            (self.spec.make)(Path::new(&**self.place.path()), self.cursor.decoder_state.as_deref())
        });
        let mut out = Decoded::new(self.provider, Arc::clone(self.place.path()), self.cursor.generation);
        for row in &rows {
            let offset = row.number.unsigned_abs();
            let line = match &row.record {
                Some(bytes) => SplitLine::Whole { offset, bytes },
                // Its bytes were not loaded, so the hash of its position is used.
                None => {
                    let hash = *blake3::hash(&[row.mark.to_le_bytes(), offset.to_le_bytes()].concat()).as_bytes();
                    SplitLine::Oversized { offset, length: row.length, hash }
                }
            };
            super::feed(&mut **decoder, line, now.wall, &mut out);
        }
        if !more {
            super::guarded(&mut out, |out| decoder.pause(out));
        }
        if let Some(last) = rows.last() {
            self.cursor.offset = last.number.unsigned_abs();
            self.cursor.tail_hash = last.mark;
        }
        self.cursor.key = stat.key;
        self.cursor.size = stat.size;
        self.cursor.changed_ns = if more { 0 } else { stat.changed_ns };
        self.cursor.caught_up |= !more;
        let events = self.emit(out);
        Ok(TailRead {
            events,
            moved: before != (self.cursor.offset, self.cursor.generation, self.cursor.issues),
            more,
            unsettled: is_racy(&stat, now),
            modified_at: modified_at(&stat),
            ..TailRead::default()
        })
    }

    /// The rows after the cursor, about as many bytes as a batch, and whether there are more.
    fn query(
        &mut self,
        table: &RowTable,
        stat: &Stat,
        has_log: bool,
        limits: &ReadLimits,
    ) -> Result<(Vec<LogRow>, bool), TailError> {
        let database = self.connect(has_log)?;
        if !is_table(&database, table.name).map_err(|e| self.sqlite(&e))? {
            let error = format!("no table `{}`", table.name);
            return Err(TailError::Malformed { path: Arc::clone(self.place.path()), error });
        }
        let known = self.cursor.generation > 0 && self.cursor.key == stat.key && {
            let marked = mark(&database, table, self.cursor.offset).map_err(|e| self.sqlite(&e))?;
            self.cursor.offset == 0 || marked == Some(self.cursor.tail_hash)
        };
        if !known {
            self.renew();
            self.occurrences = Some(Occurrences::default());
        }
        rows_behind(&database, table, self.cursor.offset, limits).map_err(|e| self.sqlite(&e))
    }

    /// Opens the database for reading.
    fn connect(&self, has_log: bool) -> Result<Connection, TailError> {
        let root = std::fs::canonicalize(self.place.root()).map_err(|e| self.io(e))?;
        let path = root.join(self.place.relative());
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let opened = if has_log {
            Connection::open_with_flags(&path, flags)
        } else {
            Connection::open_with_flags(immutable(&path), flags | OpenFlags::SQLITE_OPEN_URI)
        };
        let database = opened.map_err(|e| self.sqlite(&e))?;
        let prepared = database
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            // The schema comes from another program, so it must not call functions with side effects.
            .and_then(|_| database.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false))
            .and_then(|_| database.busy_timeout(LOCKED))
            // One transaction for all reads.
            .and_then(|()| database.execute_batch("BEGIN"));
        prepared.map_err(|e| self.sqlite(&e)).map(|()| database)
    }

    fn sqlite(&self, error: &rusqlite::Error) -> TailError {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            // Another layout, or not a database: another try helps only after the file changed.
            Some(ErrorCode::Unknown | ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) | None => {
                TailError::Malformed { path: Arc::clone(self.place.path()), error: error.to_string() }
            }
            Some(_) => self.io(io::Error::other(error.to_string())),
        }
    }
}

/// The URI of a database that no program writes to now.
fn immutable(path: &Path) -> String {
    use std::{fmt::Write, os::unix::ffi::OsStrExt};
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            other => drop(write!(uri, "%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// The hash of a row's id; `None` if there is no such row.
fn mark(database: &Connection, table: &RowTable, number: u64) -> rusqlite::Result<Option<u64>> {
    let sql = format!("SELECT \"{}\" FROM \"{}\" WHERE rowid = ?1", table.id, table.name);
    let mut statement = database.prepare(&sql)?;
    let mut rows = statement.query([number.cast_signed()])?;
    Ok(match rows.next()? {
        Some(row) => Some(hash_of(row.get_ref(0)?)),
        None => None,
    })
}

fn hash_of(id: ValueRef<'_>) -> u64 {
    match id {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => marks::hash(bytes),
        ValueRef::Integer(number) => marks::hash(&number.to_le_bytes()),
        ValueRef::Real(_) | ValueRef::Null => 0,
    }
}

/// Whether this is a table and not a view, which could compute anything.
fn is_table(database: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE name = ?1 AND type = 'table' AND rootpage > 0";
    database.prepare(sql)?.exists([name])
}

fn rows_behind(
    database: &Connection,
    table: &RowTable,
    number: u64,
    limits: &ReadLimits,
) -> rusqlite::Result<(Vec<LogRow>, bool)> {
    // A value above the limit is not loaded; its length is stored before it in the row.
    let columns = table.columns.iter().map(|column| {
        format!(", octet_length(\"{column}\"), CASE WHEN octet_length(\"{column}\") <= ?2 THEN \"{column}\" END")
    });
    let columns: String = columns.collect();
    let sql =
        format!("SELECT rowid, \"{}\"{columns} FROM \"{}\" WHERE rowid > ?1 ORDER BY rowid", table.id, table.name);
    let mut statement = database.prepare(&sql)?;
    let most = i64::try_from(limits.line_bytes).unwrap_or(i64::MAX);
    let mut rows = statement.query([number.cast_signed(), most])?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        if bytes >= limits.batch_bytes {
            return Ok((found, true));
        }
        let (length, record) = record(row, table.columns, limits.line_bytes)?;
        bytes += record.as_ref().map_or(0, |record| record.len() as u64);
        found.push(LogRow { number: row.get(0)?, mark: hash_of(row.get_ref(1)?), length, record });
    }
    Ok((found, false))
}

/// The length of a row's values, and the row as a JSON object, unless it is longer than `most`.
fn record(row: &Row<'_>, columns: &[&str], most: u64) -> rusqlite::Result<(u64, Option<Vec<u8>>)> {
    let mut record = serde_json::Map::new();
    let mut length = 0_u64;
    for (index, column) in columns.iter().enumerate() {
        let at = 2 + 2 * index;
        length = length.saturating_add(row.get::<_, Option<i64>>(at)?.unwrap_or(0).unsigned_abs());
        let value = match row.get_ref(at + 1)? {
            ValueRef::Null => serde_json::Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        };
        record.insert((*column).to_owned(), value);
    }
    let record = (length <= most).then(|| serde_json::to_vec(&record).unwrap_or_default());
    Ok((length, record))
}
