use std::{fs, io::Write as _};

use tempfile::TempDir;

use super::*;
use crate::{context::Context, json::Object};

fn stamp(n: u32) -> Stamp {
    Stamp { now_ms: 1_767_323_045_000 + i64::from(n), random: (u128::from(n) << 70) | (u128::from(n) * 7919) }
}

fn said(role: &str, text: &str) -> NewEntry {
    NewEntry::Message(Object::new().with("role", role).with("content", text).with("timestamp", 5_i64))
}

/// A saved session with two messages.
fn started(directory: &TempDir) -> Session {
    let mut session = Session::create(directory.path(), "/proj", None, stamp(1));
    session.append(said("user", "question é😀"), stamp(2)).unwrap();
    session.append(said("assistant", "answer"), stamp(3)).unwrap();
    session
}

fn open(path: &Path, n: u32) -> Session {
    Session::open(path, "/proj", stamp(n)).unwrap()
}

#[test]
fn session_directories_are_created_with_mode_0700() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new().unwrap();
    let below = directory.path().join("sessions/--proj--");
    let mut session = Session::create(&below, "/proj", None, stamp(1));
    session.append(said("user", "hi"), stamp(2)).unwrap();
    for path in [&below, below.parent().unwrap()] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", path.display());
    }
}

#[test]
fn the_file_is_created_with_the_first_user_message() {
    let directory = TempDir::new().unwrap();
    let mut session = Session::create(directory.path(), "/proj", None, stamp(1));
    let model = NewEntry::ModelChange { provider: "p".into(), model: "m".into() };
    session.append(model, stamp(2)).unwrap();
    assert!(!session.path().exists());
    session.append(said("user", "hi"), stamp(3)).unwrap();
    let path = session.path().to_owned();
    let entries = session.tree().entries().to_vec();
    drop(session);
    assert_eq!(open(&path, 9).tree().entries(), entries);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_kill_at_any_byte_of_an_append_loses_only_that_entry() {
    let directory = TempDir::new().unwrap();
    let mut session = started(&directory);
    let path = session.path().to_owned();
    let before = fs::read(&path).unwrap().len();
    session.append(said("user", "the last é😀\n"), stamp(4)).unwrap();
    let known = session.tree().entries().to_vec();
    drop(session);
    let whole = fs::read(&path).unwrap();
    for len in before..=whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let mut session = open(&path, 5);
        let there = session.tree().entries().len();
        // The entry exists if all of it is in the file, with or without the newline.
        assert_eq!(there, if len >= whole.len() - 1 { 3 } else { 2 }, "{len}");
        assert_eq!(session.tree().entries(), &known[..there]);
        assert_eq!(fs::read(&path).unwrap(), &whole[..len], "opening changes nothing");
        session.append(said("user", "after"), stamp(6)).unwrap();
        let entries = session.tree().entries().to_vec();
        drop(session);
        let session = open(&path, 7);
        assert_eq!(session.tree().entries(), entries, "{len}");
        assert_eq!(session.tree().leaf_path().len(), there + 1);
    }
}

#[test]
fn a_second_writer_is_refused_while_the_session_is_open() {
    let directory = TempDir::new().unwrap();
    let session = started(&directory);
    let path = session.path().to_owned();
    assert!(matches!(Session::open(&path, "/proj", stamp(5)), Err(SessionError::Locked { .. })));
    drop(session);
    open(&path, 6);
}

#[test]
fn an_append_fails_if_another_program_changed_the_file() {
    let directory = TempDir::new().unwrap();
    let mut session = started(&directory);
    let mut bytes = fs::read(session.path()).unwrap();
    bytes.extend(b"{}\n");
    fs::write(session.path(), &bytes).unwrap();
    let known = session.tree().entries().to_vec();
    let leaf = session.tree().leaf_id().map(str::to_owned);
    assert!(matches!(session.append(said("user", "x"), stamp(5)), Err(SessionError::Changed { .. })));
    // A failed write has no effect.
    assert_eq!(session.tree().entries(), known);
    assert_eq!(session.tree().leaf_id().map(str::to_owned), leaf);
    assert_eq!(fs::read(session.path()).unwrap(), bytes);
}

#[test]
fn a_file_that_is_not_a_session_is_refused_and_left_unchanged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.jsonl");
    fs::write(&path, "somebody else's\n").unwrap();
    assert!(matches!(Session::open(&path, "/proj", stamp(1)), Err(SessionError::Refused { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"somebody else's\n");
    assert!(matches!(Session::open(&directory.path().join("no"), "/", stamp(1)), Err(SessionError::Io { .. })));
}

#[test]
fn an_empty_file_becomes_a_session() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.jsonl");
    fs::write(&path, "").unwrap();
    let mut session = open(&path, 1);
    session.append(said("user", "hi"), stamp(2)).unwrap();
    drop(session);
    assert_eq!(open(&path, 3).tree().entries().len(), 1);
}

#[test]
fn a_file_of_an_older_version_is_rewritten_at_the_first_append() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.jsonl");
    let old = "{\"type\":\"session\",\"id\":\"s\"}\nbroken\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"1\"}}";
    fs::write(&path, old).unwrap();
    let mut session = open(&path, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), old);
    session.append(said("user", "2"), stamp(2)).unwrap();
    session.append(said("user", "3"), stamp(3)).unwrap();
    drop(session);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\nbroken\n"), "what could not be read is still there");
    let session = open(&path, 4);
    assert_eq!(session.tree().leaf_path().len(), 3);
    assert_eq!(session.tree().header().fields().get("version"), Some(&3_u64.into()));
}

#[test]
fn a_symlink_is_preserved_when_its_file_is_rewritten() {
    let directory = TempDir::new().unwrap();
    let (file, link) = (directory.path().join("file.jsonl"), directory.path().join("link.jsonl"));
    fs::write(&file, "{\"type\":\"session\",\"id\":\"s\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\"}}\n")
        .unwrap();
    std::os::unix::fs::symlink("file.jsonl", &link).unwrap();
    let mut session = open(&link, 1);
    session.save().unwrap();
    session.append(said("user", "more"), stamp(2)).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let there = Session::read(&file).unwrap();
    assert_eq!((there.migrated, there.entries.len()), (false, 2));
}

#[test]
fn a_reopened_session_has_the_same_leaf() {
    let directory = TempDir::new().unwrap();
    let mut session = started(&directory);
    let path = session.path().to_owned();
    let first = session.tree().entries()[0].id().unwrap().to_owned();
    session.branch(&first, stamp(5)).unwrap();
    drop(session);
    let mut session = open(&path, 6);
    assert_eq!(session.tree().leaf_id(), Some(first.as_str()));
    session.reset_leaf(stamp(7)).unwrap();
    drop(session);
    assert_eq!(open(&path, 8).tree().leaf_id(), None);
}

#[test]
fn forks_branches_and_copies_are_separate_files() {
    let directory = TempDir::new().unwrap();
    let mut session = started(&directory);
    session.append(said("user", "again"), stamp(4)).unwrap();
    let leaf = session.tree().leaf_id().unwrap().to_owned();
    let forked = session.forked(&leaf, stamp(5)).unwrap();
    assert_eq!(forked.text, "again");
    assert_eq!(forked.session.tree().header().parent_session(), session.path().to_str());
    let whole = session.branched(&leaf, stamp(6)).unwrap();
    assert_eq!(Context::of(whole.tree(), whole.tree().leaf()).messages().count(), 3);
    let elsewhere = session.copied(&directory.path().join("b"), "/b", stamp(7)).unwrap();
    assert_eq!(elsewhere.tree().header().cwd(), Some("/b"));
    let all = crate::sessions::list(directory.path(), Some("/proj")).unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(all[0].first_message.as_deref(), Some("question é😀"));
    assert!(crate::sessions::most_recent(directory.path(), Some("/proj")).unwrap().is_some());
    assert_eq!(crate::sessions::most_recent(directory.path(), Some("/c")).unwrap(), None);
    drop((session, whole, forked));
    let recent = Session::continue_recent(directory.path(), "/proj", true, stamp(8)).unwrap();
    assert!(!recent.tree().entries().is_empty());
    let fresh = Session::continue_recent(&directory.path().join("none"), "/proj", true, stamp(8)).unwrap();
    assert!(fresh.tree().entries().is_empty() && !fresh.is_saved());
    assert_eq!(crate::sessions::list(&directory.path().join("none"), None).unwrap(), []);
}

#[test]
fn synced_appends_are_stored_like_other_appends() {
    let directory = TempDir::new().unwrap();
    let mut session = Session::create(directory.path(), "/proj", None, stamp(1));
    session.append_synced(said("user", "one"), stamp(2)).unwrap();
    session.append_synced(said("assistant", "two"), stamp(3)).unwrap();
    session.append(said("user", "three"), stamp(4)).unwrap();
    let path = session.path().to_owned();
    // Another program writes: nothing is appended.
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{}\n").unwrap();
    assert!(session.append_synced(said("assistant", "four"), stamp(5)).is_err());
    assert_eq!(session.tree().entries().len(), 3);
    drop(session);
    assert_eq!(open(&path, 6).tree().entries().iter().filter(|e| e.message().is_some()).count(), 3);
}

#[test]
fn released_texts_are_read_back_from_the_file() {
    let directory = TempDir::new().unwrap();
    let mut session = started(&directory);
    let text = "long ".repeat(10_000);
    session.append(said("user", &text), stamp(4)).unwrap();
    let state = Object::new().with("text", text.as_str());
    let own = NewEntry::Custom { custom_type: "state".into(), data: Some(state.into()) };
    session.append(own, stamp(5)).unwrap();
    session.append(said("system", "be good"), stamp(6)).unwrap();
    let entries = session.tree().entries().to_vec();
    session.release(usize::MAX);
    assert_eq!(session.tree().entries(), entries, "there is room for everything");
    session.release(1000);
    let released: Vec<bool> = session.tree().entries().iter().map(Entry::is_released).collect();
    assert_eq!(released, [true, true, true, true, false]);
    assert!(session.tree().entries().iter().all(|entry| !entry.to_line().contains("long")));
    assert_eq!(session.whole_tree().unwrap().entries(), entries);
    let roles =
        |session: &Session| session.tree().leaf_path().into_iter().map(|e| e.role().map(str::to_owned)).collect();
    let known: Vec<Option<String>> = roles(&session);
    assert_eq!(known, entries.iter().map(|entry| entry.role().map(str::to_owned)).collect::<Vec<_>>());
    // Later entries are appended as usual, and other files get all texts.
    session.append(said("user", "more"), stamp(7)).unwrap();
    let id = session.tree().leaf_id().unwrap().to_owned();
    let branched = session.branched(&id, stamp(8)).unwrap();
    assert_eq!(branched.tree().entries()[..5], entries);
    assert!(session.forked(entries[2].id().unwrap(), stamp(9)).unwrap().text == text);
    let leaf = entries[0].id().unwrap();
    session.branch(leaf, stamp(10)).unwrap();
    session.release(0);
    assert_eq!(session.whole_tree().unwrap().leaf_id(), Some(leaf));
    let path = session.path().to_owned();
    drop(session);
    assert_eq!(open(&path, 11).tree().entries()[..5], entries);
}

#[test]
fn released_texts_are_not_read_from_a_changed_or_replaced_file() {
    let directory = TempDir::new().unwrap();
    let mut session = started(&directory);
    session.release(0);
    let text = fs::read_to_string(session.path()).unwrap();
    let mut other = fs::File::options().append(true).open(session.path()).unwrap();
    other.write_all(b"{}\n").unwrap();
    assert!(matches!(session.whole_tree(), Err(SessionError::Changed { .. })));
    fs::write(session.path(), text.replace("answer", "anwser")).unwrap();
    fs::rename(session.path(), directory.path().join("moved")).unwrap();
    assert!(session.whole_tree().is_err());
}

#[test]
fn opening_a_session_waits_for_an_inherited_lock_to_be_released() {
    let directory = TempDir::new().unwrap();
    let session = started(&directory);
    let path = session.path().to_owned();
    drop(session);
    let inherited = fs::File::open(&path).unwrap();
    inherited.lock().unwrap();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| Session::open(&path, "/proj", stamp(9)).map(drop));
        // Long enough for the first attempt in most runs; the test is correct in any case.
        std::thread::park_timeout(std::time::Duration::from_millis(50));
        drop(inherited);
        opening.join().unwrap().unwrap();
    });
}
