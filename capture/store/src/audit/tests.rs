use std::{fs, sync::mpsc};

use super::*;
use crate::ReadFailure;

struct Record {
    dir: tempfile::TempDir,
    writer: Writer,
}

impl Record {
    fn of(rows: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Self { writer: Writer::open(dir.path()).unwrap(), dir };
        record.add(rows);
        record
    }

    /// Adds rows as ingest does: the end is saved after the commit.
    fn add(&mut self, rows: u64) {
        let Some(rows) = std::num::NonZeroU64::new(rows) else { return };
        self.writer.begin().unwrap();
        let heads: Vec<_> = (0..rows.get()).map(|n| self.writer.audit(&format!("{{\"n\":{n}}}")).unwrap()).collect();
        self.writer.commit().unwrap();
        write_head(self.dir.path(), *heads.last().unwrap()).unwrap();
    }

    fn execute(&self, sql: &str) {
        Connection::open(self.dir.path().join("capture.db")).unwrap().execute_batch(sql).unwrap();
    }

    fn broken(&self, elsewhere: Option<AuditHead>) -> Option<String> {
        self.writer.reader().verify_audit(elsewhere).unwrap().broken
    }

    /// The result of verifying after someone with access to the database and the file tampered with them.
    fn broken_after(&self, sql: &str) -> Option<String> {
        self.execute(sql);
        self.broken(None)
    }
}

#[test]
fn an_untouched_audit_record_verifies() {
    assert_eq!(Record::of(0).broken(None), None);
    let record = Record::of(2_500);
    let check = record.writer.reader().verify_audit(None).unwrap();
    assert_eq!((check.rows, check.head.sequence, check.broken), (2_500, 2_500, None));
    let kept = serde_json::from_str(&serde_json::to_string(&check.head).unwrap()).unwrap();
    assert_eq!(record.broken(Some(kept)), None);
    drop(record.writer);
    let reopened = Writer::open(record.dir.path()).unwrap();
    assert_eq!(reopened.reader().verify_audit(Some(kept)).unwrap().broken, None);
}

#[test]
fn tampering_with_audit_rows_is_detected() {
    for (sql, expected) in [
        ("DELETE FROM audit WHERE sequence = 3", "row 3 is missing"),
        ("DELETE FROM audit WHERE sequence = 1", "row 1 is missing"),
        ("DELETE FROM audit WHERE sequence > 4", "rows 5 to 6 are missing at the end"),
        ("DELETE FROM audit", "rows 1 to 6 are missing at the end"),
        ("UPDATE audit SET body = '{}' WHERE sequence = 4", "row 4 was changed"),
        ("UPDATE audit SET body = CAST(x'ff' AS TEXT) WHERE sequence = 4", "row 4 was changed"),
        ("UPDATE audit SET hash = x'00' WHERE sequence = 4", "row 4 was changed"),
        ("UPDATE audit SET sequence = 9 WHERE sequence = 6", "row 6 is missing"),
        ("INSERT INTO audit VALUES (-3, '{}', x'00')", "row -3 was inserted"),
        ("INSERT INTO audit VALUES (0, '{}', x'00')", "row 0 was inserted"),
        ("INSERT INTO audit VALUES (7, '{}', x'00')", "row 7 was changed"),
        ("UPDATE audit SET hash = (SELECT hash FROM audit WHERE sequence = 1) WHERE sequence = 2", "row 2 was changed"),
        (
            "UPDATE audit SET sequence = -1 WHERE sequence = 2; UPDATE audit SET sequence = 2 WHERE sequence = 3; \
             UPDATE audit SET sequence = 3 WHERE sequence = -1",
            "row 2 was changed",
        ),
        ("DELETE FROM sqlite_sequence", "the database counts 0 rows, but there are 6"),
        ("UPDATE sqlite_sequence SET seq = NULL WHERE name = 'audit'", "the database counts 0 rows, but there are 6"),
        ("DROP TABLE audit", "its table is missing"),
        // With the counter lowered too, the saved end still detects it.
        (
            "DELETE FROM audit WHERE sequence > 4; UPDATE sqlite_sequence SET seq = 4 WHERE name = 'audit'",
            "rows 5 to 6 are missing at the end",
        ),
        ("DELETE FROM audit; DELETE FROM sqlite_sequence", "rows 1 to 6 are missing at the end"),
    ] {
        assert_eq!(Record::of(6).broken_after(sql).as_deref(), Some(expected), "{sql}");
    }
}

#[test]
fn tampering_with_the_audit_head_file_is_detected() {
    let tampered = |change: fn(&std::path::Path)| {
        let record = Record::of(6);
        change(&record.dir.path().join(HEAD_FILE));
        record.broken(None)
    };
    let missing = "audit.head, which names the last row, is missing";
    assert_eq!(tampered(|file| fs::remove_file(file).unwrap()).as_deref(), Some(missing));
    for text in [&b""[..], b"{", b"{\"sequence\":6}", b"\xff", b"{\"sequence\":-1,\"hash\":\"00\"}"] {
        let record = Record::of(6);
        fs::write(record.dir.path().join(HEAD_FILE), text).unwrap();
        let broken = record.broken(None).unwrap();
        assert!(broken.contains("audit.head does not name the last row of the audit record"), "{text:?}: {broken}");
    }
    let forged = tampered(|file| {
        let hash = "07".repeat(32);
        fs::write(file, format!("{{\"sequence\":4,\"hash\":\"{hash}\"}}")).unwrap();
    });
    assert_eq!(forged.as_deref(), Some("row 4 does not match the hash that was saved for it"));
    let ahead = tampered(|file| {
        let hash = "07".repeat(32);
        fs::write(file, format!("{{\"sequence\":9,\"hash\":\"{hash}\"}}")).unwrap();
    });
    assert_eq!(ahead.as_deref(), Some("rows 7 to 9 are missing at the end"));
}

#[test]
fn an_external_audit_head_detects_truncation_of_database_and_head_file() {
    let record = Record::of(6);
    let reader = record.writer.reader();
    let kept = reader.verify_audit(None).unwrap().head;
    let four = AuditHead { sequence: 4, hash: reader.audit(3, 1).unwrap()[0].hash };
    record.execute("DELETE FROM audit WHERE sequence > 4; UPDATE sqlite_sequence SET seq = 4 WHERE name = 'audit'");
    write_head(record.dir.path(), four).unwrap();
    assert_eq!(record.broken(None), None, "whoever can write both makes them agree");
    assert_eq!(record.broken(Some(four)), None);
    assert_eq!(record.broken(Some(kept)).as_deref(), Some("rows 5 to 6 are missing at the end"));
    let other = AuditHead { sequence: 4, hash: AuditHash([7; 32]) };
    assert_eq!(record.broken(Some(other)).as_deref(), Some("row 4 does not match the hash that was saved for it"));
}

#[test]
fn a_failed_read_is_an_error_and_not_a_verdict() {
    let failure = |record: &Record| match record.writer.reader().verify_audit(None).unwrap_err() {
        VerifyError::Store(error) => error.failure(),
        VerifyError::Head(error) => panic!("{error}"),
    };
    // Another program has locked the whole database.
    let record = Record::of(6);
    let directory = record.dir.path().to_owned();
    drop(record.writer);
    let holder = Connection::open(directory.join("capture.db")).unwrap();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").unwrap();
    let reader = Reader::new(directory.join("capture.db")).with_patience(std::time::Duration::ZERO);
    match reader.verify_audit(None).unwrap_err() {
        VerifyError::Store(error) => assert_eq!(error.failure(), ReadFailure::Locked),
        VerifyError::Head(error) => panic!("{error}"),
    }

    let record = Record::of(6);
    let database = record.dir.path().join("capture.db");
    Writer::checkpoint(&database, true).unwrap();
    let pages = fs::metadata(&database).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&database).unwrap();
    // The first page remains intact: the file is a database with broken tables.
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![0x5a; (pages - 16_384) as usize], 16_384).unwrap();
    assert_eq!(failure(&record), ReadFailure::Damaged);
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x5a; 4096], 0).unwrap();
    assert_eq!(failure(&record), ReadFailure::Damaged);

    let record = Record::of(6);
    let nowhere = Reader::new(record.dir.path().join("nowhere.db"));
    match nowhere.verify_audit(None).unwrap_err() {
        VerifyError::Store(error) => assert_eq!(error.failure(), ReadFailure::Io),
        VerifyError::Head(error) => panic!("{error}"),
    }
    let head = record.dir.path().join(HEAD_FILE);
    fs::remove_file(&head).unwrap();
    fs::create_dir(&head).unwrap();
    assert!(matches!(record.writer.reader().verify_audit(None), Err(VerifyError::Head(HeadError::Read { .. }))));
}

/// Verifies repeatedly while a writer adds rows; returns the faults found and the final number of rows. Each record
/// begins empty, because its first row is a special case.
fn verify_beside_a_writer(runs: usize) -> (Vec<String>, u64) {
    const RUNS_PER_RECORD: usize = 250;
    let (mut wrong, mut added, mut left) = (Vec::new(), 0, runs);
    while left > 0 {
        let round = left.min(RUNS_PER_RECORD);
        left -= round;
        let mut record = Record::of(0);
        let reader = record.writer.reader();
        let (go, gone) = mpsc::sync_channel::<()>(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // A few rows per run, so that the record does not outgrow the writer's pace.
                for () in gone {
                    (1..=3).for_each(|rows| record.add(rows));
                }
            });
            for run in 0..round {
                // At least every tenth run overlaps with the writer.
                if run % 10 == 0 {
                    go.send(()).unwrap();
                } else {
                    go.try_send(()).ok();
                }
                match reader.verify_audit(None) {
                    Ok(check) => wrong.extend(check.broken),
                    Err(error) => wrong.push(error.to_string()),
                }
            }
            drop(go);
        });
        let check = reader.verify_audit(None).unwrap();
        assert_eq!(check.broken, None);
        added += check.rows;
    }
    (wrong, added)
}

#[test]
fn a_concurrent_writer_causes_no_false_alarm() {
    let (wrong, added) = verify_beside_a_writer(500);
    assert_eq!(wrong, Vec::<String>::new());
    assert!(added > 0);
}

#[test]
#[ignore = "takes a minute: cargo nextest run -p store --run-ignored only ten_thousand"]
fn a_concurrent_writer_causes_no_false_alarm_in_ten_thousand_runs() {
    let (wrong, added) = verify_beside_a_writer(10_000);
    eprintln!("10000 runs beside a writer that added {added} rows: {} false alarms", wrong.len());
    assert_eq!(wrong, Vec::<String>::new());
}
