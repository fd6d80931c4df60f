use std::path::Path;

use events::{Event, EventId, Identity, Kind, Origin, Payload, Source, UserPrompt};

use super::*;
use crate::{PackedText, TOMBSTONES_FILE};

fn session_id(name: &str) -> SessionId {
    SessionId::mint(Timestamp::from_millisecond(5), Provider::Claude, name)
}

/// Adds a session with these prompts, short and long ones.
fn add(writer: &mut Writer, name: &str, texts: &[String]) -> KnownSession {
    writer.begin().unwrap();
    let row = writer.add_session(session_id(name), Provider::Claude, name).unwrap();
    for (n, text) in (1..).zip(texts) {
        let mut text = text.clone();
        let packed = PackedText::split(&mut text);
        let position = writer.position().unwrap() + 1;
        let event = Event {
            position,
            id: EventId::from_bits(u128::from(position)),
            session_id: session_id(name),
            sequence: n,
            provider: Provider::Claude,
            provider_session_id: name.into(),
            source: Source::Transcript,
            created_at: Timestamp::from_millisecond(1_000),
            observed_at: Timestamp::from_millisecond(1_000),
            turn_id: None,
            parent_id: None,
            agent_id: None,
            confidence: events::Confidence::High,
            severity: None,
            text: Some(text),
            text_ref: packed.as_ref().map(PackedText::reference),
            payload: Payload::from(UserPrompt::default()),
            origin: Origin::Derived,
            derived: false,
            history: false,
        };
        writer.append(row, &event, packed.as_ref()).unwrap();
        writer.learn(Identity::of(Provider::Claude, "test", &[name.as_bytes(), &n.to_le_bytes()]), row).unwrap();
    }
    let view = format!(r#"{{"title":"{}"}}"#, texts.first().map_or("", String::as_str));
    writer.put_session(row, Timestamp::from_millisecond(1_000), &view, &view).unwrap();
    writer.commit().unwrap();
    writer.sessions().unwrap().into_iter().find(|known| &*known.provider_session_id == name).unwrap()
}

/// Erases as the service's eraser does.
fn erase(writer: &mut Writer) {
    let pending = writer.reader().erasing().unwrap();
    let rows: Vec<SessionRow> = pending.iter().map(|pending| pending.row).collect();
    let erased: Vec<_> = pending.iter().map(|pending| (pending.row, pending.kind)).collect();
    let (texts, until) = writer.reader().texts_only_of(&rows).unwrap();
    writer.erase_texts(&texts, until).unwrap();
    while writer.erase_events(&rows, 3).unwrap() > 0 {}
    writer.compact().unwrap();
    writer.overwrite_facts(&erased).unwrap();
    assert!(writer.empty_log().unwrap());
    writer.finish_erasing(&erased).unwrap();
}

fn remove(writer: &mut Writer, known: &KnownSession, kind: RemovalKind) {
    writer.begin().unwrap();
    removed(writer, known, kind);
    writer.commit().unwrap();
}

/// Removes a session within the open transaction.
fn removed(writer: &mut Writer, known: &KnownSession, kind: RemovalKind) {
    let about = About { names: vec!["planted about".into()], ..About::default() };
    let removal = SessionRemoval { known, kind, about: &about, at: Timestamp::from_millisecond(7) };
    writer.remove_sessions(&[removal]).unwrap();
}

fn holds(directory: &Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if bytes.windows(word.len()).any(|window| window == word.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn texts(word: &str) -> Vec<String> {
    (0..9).map(|n| format!("{word} {n} {}", "filling ".repeat(if n % 3 == 0 { 900 } else { 3 }))).collect()
}

#[test]
fn forgetting_a_session_erases_all_its_data_and_no_other_session() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    let other = add(&mut writer, "other", &texts("innocent"));
    let mut planted = texts("plantedword");
    // A text that both sessions have.
    planted.push(texts("innocent").remove(0));
    let known = add(&mut writer, "plantedname", &planted);
    let before = writer.reader().log(0, 100, Some(other.id)).unwrap();
    let position = writer.position().unwrap();
    assert!(!holds(dir.path(), "plantedword").is_empty());
    remove(&mut writer, &known, RemovalKind::Forgotten);
    assert_eq!(writer.reader().session_json(known.id).unwrap(), None);
    assert!(writer.reader().events(known.id, 0, 9, &[Kind::UserPrompt]).unwrap().is_empty());
    erase(&mut writer);
    for word in ["plantedword", "plantedname", "planted about"] {
        assert_eq!(holds(dir.path(), word), Vec::<String>::new(), "{word}");
    }
    assert_eq!(writer.reader().log(0, 100, Some(other.id)).unwrap(), before);
    let shared = before[0].text_ref.clone().unwrap();
    assert!(writer.reader().text(&shared.hash).unwrap().unwrap().starts_with("innocent 0"));
    assert_eq!(writer.position().unwrap(), position, "positions are not given twice");
    assert_eq!(writer.reader().session_count().unwrap(), 1);
    assert_eq!(writer.removed(Provider::Claude, "plantedname"), Some(RemovalKind::Forgotten));
    assert_eq!(writer.removed(Provider::Codex, "plantedname").or(writer.removed(Provider::Claude, "other")), None);
    assert_eq!(writer.reader().erasing().unwrap(), []);
    assert_eq!(writer.reader().verify_audit(None).unwrap().broken, None);
    // A copy of its file contains the same records, which are known.
    let identity = Identity::of(Provider::Claude, "test", &[b"plantedname", &1_u64.to_le_bytes()]);
    assert!(writer.known(identity).unwrap().is_some());
    drop(writer);
    let writer = Writer::open(dir.path()).unwrap();
    assert_eq!(writer.removed(Provider::Claude, "plantedname"), Some(RemovalKind::Forgotten));
    assert_eq!(writer.position().unwrap(), position);
}

#[test]
fn an_interrupted_removal_is_completed_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    let known = add(&mut writer, "s", &texts("plantedword"));
    // Killed between writing the list and the transaction.
    writer.begin().unwrap();
    removed(&mut writer, &known, RemovalKind::Forgotten);
    drop(writer);
    let mut writer = Writer::open(dir.path()).unwrap();
    let pending = writer.reader().erasing().unwrap();
    assert_eq!((pending.len(), pending[0].id, pending[0].kind), (1, known.id, RemovalKind::Forgotten));
    // Killed while erasing texts, and while erasing events.
    let (texts, until) = writer.reader().texts_only_of(&[pending[0].row]).unwrap();
    assert_eq!(texts.len(), 3);
    writer.erase_texts(&texts[..1], until).unwrap();
    drop(writer);
    let mut writer = Writer::open(dir.path()).unwrap();
    let (texts, until) = writer.reader().texts_only_of(&[pending[0].row]).unwrap();
    writer.erase_texts(&texts, until).unwrap();
    writer.erase_events(&[pending[0].row], 2).unwrap();
    drop(writer);
    let mut writer = Writer::open(dir.path()).unwrap();
    erase(&mut writer);
    let rows: i64 = writer.connection().query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!((rows, holds(dir.path(), "plantedword")), (0, Vec::new()));
}

#[test]
fn a_restored_or_new_database_honours_earlier_removals() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    let known = add(&mut writer, "s", &texts("plantedword"));
    let copy = dir.path().join("old.db");
    crate::backup(writer.path(), &copy, false).unwrap();
    remove(&mut writer, &known, RemovalKind::Forgotten);
    erase(&mut writer);
    drop(writer);
    crate::restore(dir.path(), &copy).unwrap();
    std::fs::remove_file(&copy).unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    assert_eq!(writer.reader().session_json(known.id).unwrap(), None, "it is removed from what was restored");
    erase(&mut writer);
    assert_eq!(holds(dir.path(), "plantedword"), Vec::<String>::new());
    drop(writer);
    std::fs::remove_file(dir.path().join("capture.db")).unwrap();
    assert!(Writer::open(dir.path()).unwrap().removed(Provider::Claude, "s").is_some());
    assert!(dir.path().join(TOMBSTONES_FILE).exists());
}

#[test]
fn pruning_a_session_keeps_its_audit_rows_and_frees_disk_space() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    let long: Vec<String> = (0..400).map(|n| format!("{n} {}", "x".repeat(900))).collect();
    let known = add(&mut writer, "s", &long);
    let (events, bytes) = writer.reader().size_of(known.id).unwrap();
    assert!(events == 400 && bytes > 400 * 900, "{events} {bytes}");
    assert_eq!(writer.give_back().unwrap(), None, "it was never compacted");
    let compacted = writer.compact().unwrap();
    let body = format!(r#"{{"at":"t","what":"decided","approval":{{"session_id":"{}"}}}}"#, known.id);
    writer.audit(&body).unwrap();
    remove(&mut writer, &known, RemovalKind::Pruned);
    while writer.erase_events(&[known.row], 100).unwrap() > 0 {}
    while writer.give_back().unwrap().unwrap() > 0 {}
    assert!(writer.empty_log().unwrap());
    let after = std::fs::metadata(writer.path()).unwrap().len();
    assert!(after + 400 * 900 < compacted.after, "{after} {compacted:?}");
    assert_eq!(writer.reader().audit(0, 9).unwrap()[0].body, body);
}

#[test]
fn readers_stop_seeing_a_removed_session_when_the_removal_commits() {
    for kind in [RemovalKind::Forgotten, RemovalKind::Pruned] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(dir.path()).unwrap();
        let other = add(&mut writer, "other", &texts("innocent"));
        let known = add(&mut writer, "s", &texts("plantedword"));
        let reader = writer.reader();
        let end = writer.position().unwrap();
        let sessions = |reader: &Reader| {
            let of_kinds = reader.log_of(0, end, 100, &[Kind::UserPrompt]).unwrap();
            let logs = [reader.log(0, 100, None).unwrap(), reader.live_log(0, end, 100).unwrap(), of_kinds];
            let one_by_one = (1..=end).filter_map(|position| reader.event_at(position).unwrap()).collect();
            logs.into_iter()
                .chain([one_by_one])
                .map(|log: Vec<Event>| {
                    let mut ids: Vec<SessionId> = log.iter().map(|event| event.session_id).collect();
                    ids.dedup();
                    ids
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(sessions(&reader), vec![vec![other.id, known.id]; 4]);
        writer.begin().unwrap();
        removed(&mut writer, &known, kind);
        assert_eq!(sessions(&reader), vec![vec![other.id, known.id]; 4], "{kind:?}: not before the commit");
        writer.commit().unwrap();
        assert_eq!(sessions(&reader), vec![vec![other.id]; 4], "{kind:?}");
        assert_eq!(reader.erasing_ids().unwrap(), [known.id]);
        drop(writer);
        let mut writer = Writer::open(dir.path()).unwrap();
        assert_eq!(sessions(&writer.reader()), vec![vec![other.id]; 4], "{kind:?}: after a restart");
        erase(&mut writer);
        assert_eq!(sessions(&writer.reader()), vec![vec![other.id]; 4], "{kind:?}: when it is erased");
        assert!(writer.reader().erasing_ids().unwrap().is_empty());
    }
}

#[test]
fn a_rolled_back_removal_keeps_the_session_after_a_restart() {
    for kind in [RemovalKind::Forgotten, RemovalKind::Pruned] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(dir.path()).unwrap();
        let (known, gone) = (add(&mut writer, "s", &texts("one")), add(&mut writer, "gone", &texts("two")));
        remove(&mut writer, &gone, RemovalKind::Forgotten);
        writer.begin().unwrap();
        removed(&mut writer, &known, kind);
        writer.rollback();
        for restarted in [false, true] {
            if restarted {
                drop(writer);
                writer = Writer::open(dir.path()).unwrap();
            }
            assert!(writer.reader().session_json(known.id).unwrap().is_some(), "{kind:?}");
            assert_eq!(writer.removed(Provider::Claude, "s"), None, "{kind:?}");
            assert_eq!(writer.removed(Provider::Claude, "gone"), Some(RemovalKind::Forgotten));
        }
    }
}

#[test]
fn a_pruned_session_can_be_forgotten() {
    for was_erased in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(dir.path()).unwrap();
        let known = add(&mut writer, "plantedname", &texts("plantedword"));
        let other = add(&mut writer, "other", &texts("innocent"));
        for of in [&known, &other] {
            let body = format!(
                r#"{{"at":"t","what":"decided","approval":{{"session_id":"{}","command":"of {}"}}}}"#,
                of.id, of.provider_session_id
            );
            writer.audit(&body).unwrap();
        }
        remove(&mut writer, &known, RemovalKind::Pruned);
        let while_pruned = writer.reader().erasing().unwrap();
        if was_erased {
            erase(&mut writer);
        }
        assert_eq!(writer.pruned_id(Provider::Claude, "plantedname").unwrap(), Some(known.id));
        let pruned = writer.reader().pruned().unwrap().pop().unwrap();
        assert_eq!((pruned.known.id, pruned.known.row), (known.id, known.row));
        assert_eq!(pruned.about.names, ["planted about"]);
        remove(&mut writer, &pruned.known, RemovalKind::Forgotten);
        if !was_erased {
            // Erasing begun for the pruned session does not count for the forgotten one.
            let begun: Vec<_> = while_pruned.iter().map(|pending| (pending.row, pending.kind)).collect();
            writer.overwrite_facts(&begun).unwrap();
            writer.finish_erasing(&begun).unwrap();
            let left = writer.reader().erasing().unwrap();
            assert_eq!(
                (left[0].kind, &*left[0].about.names),
                (RemovalKind::Forgotten, &["planted about".to_owned()][..])
            );
        }
        erase(&mut writer);
        for word in ["plantedword", "plantedname", "planted about", &known.id.to_string()] {
            assert_eq!(holds(dir.path(), word), Vec::<String>::new(), "{word}");
        }
        assert!(writer.reader().pruned().unwrap().is_empty());
        assert_eq!(writer.removed(Provider::Claude, "plantedname"), Some(RemovalKind::Forgotten));
        assert_eq!(writer.reader().verify_audit(None).unwrap().broken, None);
        assert!(writer.reader().audit(0, 9).unwrap()[1].body.contains("of other"), "the other one's stays");
    }
}

#[test]
fn removals_made_after_a_backup_apply_to_the_restored_database() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    let (old, done) = (add(&mut writer, "old", &texts("one")), add(&mut writer, "done", &texts("two")));
    remove(&mut writer, &done, RemovalKind::Pruned);
    erase(&mut writer);
    let copy = dir.path().join("old.db");
    crate::backup(writer.path(), &copy, false).unwrap();
    remove(&mut writer, &old, RemovalKind::Pruned);
    let pruned = writer.reader().pruned().unwrap();
    let done = pruned.iter().find(|pruned| pruned.known.id == done.id).unwrap();
    remove(&mut writer, &done.known, RemovalKind::Forgotten);
    erase(&mut writer);
    drop(writer);
    crate::restore(dir.path(), &copy).unwrap();
    let writer = Writer::open(dir.path()).unwrap();
    let mut kinds: Vec<_> = writer.reader().erasing().unwrap().iter().map(|left| (left.id, left.kind)).collect();
    kinds.sort_by_key(|(id, _)| *id != old.id);
    assert_eq!(kinds, [(old.id, RemovalKind::Pruned), (done.known.id, RemovalKind::Forgotten)]);
    let pruned: Vec<_> = writer.reader().pruned().unwrap().iter().map(|pruned| pruned.known.id).collect();
    assert_eq!(pruned, [old.id], "it can still be forgotten");
}
