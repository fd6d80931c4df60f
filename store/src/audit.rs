//! The record of decisions: rows that are only ever added, each with a hash over itself and the one
//! before, so that a row that was changed, taken out or put in is noticed.
//!
//! Who can write the database can also make the whole chain anew: it shows accidents and clumsy
//! hands, and, against a head that was kept elsewhere, all of them.

use std::{fmt, str::FromStr};

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::{
    reader::{ReadError, Reader},
    writer::{CommitError, Writer},
};

/// The end of the chain: what has to be known to notice that rows are missing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of the last row; 0 for none.
    pub sequence: u64,
    /// Its hash.
    pub hash: AuditHash,
}

/// A BLAKE3 hash, written as hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct AuditHash([u8; 32]);

impl fmt::Display for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
    /// Its number, from 1 without gaps.
    pub sequence: u64,
    /// What was recorded, JSON.
    pub body: String,
    /// The hash it was written with.
    pub hash: AuditHash,
}

/// What a look through the whole record found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    /// Rows that are there.
    pub rows: u64,
    /// The end of the chain as it is there.
    pub head: AuditHead,
    /// What is wrong, the first of it; `None` when nothing is.
    pub broken: Option<String>,
}

/// The hash of a row: over the hash before it, its number and its text.
fn link(before: AuditHash, sequence: u64, body: &str) -> AuditHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0).update(&sequence.to_le_bytes()).update(body.as_bytes());
    AuditHash(hasher.finalize().into())
}

fn last(connection: &Connection) -> rusqlite::Result<AuditHead> {
    let row = connection
        .prepare_cached("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1")?
        .query_row([], |row| {
            Ok(AuditHead { sequence: row.get::<_, i64>(0)?.max(0) as u64, hash: AuditHash(row.get(1)?) })
        })
        .optional()?;
    Ok(row.unwrap_or_default())
}

impl Writer {
    /// Adds a row to the record; gives the new end of the chain.
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
}

impl Reader {
    /// Rows of the record behind `after`, in order.
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

    /// Looks through the whole record; `kept` is the end of the chain as it was kept elsewhere.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn check_audit(&self, kept: Option<AuditHead>) -> Result<AuditCheck, ReadError> {
        const PAGE: usize = 1_000;
        let mut head = AuditHead::default();
        let mut rows = 0;
        let broken = loop {
            let page = self.audit(head.sequence, PAGE)?;
            let wrong = page.iter().find_map(|entry| {
                if entry.sequence != head.sequence + 1 {
                    return Some(format!("row {} is missing", head.sequence + 1));
                }
                if link(head.hash, entry.sequence, &entry.body) != entry.hash {
                    return Some(format!("row {} is not what was recorded", entry.sequence));
                }
                head = AuditHead { sequence: entry.sequence, hash: entry.hash };
                rows += 1;
                None
            });
            if wrong.is_some() || page.len() < PAGE {
                break wrong;
            }
        };
        let given = self.audits_given()?;
        let broken = broken.or_else(|| {
            let missing = |last: u64| format!("rows {} to {last} are missing at the end", head.sequence + 1);
            if given > head.sequence {
                return Some(missing(given));
            }
            let kept = kept.filter(|kept| kept.sequence > 0)?;
            if kept.sequence > head.sequence {
                return Some(missing(kept.sequence));
            }
            // What was added since is not known to the one who kept the end, but the chain leads there.
            let known = self.audit(kept.sequence - 1, 1).ok()?.pop()?;
            (known.hash != kept.hash).then(|| format!("row {} is not the one that was kept", kept.sequence))
        });
        Ok(AuditCheck { rows, head, broken })
    }

    /// The highest number that was ever given.
    fn audits_given(&self) -> Result<u64, ReadError> {
        self.with("audit", |c| {
            c.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")
                .and_then(|mut s| s.query_row([], |row| row.get::<_, i64>(0)).optional())
                .map(|given| given.unwrap_or(0).max(0) as u64)
                .map_err(|source| ReadError::Sqlite { what: "audit", source })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Record {
        dir: tempfile::TempDir,
        writer: Writer,
    }

    impl Record {
        fn of(rows: u64) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = Writer::open(dir.path()).unwrap();
            writer.begin().unwrap();
            for n in 1..=rows {
                assert_eq!(writer.audit(&format!("{{\"n\":{n}}}")).unwrap().sequence, n);
            }
            writer.commit().unwrap();
            Self { dir, writer }
        }

        /// Somebody with the database at hand.
        fn tampered(&self, sql: &str) -> Option<String> {
            Connection::open(self.dir.path().join("capture.db")).unwrap().execute_batch(sql).unwrap();
            self.writer.reader().check_audit(None).unwrap().broken
        }
    }

    #[test]
    fn a_whole_record_is_found_whole() {
        assert_eq!(Record::of(0).writer.reader().check_audit(None).unwrap().broken, None);
        let record = Record::of(2_500);
        let check = record.writer.reader().check_audit(None).unwrap();
        assert_eq!((check.rows, check.head.sequence, check.broken), (2_500, 2_500, None));
        let kept = serde_json::from_str(&serde_json::to_string(&check.head).unwrap()).unwrap();
        assert_eq!(record.writer.reader().check_audit(Some(kept)).unwrap().broken, None);
    }

    #[test]
    fn what_was_done_to_it_is_found() {
        for (sql, expected) in [
            ("DELETE FROM audit WHERE sequence = 3", "row 3 is missing"),
            ("DELETE FROM audit WHERE sequence = 1", "row 1 is missing"),
            ("DELETE FROM audit WHERE sequence > 4", "rows 5 to 6 are missing at the end"),
            ("DELETE FROM audit", "rows 1 to 6 are missing at the end"),
            ("UPDATE audit SET body = '{}' WHERE sequence = 4", "row 4 is not what was recorded"),
            ("UPDATE audit SET sequence = 9 WHERE sequence = 6", "row 6 is missing"),
            (
                "UPDATE audit SET hash = (SELECT hash FROM audit WHERE sequence = 1) WHERE sequence = 2",
                "row 2 is not what was recorded",
            ),
        ] {
            assert_eq!(Record::of(6).tampered(sql).as_deref(), Some(expected), "{sql}");
        }
    }

    #[test]
    fn an_end_that_was_kept_elsewhere_finds_more() {
        let record = Record::of(6);
        let kept = record.writer.reader().check_audit(None).unwrap().head;
        record
            .tampered("DELETE FROM audit WHERE sequence > 4; UPDATE sqlite_sequence SET seq = 4 WHERE name = 'audit'");
        let broken = |kept| record.writer.reader().check_audit(kept).unwrap().broken;
        assert_eq!(broken(None), None);
        assert_eq!(broken(Some(kept)).as_deref(), Some("rows 5 to 6 are missing at the end"));
        let other = AuditHead { sequence: 4, hash: AuditHash([7; 32]) };
        assert_eq!(broken(Some(other)).as_deref(), Some("row 4 is not the one that was kept"));
    }
}
