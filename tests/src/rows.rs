//! Plays the rows that an agent appends to a log in an SQLite database.

use std::{io::BufRead, path::Path};

use rusqlite::{Connection, params};

/// Whether a path is a database: data appended to it are rows, one per line.
#[must_use]
pub fn is_database(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "db")
}

/// Opens a database with the log table of opencode.
#[must_use]
pub fn open(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    let table = "CREATE TABLE IF NOT EXISTS event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, \
                 type text NOT NULL, data text NOT NULL)";
    database.execute(table, []).unwrap();
    database
}

/// Inserts rows: one JSON object of columns per line.
pub fn append(database: &Connection, lines: &str) {
    for line in lines.as_bytes().lines() {
        let row: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |name: &str| row[name].as_str().unwrap();
        let values = params![text("id"), text("aggregate_id"), row["seq"].as_i64(), text("type"), text("data")];
        database.execute("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)", values).unwrap();
    }
}
