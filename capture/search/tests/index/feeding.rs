//! How the index follows the store, and its behaviour on failures.

use std::{fs, path::Path, time::Duration};

use api::search::IndexState;
use events::{SessionId, UsageReported, UserPrompt};
use search::Pace;

use crate::log::{LONG, Log, Running};

fn fill(log: &mut Log, count: u64) {
    log.begin();
    for number in 0..count {
        log.add("claude/a", UserPrompt::default(), &format!("needle number{number}"));
    }
    log.commit();
}

#[test]
fn each_committed_text_is_found_exactly_once() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let pace = Pace { live: Duration::from_millis(10), ..Pace::default() };
    let index = Running::at_pace(data.path(), log.reader(), pace);
    for round in 1..=20 {
        let position = log.append("claude/a", UserPrompt::default(), "needle");
        index.index.committed(position);
        assert!(index.index.wait_for(position, LONG));
        assert_eq!(index.positions("needle").len(), round);
    }
    // Events without a text also advance the position.
    let position = log.append("claude/a", UsageReported::default(), "");
    index.index.committed(position);
    assert!(index.index.wait_for(position, LONG));
    drop(index);
    for _ in 0..3 {
        assert_eq!(log.full_index().positions("needle").len(), 20);
    }
}

#[test]
fn a_search_can_wait_for_the_latest_commit() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 1);
    let pace = Pace { live: LONG, ..Pace::default() };
    let index = Running::at_pace(data.path(), log.reader(), pace);
    assert!(index.index.wait_for(1, LONG));
    for count in 2..=5 {
        fill(&mut log, 1);
        while index.positions("needle").len() < count {
            index.index.catch_up(log.position, LONG);
        }
    }
}

#[test]
fn a_search_right_after_a_start_finds_indexed_texts() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 3);
    drop(log.full_index());
    for _ in 0..10 {
        assert_eq!(log.index().positions("needle").len(), 3);
    }
}

#[test]
fn unsearched_texts_are_indexed_when_due_or_when_many_are_pending() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 1);
    let pace = Pace { live: LONG, ..Pace::default() };
    let index = Running::at_pace(data.path(), log.reader(), pace);
    assert!(index.index.wait_for(1, LONG));
    // When the second order is done, the feeder has completed everything the first one triggered.
    let looked = || (0..2).all(|_| index.index.erase_sessions(&[SessionId::from_bytes([7; 16])], LONG));
    fill(&mut log, 10);
    index.index.committed(log.position);
    assert!(looked());
    assert_eq!(index.index.status().indexed, 1);
    index.index.catch_up(log.position, LONG);
    assert_eq!(index.positions("needle").len(), 11);
    for _ in 0..3 {
        fill(&mut log, 300);
        index.index.committed(log.position);
        assert!(looked());
    }
    assert!(index.index.status().indexed > 11);
    index.index.catch_up(log.position, LONG);
    assert_eq!(index.positions("needle").len(), 911);
}

#[test]
fn the_index_status_reports_its_progress() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 10);
    let index = log.full_index();
    let status = index.index.status();
    assert_eq!((status.indexed, status.total, status.texts, status.trouble), (10, 10, 10, None));
    assert!(status.bytes > 0);
    let page = index.search(&api::search::SearchQuery { q: Some("needle".into()), ..Default::default() }).unwrap();
    assert_eq!((page.indexed, page.total), (10, 10));
}

/// The index files with this extension.
fn files(data: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(data.join("index")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

#[test]
fn an_unusable_index_is_rebuilt() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("deleted", |data| fs::remove_dir_all(data.join("index")).unwrap()),
        ("not JSON", |data| fs::write(data.join("index/meta.json"), "{").unwrap()),
        ("a part is missing", |data| fs::remove_file(&files(data, "term")[0]).unwrap()),
        ("a part is empty", |data| fs::write(&files(data, "idx")[0], "").unwrap()),
        ("another version", |data| {
            let path = data.join("index/meta.json");
            let meta = fs::read_to_string(&path).unwrap();
            let other = meta.replace("\\\"version\\\":", "\\\"version\\\":9");
            assert_ne!(meta, other);
            fs::write(path, other).unwrap();
        }),
        ("of another log", |data| {
            let path = data.join("index/meta.json");
            let meta = fs::read_to_string(&path).unwrap();
            let at = meta.find("\\\"log\\\":\\\"").unwrap() + 12;
            let other = if &meta[at..=at] == "0" { "1" } else { "0" };
            fs::write(path, format!("{}{other}{}", &meta[..at], &meta[at + 1..])).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let data = tempfile::tempdir().unwrap();
        let mut log = Log::open(data.path());
        fill(&mut log, 30);
        drop(log.full_index());
        damage(data.path());
        let index = log.full_index();
        assert_eq!(index.positions("needle"), (1..=30).collect::<Vec<_>>(), "{name}");
        assert_eq!(index.positions("number7"), [8], "{name}");
    }
}

#[test]
fn index_damage_found_by_a_search_is_repaired() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 300);
    drop(log.full_index());
    // Damages the content of a file but not its end, so that it still opens.
    for path in ["idx", "pos", "term"].iter().flat_map(|extension| files(data.path(), extension)) {
        let mut bytes = fs::read(&path).unwrap();
        let end = bytes.len() * 3 / 4;
        bytes[..end].fill(0xff);
        fs::write(&path, bytes).unwrap();
    }
    let index = log.full_index();
    let query = api::search::SearchQuery { q: Some("number7*".into()), ..Default::default() };
    for _ in 0..1000 {
        match index.search(&query) {
            Ok(page) if page.matches == 11 => return,
            Ok(_) | Err(_) => {
                let _later = index.index.wait_for(300, LONG);
                std::thread::yield_now();
            }
        }
    }
    panic!("not repaired: {:?}", index.index.status());
}

#[test]
fn the_index_can_be_rebuilt_on_request() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 30);
    let index = log.full_index();
    index.index.rebuild();
    assert!(index.index.wait_for(30, LONG));
    assert_eq!(index.positions("needle").len(), 30);
}

#[test]
fn an_index_ahead_of_the_store_drops_the_lost_events() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 10);
    drop(log);
    let database = data.path().join("capture.db");
    let older = fs::read(&database).unwrap();
    let mut log = Log::open(data.path());
    // A session that the older store does not contain.
    log.append("claude/b", UserPrompt::default(), "needle lost");
    drop(log.full_index());
    drop(log);
    // A power failure lost the store's last commits.
    fs::write(&database, older).unwrap();
    fs::remove_file(data.path().join("capture.db-wal")).ok();
    fs::remove_file(data.path().join("capture.db-shm")).ok();
    let mut log = Log::open(data.path());
    assert_eq!(log.position, 10);
    let index = log.index();
    let position = log.append("claude/c", UserPrompt::default(), "needle found");
    index.index.committed(position);
    assert!(index.index.wait_for(11, LONG));
    assert!(index.positions("lost").is_empty());
    assert_eq!(index.positions("found"), [11]);
    assert_eq!(index.positions("needle").len(), 11);
}

#[test]
fn texts_of_a_session_can_be_removed() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 3);
    log.append("codex/b", UserPrompt::default(), "needle");
    let index = log.full_index();
    let names = || -> Vec<String> {
        let files = fs::read_dir(data.path().join("index")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    let before = names();
    assert!(index.index.erase_sessions(&[log.session("claude/a")], LONG));
    assert_eq!(index.positions("needle"), [4]);
    let is_part = |name: &&String| name.ends_with(".idx") || name.ends_with(".store") || name.ends_with(".del");
    assert!(!before.iter().filter(is_part).any(|name| names().contains(name)), "there are new files");
    assert!(!names().iter().any(|name| name.ends_with(".del")), "{:?}", names());
    // An unknown session, twice.
    for _ in 0..2 {
        assert!(index.index.erase_sessions(&[events::SessionId::from_bytes([7; 16])], LONG));
    }
    assert_eq!(index.positions("needle"), [4]);
}

#[test]
fn an_unusable_index_directory_pauses_indexing_until_it_is_usable() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 3);
    fs::write(data.path().join("index"), "in the way").unwrap();
    let index = log.index();
    // A search waits until it is known whether there is an index.
    let query = api::search::SearchQuery { q: Some("needle".into()), ..Default::default() };
    assert!(index.search(&query).unwrap_err().to_string().contains("not ready"));
    let status = index.index.status();
    assert_eq!(status.state, IndexState::Paused);
    assert!(status.trouble.is_some_and(|why| why.contains("index")), "no reason");
    fs::remove_file(data.path().join("index")).unwrap();
    assert!(index.index.wait_for(3, LONG));
    assert_eq!(index.positions("needle").len(), 3);
}

#[test]
fn a_backlog_is_indexed_together_with_new_events() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 6000);
    let index = Running::start(data.path(), log.reader());
    for _ in 0..10 {
        fill(&mut log, 500);
        index.index.committed(log.position);
    }
    assert!(index.index.wait_for(11_000, LONG));
    let page = index.search(&api::search::SearchQuery { q: Some("needle".into()), ..Default::default() }).unwrap();
    assert_eq!(page.matches, 11_000);
}

#[test]
fn a_removed_data_directory_is_not_recreated() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 3);
    let removed = data.path().join("removed");
    let index = Running::start(&removed, log.reader());
    let query = api::search::SearchQuery { q: Some("needle".into()), ..Default::default() };
    assert!(index.search(&query).unwrap_err().to_string().contains("not ready"));
    let trouble = index.index.status().trouble.expect("a reason");
    assert!(trouble.contains("cannot create the directory"), "{trouble}");
    assert!(!removed.exists());
}
