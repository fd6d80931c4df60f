//! Verifies the audit record on one snapshot of the database, so that a concurrent writer is never mistaken for
//! tampering.

use rusqlite::{Connection, OptionalExtension, types::ValueRef};

use super::{AuditHash, AuditHead, HEAD_FILE, HeadError, forgotten::ForgottenRows, link, read_head};
use crate::{error::ReadError, reader::Reader};

/// The schema version that added the audit table.
const AUDIT_SINCE: i64 = 2;

/// The result of verifying the whole record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    /// Number of intact rows before the first broken one.
    pub rows: u64,
    /// The last intact row.
    pub head: AuditHead,
    /// The first fault; `None` if the record is intact.
    pub broken: Option<String>,
}

/// Why the record could not be verified; it may or may not be intact.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] ReadError),
    /// The saved end of the chain could not be read.
    #[error(transparent)]
    Head(HeadError),
}

impl Reader {
    /// Verifies the whole record against the end saved beside the database, and against `elsewhere`, an end saved at
    /// another place.
    ///
    /// # Errors
    /// When the database or the file beside it cannot be read.
    pub fn verify_audit(&self, elsewhere: Option<AuditHead>) -> Result<AuditCheck, VerifyError> {
        // Read the file before the rows: it is written after its row is committed, so every later state of the database
        // contains the row it names.
        let (beside, damaged) = match self.directory().map_or(Ok(None), read_head) {
            Ok(beside) => (beside, None),
            Err(error @ HeadError::Damaged { .. }) => (None, Some(error.to_string())),
            Err(error @ HeadError::Read { .. }) => return Err(VerifyError::Head(error)),
        };
        let kept: Vec<AuditHead> = beside.into_iter().chain(elsewhere).collect();
        let mut check = self.check_audit(&kept)?;
        check.broken = check.broken.or(damaged);
        // An empty record gets its file before its first row.
        if check.broken.is_none() && beside.is_none() && check.rows > 0 {
            check.broken = Some(format!("{HEAD_FILE}, which names the last row, is missing"));
        }
        Ok(check)
    }

    /// Verifies a snapshot of the whole record; `kept` are ends of the chain saved elsewhere and read before this call.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn check_audit(&self, kept: &[AuditHead]) -> Result<AuditCheck, ReadError> {
        self.with("audit", |connection| {
            let failed = |source| ReadError::Sqlite { what: "audit", source };
            // One transaction, so that rows and counter belong to the same commit.
            let snapshot = connection.unchecked_transaction().map_err(failed)?;
            check(&snapshot, kept).map_err(failed)
        })
    }
}

fn check(connection: &Connection, kept: &[AuditHead]) -> rusqlite::Result<AuditCheck> {
    let there =
        connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'audit'")?.exists([])?;
    if !there {
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let expected = version >= AUDIT_SINCE || kept.iter().any(|head| head.sequence > 0);
        let broken = expected.then(|| "its table is missing".to_owned());
        return Ok(AuditCheck { rows: 0, head: AuditHead::default(), broken });
    }
    let (head, mut broken) = walk(connection, kept)?;
    if broken.is_none() {
        broken = missing_at_end(connection, head, kept)?;
    }
    Ok(AuditCheck { rows: head.sequence, head, broken })
}

/// Follows the chain from its first row; returns the last intact row and the fault in the next one.
fn walk(connection: &Connection, kept: &[AuditHead]) -> rusqlite::Result<(AuditHead, Option<String>)> {
    let mut head = AuditHead::default();
    let mut forgotten = ForgottenRows::default();
    let mut statement = connection.prepare_cached("SELECT sequence, body, hash FROM audit ORDER BY sequence")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let expected = head.sequence + 1;
        let sequence = row.get::<_, i64>(0)?;
        let Ok(sequence @ 1..) = u64::try_from(sequence) else {
            return Ok((head, Some(format!("row {sequence} was inserted"))));
        };
        if sequence != expected {
            return Ok((head, Some(format!("row {expected} is missing"))));
        }
        // Columns of another type, and text that is not UTF-8, were not written by capture.
        let (body, hash) = (row.get_ref(1)?, row.get_ref(2)?);
        let Some(hash) =
            intact(head.hash, sequence, body, hash).or_else(|| forgotten.passes(head, sequence, body, hash))
        else {
            return Ok((head, Some(format!("row {sequence} was changed"))));
        };
        forgotten.read(body);
        if kept.iter().any(|kept| kept.sequence == sequence && kept.hash != hash) {
            return Ok((head, Some(format!("row {sequence} does not match the hash that was saved for it"))));
        }
        head = AuditHead { sequence, hash };
    }
    if let Some(before) = forgotten.unexplained() {
        return Ok((before, Some(format!("row {} was changed", before.sequence + 1))));
    }
    Ok((head, None))
}

/// The hash of a row if it is unchanged.
fn intact(before: AuditHash, sequence: u64, body: ValueRef<'_>, hash: ValueRef<'_>) -> Option<AuditHash> {
    let (ValueRef::Text(body), ValueRef::Blob(hash)) = (body, hash) else { return None };
    let found = AuditHash(hash.try_into().ok()?);
    (link(before, sequence, std::str::from_utf8(body).ok()?) == found).then_some(found)
}

/// Describes which rows are missing after `head`, according to the database's counter and the saved ends.
fn missing_at_end(connection: &Connection, head: AuditHead, kept: &[AuditHead]) -> rusqlite::Result<Option<String>> {
    let given = connection
        .prepare_cached("SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'audit'")?
        .query_row([], |row| row.get::<_, Option<i64>>(0))
        .optional()?
        .flatten()
        .and_then(|given| u64::try_from(given).ok())
        .unwrap_or(0);
    let last = kept.iter().map(|kept| kept.sequence).chain([given]).max().unwrap_or(0);
    if last > head.sequence {
        return Ok(Some(format!("rows {} to {last} are missing at the end", head.sequence + 1)));
    }
    // SQLite never lets the counter fall below the number of rows.
    Ok((given < head.sequence).then(|| format!("the database counts {given} rows, but there are {}", head.sequence)))
}
