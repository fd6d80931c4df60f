//! Checks the database file: quickly after an unclean end, completely on request of the user.

use std::{path::Path, sync::mpsc, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::ReadError;

/// Longest quick check before a start, so that a large database does not block the start.
pub(crate) const QUICK: Duration = Duration::from_secs(10);
/// Maximum number of faults that are listed.
const NAMED: usize = 20;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseCheck {
    /// Nothing is wrong.
    Whole,
    /// The check ran out of time; it found no fault until then.
    Unfinished,
    /// Some rows contain invalid values; they are skipped when read.
    Rows(Vec<String>),
    /// The file is damaged.
    Damaged(Vec<String>),
}

/// Whether the error means that the file is damaged.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Checks the structure of the database at `path`, for at most `within`.
pub(crate) fn quick(path: &Path, within: Duration) -> Result<DatabaseCheck, rusqlite::Error> {
    run(path, "PRAGMA quick_check(20)", Some(within))
}

/// Checks everything in the database at `path`, including its indexes, without a time limit.
///
/// # Errors
/// When the database cannot be read for a reason other than damage.
pub fn full(path: &Path) -> Result<DatabaseCheck, ReadError> {
    run(path, "PRAGMA integrity_check(20)", None).map_err(|source| ReadError::Sqlite { what: "database", source })
}

fn run(path: &Path, pragma: &str, within: Option<Duration>) -> Result<DatabaseCheck, rusqlite::Error> {
    match faults(path, pragma, within) {
        Ok(faults) if faults.is_empty() => Ok(DatabaseCheck::Whole),
        Ok(faults) if faults.iter().all(|fault| is_of_a_row(fault)) => Ok(DatabaseCheck::Rows(faults)),
        Ok(faults) => Ok(DatabaseCheck::Damaged(faults)),
        Err(error) if is_damage(&error) => Ok(DatabaseCheck::Damaged(vec![error.to_string()])),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(DatabaseCheck::Unfinished)
        }
        Err(error) => Err(error),
    }
}

fn faults(path: &Path, pragma: &str, within: Option<Duration>) -> Result<Vec<String>, rusqlite::Error> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let interrupt = connection.get_interrupt_handle();
    let check = || -> Result<Vec<String>, rusqlite::Error> {
        let mut statement = connection.prepare(pragma)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut faults = rows.take(NAMED).collect::<Result<Vec<_>, _>>()?;
        faults.retain(|fault| fault != "ok");
        Ok(faults)
    };
    std::thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<()>();
        if let Some(within) = within {
            scope.spawn(move || {
                if finished.recv_timeout(within) == Err(mpsc::RecvTimeoutError::Timeout) {
                    interrupt.interrupt();
                }
            });
        }
        let faults = check();
        drop(done);
        faults
    })
}

/// Whether a fault concerns one row rather than the file, such as `NULL value in events.id`.
fn is_of_a_row(fault: &str) -> bool {
    fault.contains(" value in ")
}
