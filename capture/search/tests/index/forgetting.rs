//! No text of a removed session is found, counted or left in the files, whenever the feeder reads it.

use std::{fs, path::Path};

use api::search::{SearchQuery, SearchSort};
use events::UserPrompt;
use search::Pace;

use crate::log::{LONG, Log, Running};

/// Words that only the forgotten session contains.
fn secret(n: usize) -> String {
    format!("planted{n:05}")
}

/// Adds texts alternately to two sessions, the first of which is forgotten later.
fn fill(log: &mut Log, from: usize, count: usize) {
    log.begin();
    for n in from..from + count {
        log.add("claude/planted", UserPrompt::default(), &format!("{} secretplan alpha needle", secret(n)));
        log.add("claude/planted-helper", UserPrompt::default(), &format!("alpha innocent{n:05} needle"));
    }
    log.commit();
}

/// Checks that no query finds or counts the session's words, and that the other session is complete.
#[track_caller]
fn finds_nothing(index: &Running, texts: usize, when: &str) {
    let middle = secret(texts / 2);
    let queries = [
        secret(0),
        middle.clone(),
        secret(texts - 1),
        "secretplan".into(),
        "planted*".into(),
        format!("\"{middle} secretplan alpha\""),
        "\"secretplan alpha\"".into(),
        "secretplan OR planted00001".into(),
        "secretplan needle".into(),
        "secretplam~1".into(),
    ];
    for q in queries {
        for sort in [SearchSort::Relevance, SearchSort::Time] {
            let page =
                index.search(&SearchQuery { q: Some(q.clone()), sort: Some(sort), ..Default::default() }).unwrap();
            assert_eq!((page.hits.len(), page.matches), (0, 0), "{when}: {q} by {sort:?}");
        }
    }
    let page = index.search(&SearchQuery { q: Some("needle".into()), ..Default::default() }).unwrap();
    assert!(page.matches as usize <= texts, "{when}: {} of {texts}", page.matches);
}

/// The index files that contain a word.
fn holds(data: &Path, word: &str) -> Vec<String> {
    let files = fs::read_dir(data.join("index")).unwrap().map(|file| file.unwrap().path());
    let has = |path: &std::path::PathBuf| {
        fs::read(path).unwrap_or_default().windows(word.len()).any(|window| window == word.as_bytes())
    };
    files.filter(has).map(|path| path.display().to_string()).collect()
}

/// Erases the forgotten session as the eraser does.
fn erase(log: &mut Log, index: &Running, id: events::SessionId) {
    while log.erase_events(1_000) > 0 {}
    assert!(index.index.erase_sessions(&[id], LONG));
    log.finish_erasing();
}

/// Checks that the other session is complete and the forgotten one is gone.
#[track_caller]
fn is_erased(log: &Log, index: &Running, texts: usize, when: &str) {
    index.index.committed(log.position);
    assert!(index.index.wait_for(log.position, LONG), "{when}");
    finds_nothing(index, texts, when);
    let page = index.search(&SearchQuery { q: Some("alpha needle".into()), ..Default::default() }).unwrap();
    assert_eq!(page.matches as usize, texts, "{when}: the other session");
    for word in ["secretplan", "planted0"] {
        assert_eq!(holds(&log.data, word), Vec::<String>::new(), "{when}");
    }
}

#[test]
fn a_session_can_be_forgotten_at_any_stage_of_indexing() {
    for (texts, read) in [(20, "none"), (9_000, "some"), (9_000, "most"), (40, "all")] {
        let data = tempfile::tempdir().unwrap();
        let mut log = Log::open(data.path());
        fill(&mut log, 0, texts);
        let pace = Pace { live: LONG, behind: std::time::Duration::ZERO, ..Pace::default() };
        let (index, id) = match read {
            "none" => {
                let id = log.forget("claude/planted");
                (Running::at_pace(data.path(), log.reader(), pace), id)
            }
            "all" => {
                let index = log.full_index();
                (index, log.forget("claude/planted"))
            }
            _ => {
                let index = Running::at_pace(data.path(), log.reader(), pace);
                assert!(index.index.wait_for(if read == "some" { 1 } else { 12_000 }, LONG));
                (index, log.forget("claude/planted"))
            }
        };
        index.index.committed(log.position);
        assert!(index.index.wait_for(1, LONG));
        finds_nothing(&index, texts, &format!("{read}: when it is removed"));
        log.erase_events(texts / 3);
        finds_nothing(&index, texts, &format!("{read}: half erased"));
        erase(&mut log, &index, id);
        is_erased(&log, &index, texts, read);
        drop(index);
        is_erased(&log, &log.index(), texts, &format!("{read}: after a restart"));
    }
}

#[test]
fn a_session_can_be_forgotten_while_it_receives_events() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    let pace = Pace { live: std::time::Duration::ZERO, ..Pace::default() };
    let index = Running::at_pace(data.path(), log.reader(), pace);
    let mut texts = 0;
    for _ in 0..30 {
        fill(&mut log, texts, 5);
        texts += 5;
        index.index.committed(log.position);
    }
    let id = log.forget("claude/planted");
    finds_nothing(&index, texts, "at once");
    erase(&mut log, &index, id);
    is_erased(&log, &index, texts, "when it is erased");
}

#[test]
fn an_erasure_interrupted_by_a_restart_completes_afterwards() {
    for order_was_given in [false, true] {
        let data = tempfile::tempdir().unwrap();
        let mut log = Log::open(data.path());
        fill(&mut log, 0, 300);
        let index = log.full_index();
        let id = log.forget("claude/planted");
        if order_was_given {
            // The test does not wait for the result.
            let _late = index.index.erase_sessions(&[id], std::time::Duration::ZERO);
        }
        drop(index);
        let index = log.index();
        finds_nothing(&index, 300, "after the restart");
        erase(&mut log, &index, id);
        is_erased(&log, &index, 300, "when it is erased");
    }
}

#[test]
fn a_rebuilt_index_excludes_sessions_being_erased() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    fill(&mut log, 0, 300);
    let index = log.full_index();
    let id = log.forget("claude/planted");
    index.index.rebuild();
    assert!(index.index.wait_for(log.position, LONG));
    finds_nothing(&index, 300, "rebuilt");
    assert_eq!(holds(data.path(), "secretplan"), Vec::<String>::new());
    erase(&mut log, &index, id);
    index.index.rebuild();
    is_erased(&log, &index, 300, "rebuilt again");
}
