//! A process killed while indexing loses and duplicates nothing.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use events::{ToolResult, UserPrompt};
use search::Pace;
use store::Reader;

use crate::log::{LONG, Log, Running};

/// Environment variable with the child's data directory.
pub(crate) const DATA: &str = "SEARCH_TEST_DATA";
/// Number of texts in the store before the first kill, and added before each kill.
const TEXTS: u64 = 3000;
const MORE: u64 = 100;

/// Commits often, so that kills hit every stage of a commit.
pub(crate) const PACE: Pace = Pace {
    backlog: 1000,
    behind: Duration::from_millis(20),
    caught_up: Duration::from_millis(5),
    live: Duration::from_millis(5),
};

/// The child: indexes until it is killed.
#[test]
#[ignore = "started by the tests that kill it"]
fn child() {
    let Some(data) = data_of_child() else { return };
    let index = Running::at_pace(&data, Reader::new(data.join("capture.db")), PACE);
    let _never = index.index.wait_for(u64::MAX, LONG);
}

/// The child's data directory; `None` if the process was not started by a test.
#[expect(clippy::disallowed_methods, reason = "the way from a test to the process it starts")]
pub(crate) fn data_of_child() -> Option<PathBuf> {
    std::env::var_os(DATA).map(PathBuf::from)
}

fn start_child(data: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::child", "--ignored", "--nocapture"])
        .env(DATA, data)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Adds texts that one query finds together, and another finds individually.
pub(crate) fn add(log: &mut Log, count: u64) {
    log.begin();
    for _ in 0..count {
        let number = log.position + 1;
        let text = format!("needle unique{number} {}", "some more words to index ".repeat(20));
        if number.is_multiple_of(2) {
            log.add("claude/a", UserPrompt::default(), &text);
        } else {
            log.add("codex/b", ToolResult::default(), &text);
        }
    }
    log.commit();
}

fn killed(times: u64) {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    add(&mut log, TEXTS);
    let mut began = Instant::now();
    for kill in 0..times {
        let mut child = start_child(data.path());
        // Varies: at the start, in the middle, or after catching up with more texts arriving.
        let wait = Duration::from_millis(20 + kill * 137 % 400);
        let until = began + wait;
        while Instant::now() < until {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            std::thread::yield_now();
        }
        add(&mut log, MORE);
        child.kill().unwrap();
        child.wait().unwrap();
        began = Instant::now();
    }
    check(&log, TEXTS + times * MORE);
}

/// Checks that every text is found exactly once.
pub(crate) fn check(log: &Log, total: u64) {
    let index = log.full_index();
    let query = |q: &str| api::search::SearchQuery { q: Some(q.into()), ..Default::default() };
    assert_eq!(index.search(&query("needle")).unwrap().matches, total);
    assert_eq!(index.search(&query("agent:claude needle")).unwrap().matches, total / 2);
    for number in (1..=total).step_by(17) {
        assert_eq!(index.positions(&format!("unique{number}")), [number]);
    }
    assert_eq!(index.index.status().texts, total);
}

#[test]
fn five_kills_neither_lose_nor_duplicate_texts() {
    killed(5);
}

#[test]
#[ignore = "takes half a minute"]
fn fifty_kills_neither_lose_nor_duplicate_texts() {
    killed(50);
}
