//! Tables and migrations, and how statements are planned. The version of the schema is SQLite's `user_version`; each
//! step is one transaction; a database of a newer version is refused without changing it.

use rusqlite::{Connection, config::DbConfig};

/// The steps from an empty database to the present one. Never changed once released, only added to.
const STEPS: &[&str] = &[
    // 1: the event log.
    "
CREATE TABLE sessions (
  key INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  provider INTEGER NOT NULL,
  provider_session_id TEXT NOT NULL,
  last_event_at INTEGER NOT NULL DEFAULT 0,
  capture INTEGER NOT NULL DEFAULT 1,
  view TEXT,
  snapshot TEXT,
  UNIQUE (provider, provider_session_id)
) STRICT;
CREATE INDEX sessions_by_last_event ON sessions (last_event_at, id);
CREATE INDEX sessions_by_provider_id ON sessions (provider_session_id);
CREATE TABLE files (
  key INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  cursor TEXT
) STRICT;
CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  id BLOB NOT NULL,
  kind INTEGER NOT NULL,
  source INTEGER NOT NULL,
  marks INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  observed_at INTEGER NOT NULL,
  turn BLOB,
  parent BLOB,
  agent TEXT,
  text TEXT,
  text_hash BLOB,
  text_length INTEGER,
  data TEXT NOT NULL,
  file INTEGER,
  generation INTEGER,
  offset INTEGER,
  length INTEGER,
  delivery TEXT
) STRICT;
CREATE UNIQUE INDEX events_by_session ON events (session, sequence);
CREATE TABLE known (
  identity BLOB PRIMARY KEY,
  session INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE texts (
  key INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  codec INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE TABLE turns (
  session INTEGER NOT NULL,
  number INTEGER NOT NULL,
  turn TEXT NOT NULL,
  PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  session INTEGER NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  PRIMARY KEY (session, model)
) STRICT, WITHOUT ROWID;
",
    // 2: approvals, and the chain of what was decided. AUTOINCREMENT: a number is never given twice,
    // so that rows that are missing at the end are noticed too.
    "
CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL,
  state INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  approval TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_time ON approvals (opened_at, id);
CREATE INDEX approvals_pending ON approvals (state, opened_at) WHERE state = 1;
CREATE TABLE audit (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  body TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;
",
    // 3: findings, the messages about them, and prompts that wait; approvals get the shape the three share.
    "
ALTER TABLE approvals RENAME COLUMN opened_at TO began_at;
ALTER TABLE approvals RENAME COLUMN approval TO body;
CREATE TABLE findings (
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL,
  state INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX findings_by_time ON findings (began_at, id);
CREATE TABLE notified (
  finding TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE prompts (
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL,
  state INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX prompts_by_time ON prompts (began_at, id);
",
    // 4: what is known, in runs. What was known before is the first one; its filter is made when the store is opened.
    "
CREATE TABLE known_recent (
  key INTEGER PRIMARY KEY,
  identity BLOB NOT NULL,
  session INTEGER NOT NULL
) STRICT;
CREATE TABLE known_runs (
  run INTEGER PRIMARY KEY,
  rows INTEGER NOT NULL,
  filter BLOB NOT NULL
) STRICT;
CREATE TABLE known_sorted (
  run INTEGER NOT NULL,
  identity BLOB NOT NULL,
  session INTEGER NOT NULL,
  PRIMARY KEY (run, identity)
) STRICT, WITHOUT ROWID;
INSERT INTO known_sorted SELECT 0, identity, session FROM known ORDER BY identity;
INSERT INTO known_runs SELECT 0, count(*), x'' FROM known HAVING count(*) > 0;
DROP TABLE known;
",
    // 5: up to where in the log the rows of sessions are complete; before, they always were.
    "
CREATE TABLE settled (
  key INTEGER PRIMARY KEY CHECK (key = 0),
  position INTEGER NOT NULL
) STRICT;
INSERT INTO settled SELECT 0, ifnull(max(position), 0) FROM events;
",
    // 6: names the log. A new one gets another name, so that nobody takes its positions for those of the old one.
    "
CREATE TABLE log_id (
  key INTEGER PRIMARY KEY CHECK (key = 0),
  id BLOB NOT NULL
) STRICT;
INSERT INTO log_id SELECT 0, randomblob(16);
",
    // 7: the notable events, by their time: see `crate::timeline`. For a list of kinds instead of their bits SQLite would
    // fill a table at every insert.
    "
CREATE INDEX events_notable ON events (created_at) WHERE (59616310 >> kind & 1) <> 0 OR marks & 8 <> 0;
",
    // 8: the sessions that were removed and are not read again, what of them is still to be erased, and up to where
    // positions were given at least, also when the events are gone.
    "
CREATE TABLE removed (
  hash BLOB PRIMARY KEY,
  forgotten INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE erasing (
  session INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  forgotten INTEGER NOT NULL,
  about TEXT NOT NULL
) STRICT;
CREATE TABLE log_end (
  key INTEGER PRIMARY KEY CHECK (key = 0),
  position INTEGER NOT NULL
) STRICT;
INSERT INTO log_end SELECT 0, ifnull(max(position), 0) FROM events;
",
    // 9: what each call of a model used, instead of sums of a session; and how quotas were used up. The calls before
    // are taken from the log.
    concat!(
        "
DROP TABLE usage;
CREATE TABLE usage (
  session INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cache_write_hour_tokens INTEGER NOT NULL,
  thinking_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER,
  first INTEGER NOT NULL,
  PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE quotas (
  provider INTEGER NOT NULL,
  name TEXT NOT NULL,
  at INTEGER NOT NULL,
  window_minutes INTEGER,
  used_permille INTEGER NOT NULL,
  resets_at INTEGER,
  PRIMARY KEY (provider, name, at)
) STRICT, WITHOUT ROWID;
",
        include_str!("usage_from_log.sql")
    ),
    // 10: what agents' own accounting says, see `crate::accounts`.
    "
CREATE TABLE accounts (
  session INTEGER NOT NULL,
  scope INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  model TEXT NOT NULL,
  at INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cache_write_hour_tokens INTEGER NOT NULL,
  thinking_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER,
  PRIMARY KEY (session, scope, began_at, model)
) STRICT, WITHOUT ROWID;
",
    // 11: known records many to a row, see `crate::known`. Those of before stay where they are.
    "
CREATE TABLE known_batches (
  key INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;
CREATE TABLE known_blocks (
  key INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;
ALTER TABLE known_runs ADD COLUMN blocks INTEGER NOT NULL DEFAULT 0;
",
    // 12: the sessions that were removed to save space, so that they can be forgotten later: see `crate::removal`.
    "
CREATE TABLE pruned (
  session INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  name TEXT NOT NULL,
  about TEXT NOT NULL
) STRICT;
",
];

/// The version this program writes.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// The oldest SQLite that is safe with several connections on one WAL (older ones can corrupt it).
pub const SQLITE_OLDEST: i32 = 3_051_003;

/// Why a database could not be brought to the present schema.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// Written by a newer program.
    #[error(
        "the database has schema version {found}, but this version of capture supports at most {known}; use the newer \
         capture or another data directory"
    )]
    Newer {
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// A step failed; the database is as before that step.
    #[error("migrating the database to schema version {to} failed: {source}")]
    Step {
        /// The version the step leads to.
        to: i64,
        /// Why.
        source: rusqlite::Error,
    },
    /// The version could not be read.
    #[error("cannot read the schema version: {0}")]
    Version(rusqlite::Error),
}

/// Brings a database to the present schema, one transaction a step.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), MigrationError> {
    migrate_to(connection, STEPS.len())
}

/// Brings a database to a schema, one transaction a step.
pub(crate) fn migrate_to(connection: &mut Connection, version: usize) -> Result<(), MigrationError> {
    let found: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(MigrationError::Version)?;
    if found > SCHEMA_VERSION {
        return Err(MigrationError::Newer { found, known: SCHEMA_VERSION });
    }
    for (index, step) in STEPS.iter().enumerate().take(version).skip(usize::try_from(found).unwrap_or(0)) {
        let to = index as i64 + 1;
        let failed = |source| MigrationError::Step { to, source };
        let transaction = connection.transaction().map_err(failed)?;
        transaction.execute_batch(step).map_err(failed)?;
        transaction.pragma_update(None, "user_version", to).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
    Ok(())
}

/// Makes SQLite keep the plan of a prepared statement. Otherwise it plans a statement that a partial index might serve
/// again for each value that is bound to it.
pub(crate) fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_database_is_brought_up_and_a_newer_one_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        let refused = migrate(&mut connection).unwrap_err().to_string();
        assert!(refused.contains("newer capture"), "{refused}");
    }

    #[test]
    fn the_bundled_sqlite_is_new_enough() {
        assert!(rusqlite::version_number() >= SQLITE_OLDEST, "{}", rusqlite::version());
    }
}
