//! Following a session: whatever happens to the server, the events a client received and those its last snapshot covers
//! are together the whole log, without gaps or duplicates.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde_json::Value;
use tests::{
    eventually,
    http::Events,
    number_from_env,
    program::{Machine, Server, a_moment},
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

const PATIENCE: Duration = Duration::from_secs(20);
/// Longest wait for a marker line that a snapshot may have covered.
const MARKER: Duration = Duration::from_secs(3);

/// A session that is being written, and a client that follows it.
struct Case {
    machine: Machine,
    name: String,
    path: PathBuf,
    next: u64,
    /// How often each position was received.
    sent: BTreeMap<u64, u32>,
    /// The last position that a snapshot covers.
    covered: u64,
    /// The last event id.
    last: u64,
    snapshots: usize,
}

impl Case {
    fn new() -> Self {
        let machine = Machine::new(PROGRAM);
        let name = session(1);
        let path = machine.claude(&name);
        Self { machine, name, path, next: 0, sent: BTreeMap::new(), covered: 0, last: 0, snapshots: 0 }
    }

    /// Writes turns; returns the text of the last line.
    fn write(&mut self, turns: u64) -> String {
        let cwd = self.machine.project().to_str().unwrap().to_owned();
        for _ in 0..turns {
            let n = self.next;
            self.next += 1;
            append(&self.path, &prompt(&self.name, &uuid(1, 2 * n), &cwd, &format!("prompt {n}")));
            append(&self.path, &answer(&self.name, &uuid(1, 2 * n + 1), &cwd, &format!("answer {n}")));
        }
        format!("answer {}", self.next - 1)
    }

    fn open(&self, server: &Server, resume: bool) -> Events {
        server.client.events(&format!("/api/v1/stream?session={}", self.name), resume.then_some(self.last)).unwrap()
    }

    /// Receives events until one contains this text; `false` if the stream stays silent before.
    fn take_until(&mut self, stream: &mut Events, text: &str, patience: Duration) -> bool {
        loop {
            let Ok(sent) = stream.next(patience) else { return false };
            if let Some(id) = sent.id {
                assert!(id >= self.last, "ids go back from {} to {id}", self.last);
                self.last = id;
            }
            match sent.name.as_str() {
                "snapshot" => {
                    let as_of = sent.data["as_of"].as_u64().unwrap();
                    assert_eq!(sent.id, Some(as_of));
                    self.snapshots += 1;
                    self.covered = self.covered.max(as_of);
                }
                "event" if sent.data["live"] != true => {
                    *self.sent.entry(sent.data["position"].as_u64().unwrap()).or_default() += 1;
                    if sent.data["text"] == text {
                        return true;
                    }
                }
                "event" | "status" | "finding" => {}
                other => panic!("a frame called {other}"),
            }
        }
    }

    /// Writes lines until one arrives as an event: then every earlier line has arrived as well, or a snapshot covers
    /// it.
    fn settle(&mut self, stream: &mut Events) {
        for _ in 0..10 {
            let text = self.write(1);
            if self.take_until(stream, &text, MARKER) {
                return;
            }
        }
        panic!("no event comes through");
    }

    /// Compares the received events with the log.
    fn check(&self, server: &Server) {
        let log = server.events(&self.name);
        let end = *self.sent.keys().next_back().unwrap();
        let position = |e: &Value| e["position"].as_u64().unwrap();
        let tell = |e: &Value| {
            format!("{} {} {}", position(e), e["kind"].as_str().unwrap(), e["text"].as_str().unwrap_or_default())
        };
        let gaps: Vec<String> = log
            .iter()
            .filter(|e| position(e) > self.covered && position(e) <= end && !self.sent.contains_key(&position(e)))
            .map(tell)
            .collect();
        let doubled: Vec<(&u64, &u32)> = self.sent.iter().filter(|(_, n)| **n > 1).collect();
        let strange: Vec<&u64> = self.sent.keys().filter(|p| !log.iter().any(|e| position(e) == **p)).collect();
        assert!(gaps.is_empty(), "never sent, and no snapshot covers it (the last one: {}): {gaps:#?}", self.covered);
        assert!(doubled.is_empty() && strange.is_empty(), "sent twice {doubled:?}, not in the log {strange:?}");
    }
}

#[test]
fn a_stream_sends_a_snapshot_and_then_events_in_order() {
    let mut case = Case::new();
    case.write(1);
    let server = case.machine.serve();
    server.caught_up(&case.name, &case.path);
    let id = server.session(&case.name)["id"].clone();
    // A session is listed slightly before the position of its history is published, and a stream that begins in between
    // gets another snapshot.
    let history = server.events(&case.name).last().unwrap()["position"].clone();
    eventually("its history is published", || {
        (server.client.json("/api/v1/sessions")?["as_of"] == history).then_some(())
    });
    let mut stream = case.open(&server, false);
    let snapshot = stream.next(PATIENCE).unwrap();
    assert_eq!((snapshot.name.as_str(), &snapshot.data["sessions"][0]["id"]), ("snapshot", &id));
    let as_of = snapshot.data["as_of"].as_u64().unwrap();
    assert_eq!(snapshot.id, Some(as_of));
    case.covered = as_of;
    for _ in 0..20 {
        let last = case.write(1);
        assert!(case.take_until(&mut stream, &last, PATIENCE), "{last} did not come");
    }
    assert_eq!(case.snapshots, 0, "nothing was lost, so none is due");
    case.check(&server);
    assert!(case.sent.keys().all(|position| *position > as_of));

    // A position that never existed, or an epoch that has ended, yields a snapshot.
    let of_session = format!("/api/v1/stream?session={}", case.name);
    for (path, last) in [(of_session.clone(), u64::MAX >> 8), (format!("{of_session}&epoch=gone"), case.last)] {
        assert_eq!(server.client.events(&path, Some(last)).unwrap().next(PATIENCE).unwrap().name, "snapshot");
    }
}

#[test]
fn a_stream_resumes_without_gaps_across_a_restart() {
    let mut case = Case::new();
    case.write(1);
    let mut server = case.machine.serve();
    server.caught_up(&case.name, &case.path);
    let mut stream = case.open(&server, false);
    let last = case.write(3);
    assert!(case.take_until(&mut stream, &last, PATIENCE));
    for round in 0..number_from_env("RESTARTS", 6) as u64 {
        server.stop();
        // Written while the server is down, while it starts, and after it has started.
        case.write(10 * (round % 3));
        server = case.machine.serve();
        stream = case.open(&server, true);
        case.write(2);
        case.settle(&mut stream);
        case.check(&server);
    }
}

#[test]
fn a_stream_resumes_without_gaps_after_a_kill() {
    let mut case = Case::new();
    case.write(1);
    let mut server = case.machine.serve();
    server.caught_up(&case.name, &case.path);
    let mut stream = case.open(&server, false);
    for round in 0..number_from_env("RESTARTS", 6) as u64 {
        let half = case.write(3);
        case.write(3);
        // Some events are received, then the server is killed at an arbitrary point.
        case.take_until(&mut stream, &half, MARKER);
        server.kill();
        server = case.machine.serve();
        a_moment(round * 7);
        stream = case.open(&server, true);
        case.settle(&mut stream);
        case.check(&server);
    }
}

/// History is not sent, because a snapshot covers it, even if it is committed together with live lines.
#[test]
fn a_stream_has_no_gaps_if_history_and_live_lines_share_a_commit() {
    for _ in 0..number_from_env("RESTARTS", 6) {
        let mut case = Case::new();
        case.write(1);
        let server = case.machine.serve();
        server.caught_up(&case.name, &case.path);
        server.stop();
        case.write(400);
        let server = case.machine.serve();
        let mut stream = case.open(&server, false);
        for _ in 0..20 {
            case.write(1);
            a_moment(3);
        }
        case.settle(&mut stream);
        case.check(&server);
    }
}
