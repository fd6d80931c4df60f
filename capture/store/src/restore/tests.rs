use std::os::unix::fs::PermissionsExt;

use events::{Provider, SessionId, Timestamp};

use super::*;
use crate::Writer;

fn store_with(dir: &Path, sessions: &[&str]) -> Writer {
    let mut writer = Writer::open(dir).unwrap();
    writer.begin().unwrap();
    for name in sessions {
        let id = SessionId::mint(Timestamp::from_millisecond(5), Provider::Claude, name);
        let row = writer.add_session(id, Provider::Claude, name).unwrap();
        writer.put_session(row, Timestamp::from_millisecond(5), "{}", "{}").unwrap();
    }
    writer.audit("{}").unwrap();
    writer.commit().unwrap();
    writer
}

#[test]
fn a_backup_taken_during_a_write_transaction_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = store_with(dir.path(), &["a", "b"]);
    let target = dir.path().join("kept.db");
    writer.begin().unwrap();
    let facts = backup(writer.path(), &target, false).unwrap();
    writer.rollback();
    assert_eq!((facts.sessions, facts.events, facts.audit.sequence), (2, 0, 1));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(inspect(&target).unwrap(), facts);
    let error = backup(writer.path(), &target, false).unwrap_err();
    assert!(matches!(&error, BackupError::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists));
    assert_eq!(backup(writer.path(), &target, true).unwrap().sessions, 2);
    assert!(!dir.path().join("kept.db.part").exists());

    assert!(matches!(restore(dir.path(), &target), Err(BackupError::Lock(_))), "a server has it");
    writer.audit("{}").unwrap();
    let log = writer.reader().log_id().unwrap();
    drop(writer);
    let other = tempfile::tempdir().unwrap();
    drop(store_with(other.path(), &["c", "d", "e"]));
    let restored = restore(other.path(), &target).unwrap();
    assert_eq!((restored.facts.sessions, restored.replaced.unwrap().sessions), (2, 3));
    let writer = Writer::open(other.path()).unwrap();
    assert_eq!(writer.reader().session_count().unwrap(), 2);
    assert_eq!(writer.reader().verify_audit(None).unwrap().broken, None);
    assert_ne!(writer.reader().log_id().unwrap(), log);
    let left: Vec<_> = fs::read_dir(other.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("db.re")), "{left:?}");
}

#[test]
fn restoring_an_invalid_backup_leaves_the_database_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let writer = store_with(dir.path(), &["a"]);
    let target = dir.path().join("kept.db");
    backup(writer.path(), &target, false).unwrap();
    drop(writer);
    let before = fs::read(dir.path().join("capture.db")).unwrap();
    let whole = fs::read(&target).unwrap();
    let mut damaged = whole.clone();
    damaged[4096..8192].fill(0xff);
    for (bytes, why) in
        [(&[][..], "empty"), (b"no database at all, but long enough to be looked at", "text"), (&damaged, "damaged")]
    {
        fs::write(&target, bytes).unwrap();
        assert!(restore(dir.path(), &target).is_err(), "{why}");
        assert_eq!(fs::read(dir.path().join("capture.db")).unwrap(), before, "{why}");
    }
    assert!(matches!(restore(dir.path(), &dir.path().join("none")), Err(BackupError::File { .. })));
    fs::write(&target, &whole).unwrap();
    restore(dir.path(), &target).unwrap();
}
