//! Damaged rows and files.

use std::{fs, path::PathBuf};

use super::*;
use crate::{DatabaseCheck, EntityFilter, check, rebuild::put_aside};

/// A store with two prompts in the log.
fn with_prompts() -> Fresh {
    let mut store = Fresh::new();
    store.commit(|writer, row| {
        for n in 1..=2_u64 {
            let mut prompt = event(n, UserPrompt::default());
            prompt.text = Some(format!("prompt {n}"));
            writer.append(row, &prompt, None).unwrap();
        }
    });
    store
}

fn finding(session: SessionId) -> Finding {
    Finding { session_id: session, ..kinds::finding() }
}

#[test]
fn unknown_or_damaged_events_are_read_as_unrecognized_and_counted() {
    for (damage, raw_kind) in [
        ("UPDATE events SET kind = 250 WHERE sequence = 1", "kind 250"),
        ("UPDATE events SET data = '{' WHERE sequence = 1", "damaged"),
        ("UPDATE events SET data = CAST(x'ff7b' AS TEXT) WHERE sequence = 1", "damaged"),
    ] {
        let store = with_prompts();
        store.writer.connection.execute_batch(damage).unwrap();
        let reader = store.writer.reader();
        for _ in 0..2 {
            let log = reader.events(store.session.id, 0, 9, &[]).unwrap();
            let Payload::Unrecognized(first) = &log[0].payload else { panic!("{damage}: {:?}", log[0]) };
            assert_eq!((&*first.raw_kind, log[0].text.as_deref()), (raw_kind, Some("prompt 1")), "{damage}");
            assert!(first.issue.is_some());
            assert!(matches!(log[1].payload, Payload::UserPrompt(_)));
        }
        assert_eq!(reader.damaged().count(), 1, "{damage}: once, however often it is read");
        assert!(reader.damaged().first().unwrap().contains("position 1"));
    }
}

#[test]
fn invalid_column_values_do_not_stop_reading_the_log() {
    for damage in [
        "id = x'00'",
        "source = 99",
        "text = CAST(x'c328' AS TEXT)",
        "agent = CAST(x'ff' AS TEXT)",
        "text_hash = x'01'",
        "parent = x''",
    ] {
        let store = with_prompts();
        store.writer.connection.execute_batch(&format!("UPDATE events SET {damage} WHERE sequence = 1")).unwrap();
        let log = store.writer.reader().log(0, 9, None).unwrap();
        assert_eq!(log.len(), 2, "{damage}");
        assert_eq!(log[1].text.as_deref(), Some("prompt 2"));
        assert_eq!(store.writer.reader().damaged().count(), 1, "{damage}");
    }
}

#[test]
fn damaged_views_snapshots_and_findings_are_skipped() {
    let mut store = with_prompts();
    let finding = finding(store.session.id);
    store.commit(|writer, row| {
        writer.put_session(row, Timestamp::from_millisecond(9), "{\"id\":", "{").unwrap();
        writer.put_entity(row, &finding).unwrap();
    });
    let (reader, row) = (store.writer.reader(), store.session.row);
    assert!(store.writer.snapshot(row).unwrap().is_none());
    assert!(reader.session(store.session.id).unwrap().is_none());
    let all = SessionFilter { before: None, limit: 9 };
    assert_eq!(reader.sessions(&all).unwrap(), []);
    assert_eq!(reader.views(&all).unwrap()[0].0, store.session.id, "so that it can be made again");
    let filter = EntityFilter { states: None, session: None, behind: None, limit: 9 };
    assert_eq!(reader.entities::<Finding>(&filter).unwrap(), [finding]);
    store.writer.connection.execute_batch("UPDATE findings SET body = '['").unwrap();
    assert_eq!(reader.entities::<Finding>(&filter).unwrap(), []);
    assert_eq!(reader.damaged().count(), 2, "a session and a finding");
    assert_eq!(store.writer.last_sequence(row).unwrap(), 2);
}

#[test]
fn a_damaged_session_row_does_not_prevent_opening_the_store() {
    let store = with_prompts();
    store
        .writer
        .connection
        .execute_batch("UPDATE sessions SET id = x'05', provider = 999, provider_session_id = CAST(x'ff' AS TEXT)")
        .unwrap();
    let store = store.reopened();
    let sessions = store.writer.sessions().unwrap();
    assert_eq!((sessions.len(), sessions[0].provider), (1, Provider::Unknown));
}

/// Overwrites the root page of this table with garbage.
fn damage(store: Fresh, table: &str) -> (tempfile::TempDir, PathBuf) {
    let Fresh { dir, writer, .. } = store;
    let sql = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'");
    let page: usize = writer.connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize;
    drop(writer);
    let path = dir.path().join("capture.db");
    Writer::checkpoint(&path, true).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[(page - 1) * 4_096..][..4_096].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    // As after a kill.
    fs::write(crate::lock_file(dir.path()), "1\n").unwrap();
    (dir, path)
}

#[test]
fn a_rebuilt_database_keeps_findings_audit_rows_and_session_ids() {
    for table in ["known_batches", "events_by_session", "turns", "files", "sessions"] {
        let mut store = with_prompts();
        let finding = finding(store.session.id);
        let label = Annotation { topic: Topic::Label, value: "team=web".into() };
        store.commit(|writer, row| {
            writer.put_entity(row, &finding).unwrap();
            writer.append(row, &event(3, label.clone()), None).unwrap();
            for n in 0..50 {
                writer.audit(&format!("{{\"n\":{n}}}")).unwrap();
            }
        });
        let session = store.session.id;
        let (dir, path) = damage(store, table);
        assert!(matches!(check::full(&path).unwrap(), DatabaseCheck::Damaged(_)), "{table}");
        let writer = Writer::open(dir.path()).unwrap();
        let rebuilt = writer.rebuilt().unwrap_or_else(|| panic!("{table}: not rebuilt"));
        assert_eq!(put_aside(dir.path()), std::slice::from_ref(&rebuilt.aside));
        assert_eq!(rebuilt.lost, 0, "{table}: {rebuilt:?}");
        assert_eq!(check::full(&path).unwrap(), DatabaseCheck::Whole);
        let reader = writer.reader();
        let filter = EntityFilter { states: None, session: None, behind: None, limit: 9 };
        assert_eq!(reader.entities::<Finding>(&filter).unwrap(), [finding]);
        assert_eq!(reader.audit(0, 99).unwrap().len(), 50);
        assert_eq!(writer.sessions().unwrap()[0].id, session, "it keeps its id");
        let log = reader.events(session, 0, 9, &[]).unwrap();
        assert_eq!(log.len(), 3, "{table}: no file has them, so they are kept");
        drop((writer, reader));
        let again = Writer::open(dir.path()).unwrap();
        assert_eq!(again.rebuilt(), None, "once");
    }
}

#[test]
fn a_database_without_a_header_is_moved_aside_after_a_clean_close() {
    let store = with_prompts();
    let Fresh { dir, writer, .. } = store;
    drop(writer);
    let path = dir.path().join("capture.db");
    Writer::checkpoint(&path, true).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[..100].fill(0);
    fs::write(&path, &bytes).unwrap();
    let writer = Writer::open(dir.path()).unwrap();
    assert_eq!(fs::read(&writer.rebuilt().unwrap().aside).unwrap(), bytes);
    assert_eq!(writer.position().unwrap(), 0);
}

#[test]
fn begin_reports_a_lock_of_another_program_within_two_seconds() {
    let mut store = with_prompts();
    let other = Connection::open(store.writer.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = std::time::Instant::now();
    let refused = store.writer.begin().unwrap_err();
    assert_eq!(refused.failure(), crate::ReadFailure::Locked);
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    other.execute_batch("COMMIT").unwrap();
    store.writer.begin().unwrap();
}
