//! Tables and migrations, and how statements are planned. The version of the schema is SQLite's `user_version`; each
//! step is one transaction; a database of a newer version is refused without changing it.

use rusqlite::{Connection, config::DbConfig};

/// The steps from an empty database to the present one. Never changed once released, only added to.
const STEPS: &[&str] = &[include_str!("schema.sql")];

/// The version that the first step leads to. Those before it were never released.
pub(crate) const FIRST_VERSION: i64 = 13;

/// The version this program writes.
pub const SCHEMA_VERSION: i64 = FIRST_VERSION + STEPS.len() as i64 - 1;

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
    /// Written by a program that was never released.
    #[error(
        "the database has schema version {found} of a development version of capture; move it away, and capture reads the \
         agents' files again"
    )]
    Unreleased {
        /// Its version.
        found: i64,
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
    let found: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(MigrationError::Version)?;
    if found > SCHEMA_VERSION {
        return Err(MigrationError::Newer { found, known: SCHEMA_VERSION });
    }
    if found != 0 && found < FIRST_VERSION {
        return Err(MigrationError::Unreleased { found });
    }
    for (step, to) in STEPS.iter().zip(FIRST_VERSION..).filter(|(_, to)| *to > found) {
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
    fn an_empty_database_is_brought_up_and_newer_or_unreleased_ones_are_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        let refused = migrate(&mut connection).unwrap_err().to_string();
        assert!(refused.contains("newer capture"), "{refused}");
        for found in [1, FIRST_VERSION - 1] {
            connection.pragma_update(None, "user_version", found).unwrap();
            let refused = migrate(&mut connection).unwrap_err().to_string();
            assert!(refused.contains("development version") && refused.contains("move it away"), "{refused}");
        }
    }

    #[test]
    fn the_bundled_sqlite_is_new_enough() {
        assert!(rusqlite::version_number() >= SQLITE_OLDEST, "{}", rusqlite::version());
    }
}
