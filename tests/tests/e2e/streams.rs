//! Following along.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use tests::{
    http::Events,
    program::Machine,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// Reads committed events until all these texts have come; gives their positions in order and the
/// last id seen. A snapshot on the way is a failure: nothing was lost, so none is due.
fn follow(stream: &mut Events, texts: impl IntoIterator<Item = String>) -> (Vec<u64>, u64) {
    let mut missing: BTreeSet<String> = texts.into_iter().collect();
    let (mut positions, mut last) = (Vec::new(), 0);
    while !missing.is_empty() {
        let sent = stream.next(Duration::from_secs(20)).unwrap_or_else(|e| panic!("{e}; still missing {missing:?}"));
        match sent.name.as_str() {
            "event" if sent.data["live"] != true => {
                positions.push(sent.data["position"].as_u64().unwrap());
                if let Some(text) = sent.data["text"].as_str() {
                    missing.remove(text);
                }
            }
            "event" | "status" => {}
            other => panic!("a {other} on the way: {}", sent.data),
        }
        if let Some(id) = sent.id {
            assert!(id >= last, "ids go back from {last} to {id}");
            last = id;
        }
    }
    (positions, last)
}

fn positions(events: &[Value]) -> Vec<u64> {
    events.iter().map(|e| e["position"].as_u64().unwrap()).collect()
}

#[test]
fn snapshot_then_deltas_then_resume_across_a_restart() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    let turn = |n: u64| prompt(&name, &uuid(1, 2 * n), &cwd, &format!("prompt {n}")) + &answer(&name, &uuid(1, 2 * n + 1), &cwd, &format!("answer {n}"));
    let said = |range: std::ops::Range<u64>| range.flat_map(|n| [format!("prompt {n}"), format!("answer {n}")]);
    append(&path, &turn(0));
    let server = machine.serve();
    server.caught_up(&name, &path);
    let id = server.session(&name)["id"].as_str().unwrap().to_owned();
    let of_session = format!("/api/v1/stream?session={name}");

    let mut stream = server.client.events(&of_session, None).unwrap();
    let snapshot = stream.next(Duration::from_secs(20)).unwrap();
    assert_eq!(snapshot.name, "snapshot");
    assert_eq!(snapshot.data["sessions"][0]["id"], id.as_str());
    let as_of = snapshot.data["as_of"].as_u64().unwrap();
    assert_eq!(snapshot.id, Some(as_of));

    for n in 1..=20 {
        append(&path, &turn(n));
    }
    let (mut seen, last) = follow(&mut stream, said(1..21));
    server.stop();
    for n in 21..=30 {
        append(&path, &turn(n));
    }
    let server = machine.serve();
    let mut stream = server.client.events(&of_session, Some(last)).unwrap();
    for n in 31..=33 {
        append(&path, &turn(n));
    }
    let (more, last_of_all) = follow(&mut stream, said(21..34));
    seen.extend(more);

    let log = positions(&server.events(&id));
    let wanted: Vec<u64> = log.into_iter().filter(|p| *p > as_of && *p <= *seen.last().unwrap()).collect();
    assert_eq!(seen, wanted, "what was streamed is the log behind the snapshot, each once and in order");
    assert!(last_of_all >= last);

    // A position nobody ever had, or an epoch that is over, gives a snapshot.
    let mut ahead = server.client.events(&of_session, Some(u64::MAX >> 8)).unwrap();
    assert_eq!(ahead.next(Duration::from_secs(20)).unwrap().name, "snapshot");
    let mut other = server.client.events(&format!("{of_session}&epoch=gone"), Some(last_of_all)).unwrap();
    assert_eq!(other.next(Duration::from_secs(20)).unwrap().name, "snapshot");
}

#[test]
fn resume_after_a_kill() {
    let machine = Machine::new(PROGRAM);
    let (name, cwd) = (session(1), machine.project().to_str().unwrap().to_owned());
    let path = machine.claude(&name);
    let line = |n: u64| prompt(&name, &uuid(1, n), &cwd, &format!("prompt {n}"));
    append(&path, &line(0));
    let mut server = machine.serve();
    server.caught_up(&name, &path);
    let of_session = format!("/api/v1/stream?session={name}");
    let mut stream = server.client.events(&of_session, None).unwrap();
    let mut last = stream.next(Duration::from_secs(20)).unwrap().id.unwrap();
    let as_of = last;
    let mut seen = Vec::new();
    for round in 0..5_u64 {
        for n in 0..10 {
            append(&path, &line(1 + round * 10 + n));
        }
        // Half of them are seen, then the server is gone, wherever it stood.
        let half = 1 + round * 10;
        let (positions, id) = follow(&mut stream, (half..half + 5).map(|n| format!("prompt {n}")));
        seen.extend(positions);
        last = last.max(id);
        server.kill();
        server = machine.serve();
        stream = server.client.events(&of_session, Some(last)).unwrap();
    }
    append(&path, &line(51));
    let (positions_left, _) = follow(&mut stream, ["prompt 51".to_owned()]);
    seen.extend(positions_left);
    let id = server.session(&name)["id"].as_str().unwrap().to_owned();
    let end = *seen.last().unwrap();
    let wanted: Vec<u64> = positions(&server.events(&id)).into_iter().filter(|p| *p > as_of && *p <= end).collect();
    assert_eq!(seen, wanted);
}
