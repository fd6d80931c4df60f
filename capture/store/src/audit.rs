//! The audit record: an append-only table in which each row has a hash over its own content and the previous row's
//! hash, so that changed, removed and inserted rows are detected.
//!
//! A process that can write the database can also rebuild the whole chain. On its own, the chain reveals accidents and
//! careless changes; compared with a last row saved elsewhere, it reveals every change. `verify` checks both.

mod forgotten;
mod head;
mod verify;

use std::{fmt, str::FromStr};

use events::id::Hex;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

pub(crate) use self::forgotten::forget_rows;
pub use self::{
    head::{HEAD_FILE, HeadError, read_head, write_head},
    verify::{AuditCheck, VerifyError},
};

use crate::{
    error::{CommitError, ReadError},
    reader::Reader,
    writer::Writer,
};

/// The end of the chain, which is needed to detect rows missing at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of the last row; 0 for none.
    pub sequence: u64,
    /// The hash of the last row.
    pub hash: AuditHash,
}

/// A BLAKE3 hash, written as hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct AuditHash([u8; 32]);

impl fmt::Display for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<AuditHash> for String {
    fn from(hash: AuditHash) -> Self {
        hash.to_string()
    }
}

impl FromStr for AuditHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text).map(|hash| Self(hash.into())).map_err(|error| error.to_string())
    }
}

impl TryFrom<String> for AuditHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// One row of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, starting at 1 without gaps.
    pub sequence: u64,
    /// The recorded JSON.
    pub body: String,
    /// The hash it was stored with.
    pub hash: AuditHash,
}

/// The hash of a row: over the previous hash, its number and its text.
fn link(before: AuditHash, sequence: u64, body: &str) -> AuditHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0).update(&sequence.to_le_bytes()).update(body.as_bytes());
    AuditHash(hasher.finalize().into())
}

pub(crate) fn last(connection: &Connection) -> rusqlite::Result<AuditHead> {
    let row = connection
        .prepare_cached("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1")?
        .query_row([], |row| {
            Ok(AuditHead { sequence: row.get::<_, i64>(0)?.max(0) as u64, hash: AuditHash(row.get(1)?) })
        })
        .optional()?;
    Ok(row.unwrap_or_default())
}

impl Writer {
    /// Adds a row to the record; returns the new end of the chain.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn audit(&mut self, body: &str) -> Result<AuditHead, CommitError> {
        let failed = |source| CommitError { what: "the record of a decision", source };
        let before = last(self.connection()).map_err(failed)?;
        let sequence = before.sequence + 1;
        let hash = link(before.hash, sequence, body);
        self.connection()
            .prepare_cached("INSERT INTO audit (sequence, body, hash) VALUES (?1, ?2, ?3)")
            .and_then(|mut s| s.execute(params![sequence as i64, body, hash.0.as_slice()]))
            .map_err(failed)?;
        Ok(AuditHead { sequence, hash })
    }

    /// Saves the end of an empty record too, so that rows without a saved end always mean tampering, even while the
    /// first row is being written.
    pub(crate) fn write_first_head(&self) -> std::io::Result<()> {
        let Some(directory) = self.path().parent() else { return Ok(()) };
        let is_new = self.connection().query_row(
            "SELECT NOT EXISTS (SELECT 1 FROM audit) AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'audit')",
            [],
            |row| row.get::<_, bool>(0),
        );
        if is_new.unwrap_or(false) && !directory.join(HEAD_FILE).try_exists()? {
            write_head(directory, AuditHead::default())?;
        }
        Ok(())
    }
}

impl Reader {
    /// Rows of the record after `after`, in order.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditEntry>, ReadError> {
        self.with("audit", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "audit", source };
            let mut statement = c
                .prepare_cached("SELECT sequence, body, hash FROM audit WHERE sequence > ?1 ORDER BY sequence LIMIT ?2")
                .map_err(sqlite)?;
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement
                .query_map(params![after, limit], |row| {
                    Ok(AuditEntry {
                        sequence: row.get::<_, i64>(0)?.max(0) as u64,
                        body: row.get(1)?,
                        hash: AuditHash(row.get(2)?),
                    })
                })
                .map_err(sqlite)?;
            rows.collect::<Result<_, _>>().map_err(sqlite)
        })
    }
}

#[cfg(test)]
mod tests;
