//! A full disk stops only the index; once there is room again, no text is missing or duplicated.

use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use api::search::{IndexState, SearchQuery};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use store::Reader;

use crate::{
    kills::{DATA, PACE, add, check, data_of_child},
    log::{Log, Running},
};

/// Interval between the child's reports.
const SAYS: Duration = Duration::from_millis(20);

/// The child: indexes, and reports its state and the number of texts found, one report per line.
#[test]
#[ignore = "started by the test that takes its room"]
fn child() {
    let Some(data) = data_of_child() else { return };
    let reader = Reader::new(data.join("capture.db"));
    let index = Running::at_pace(&data, reader.clone(), PACE);
    loop {
        index.index.committed(reader.position().unwrap());
        let found = index.search(&SearchQuery { q: Some("needle".into()), ..Default::default() });
        println!("{:?} {}", index.index.status().state, found.map_or(0, |page| page.matches));
        let _never = index.index.wait_for(u64::MAX, SAYS);
    }
}

struct Indexing {
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
}

impl Indexing {
    fn start(log: &Log) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(program)
            .args(["--exact", "full_disk::child", "--ignored", "--nocapture"])
            .env(DATA, &log.data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, says }
    }

    /// Waits until the child is in this state and finds this many texts.
    fn reaches(&mut self, state: IndexState, matches: u64) {
        let wanted = format!("{state:?} {matches}");
        let found = self.says.by_ref().map(Result::unwrap).any(|line| line == wanted);
        assert!(found, "it ended before `{wanted}`");
    }

    /// Limits the size of the child's files, as on a full disk.
    fn limit(&self, bytes: Option<u64>) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    }
}

impl Drop for Indexing {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_full_disk_pauses_only_the_index() {
    let data = tempfile::tempdir().unwrap();
    let mut log = Log::open(data.path());
    add(&mut log, 200);
    let mut indexing = Indexing::start(&log);
    indexing.reaches(IndexState::Ready, 200);
    for (round, room) in [(0, 0), (1, 50), (2, 300)] {
        indexing.limit(Some(room));
        // The store itself is unaffected.
        add(&mut log, 2000);
        indexing.reaches(IndexState::Paused, 200 + round * 2100);
        add(&mut log, 100);
        indexing.limit(None);
        indexing.reaches(IndexState::Ready, 200 + (round + 1) * 2100);
    }
    drop(indexing);
    check(&log, 200 + 3 * 2100);
}
