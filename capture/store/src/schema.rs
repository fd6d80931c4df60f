//! Tables, migrations, and the planning of statements. The schema version is SQLite's `user_version`; each migration
//! step is one transaction; a database of a newer version is refused without changing it.

use rusqlite::{Connection, config::DbConfig};

/// The steps from an empty database to the current schema. Released steps are never changed; new ones are appended.
const STEPS: &[&str] = &[include_str!("schema.sql")];

/// The version after the first step. Earlier versions were never released.
pub(crate) const FIRST_VERSION: i64 = 13;

/// The version this program writes.
pub const SCHEMA_VERSION: i64 = FIRST_VERSION + STEPS.len() as i64 - 1;

/// The oldest SQLite that is safe with several connections on one WAL (older ones can corrupt it).
pub const SQLITE_OLDEST: i32 = 3_051_003;

/// Why a database could not be migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// Written by a newer version.
    #[error(
        "the database has schema version {found}, but this version of capture supports at most {known}; use the newer \
         capture or another data directory"
    )]
    Newer {
        /// The database's version.
        found: i64,
        /// The newest version this program supports.
        known: i64,
    },
    /// Written by an unreleased version.
    #[error(
        "the database has schema version {found} of a development version of capture; move the database away, and \
         capture reads the agents' files again"
    )]
    Unreleased {
        /// The database's version.
        found: i64,
    },
    /// A step failed; the database is in the state before that step.
    #[error("migrating the database to schema version {to} failed: {source}")]
    Step {
        /// The version after the step.
        to: i64,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The version could not be read.
    #[error("cannot read the schema version: {0}")]
    Version(rusqlite::Error),
}

/// Migrates a database to the current schema, one transaction per step.
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

/// Makes SQLite keep the plan of a prepared statement. Otherwise SQLite plans a statement that a partial index might
/// serve again for each bound value.
pub(crate) fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migration_refuses_newer_and_unreleased_schema_versions() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        let refused = migrate(&mut connection).unwrap_err().to_string();
        assert!(refused.contains("newer capture"), "{refused}");
        for found in [1, FIRST_VERSION - 1] {
            connection.pragma_update(None, "user_version", found).unwrap();
            let refused = migrate(&mut connection).unwrap_err().to_string();
            assert!(refused.contains("development version") && refused.contains("move the database away"), "{refused}");
        }
    }

    #[test]
    fn the_bundled_sqlite_is_new_enough() {
        assert!(rusqlite::version_number() >= SQLITE_OLDEST, "{}", rusqlite::version());
    }
}
