//! Server-sent events: snapshot, frames, resuming. Row W2: no gaps and no duplicates in any case.

use std::sync::atomic::{AtomicU64, Ordering};

use events::{ApprovalRequested, ApprovalResolved, ApprovalState, Finding, FindingKind, FindingState};
use live_view::OpenItem;
use projections::Approval;

use super::*;

#[tokio::test]
async fn a_stream_sends_a_snapshot_and_then_frames() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Exited)], 812);
    let mut stream = live.events("/api/v1/stream", "").await;
    let snapshot = stream.next().await;
    assert_eq!((snapshot.event.as_str(), snapshot.id), ("snapshot", Some(812)));
    assert_eq!((&snapshot.data["as_of"], &snapshot.data["epoch"]), (&812.into(), &"epoch-1".into()));
    assert_eq!(snapshot.data["sessions"].as_array().unwrap().len(), 1, "the active ones");

    announce(&live.live_view, None, entry(1, State::Waiting));
    let ahead = stream.next().await;
    assert_eq!((ahead.event.as_str(), ahead.id), ("status", None));
    assert_eq!((&ahead.data["live"], &ahead.data["epoch"]), (&true.into(), &"epoch-1".into()));
    assert_eq!(ahead.data["status"]["state"], "waiting");

    let event = prompt(1, 1, 813);
    publish(&live.live_view, &event);
    announce(&live.live_view, Some(813), entry(1, State::Waiting));
    let told = stream.next().await;
    assert_eq!((told.event.as_str(), told.id), ("event", Some(813)));
    assert_eq!(told.data, serde_json::to_value(&event).unwrap());
    let told = stream.next().await;
    assert_eq!((told.event.as_str(), told.id), ("status", Some(813)));
}

fn open(n: u128, id: &str, json: Option<&serde_json::Value>) -> OpenItem {
    OpenItem { session: super::id(n), id: id.into(), json: json.map(|json| Json::of(json).unwrap()) }
}

/// A commit with history voids what was published before, and the following snapshot contains what is open.
#[tokio::test]
async fn a_snapshot_holds_pending_approvals_and_open_findings() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Running)], 5);
    let (approval, finding) = (serde_json::json!({"id": "a"}), serde_json::json!({"id": "f"}));
    live.live_view.put_approval(open(1, "a", Some(&approval)));
    live.live_view.put_finding(open(2, "f", Some(&finding)));
    let mut all = live.events("/api/v1/stream", "").await;
    let snapshot = all.next().await.data;
    assert_eq!((&snapshot["approvals"][0], &snapshot["findings"][0]), (&approval, &finding));
    let snapshot = live.events("/api/v1/stream?session=agent-1", "").await.next().await.data;
    assert_eq!((&snapshot["approvals"][0], snapshot["findings"].as_array().unwrap().len()), (&approval, 0));

    live.live_view.put_approval(open(1, "a", None));
    live.live_view.put_approval(open(2, "b", Some(&approval)));
    live.live_view.publish(Frame::approval(Some(6), super::id(2), Json::of(&approval).unwrap()));
    live.live_view.advance(7);
    let snapshot = loop {
        let next = all.next().await;
        if next.event == "snapshot" {
            break next.data;
        }
    };
    assert_eq!(snapshot["approvals"].as_array().unwrap().len(), 1, "one was closed, one opened: {snapshot}");
    // A client that resumes gets them too.
    let mut resumed = live.events("/api/v1/stream?after=7", "").await;
    assert_eq!(resumed.next().await.event, "approval");
    assert_eq!(resumed.next().await.event, "finding");
}

#[tokio::test]
async fn a_stream_can_be_limited_to_one_session() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Exited), entry(2, State::Running)], 0);
    let mut stream = live.events("/api/v1/stream?session=agent-1", "").await;
    let snapshot = stream.next().await;
    assert_eq!(snapshot.data["sessions"][0]["id"], id(1).to_string(), "in whatever state it is");
    publish(&live.live_view, &prompt(2, 1, 1));
    publish(&live.live_view, &prompt(1, 1, 2));
    assert_eq!(stream.next().await.id, Some(2));
    assert!(live.get("/api/v1/stream?session=nobody").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_stream_has_the_status_of_all_sessions_and_events_of_selected_ones() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Running)], 0);
    let mut none = live.events("/api/v1/stream?events=none", "").await;
    let mut one = live.events("/api/v1/stream?events=agent-1", "").await;
    for stream in [&mut none, &mut one] {
        assert_eq!(stream.next().await.data["sessions"].as_array().unwrap().len(), 2);
    }
    publish(&live.live_view, &prompt(2, 1, 1));
    publish(&live.live_view, &prompt(1, 1, 2));
    let approval = serde_json::json!({"id": "a"});
    live.live_view.publish(Frame::approval(Some(2), id(2), Json::of(&approval).unwrap()));
    announce(&live.live_view, Some(2), entry(2, State::Waiting));
    let told = one.next().await;
    assert_eq!((told.event.as_str(), told.id), ("event", Some(2)));
    for stream in [&mut none, &mut one] {
        assert_eq!(stream.next().await.event, "approval");
        let told = stream.next().await;
        assert_eq!((told.event.as_str(), told.id), ("status", Some(2)));
    }
    for bad in ["events=nobody", "events=none&session=agent-1", "batch_ms=1001", "batch_ms=-1"] {
        let answer = live.get(&format!("/api/v1/stream?{bad}")).await;
        assert!(answer.starts_with("HTTP/1.1 40"), "{bad}: {answer}");
    }
}

/// The log is also read for the sessions that a resumed stream missed.
#[tokio::test]
async fn a_resumed_stream_has_only_events_of_the_selected_sessions() {
    let mut live = Live::new().await;
    live.live_view.put(entry(1, State::Running));
    live.live_view.put(entry(2, State::Running));
    for n in [1, 2] {
        let row = live.log.session(&session(n, State::Running));
        live.log.append(row, &[prompt(n, 1, u64::try_from(n).unwrap())]);
    }
    live.live_view.advance(2);
    let mut stream = live.events("/api/v1/stream?events=agent-2&after=0", "").await;
    let told = stream.next().await;
    assert_eq!((told.event.as_str(), told.id), ("event", Some(2)));
    let stood = [stream.next().await, stream.next().await].map(|told| told.event);
    assert_eq!(stood, ["status", "status"], "both had events");
}

/// Otherwise a client without events would keep showing a request that was answered while it was disconnected.
#[tokio::test]
async fn a_resumed_stream_without_events_reports_closed_approvals() {
    let mut live = Live::new().await;
    live.live_view.put(entry(1, State::Running));
    let row = live.log.session(&session(1, State::Running));
    let asked = ApprovalRequested { approval_id: EventId::from_bits(7).into(), ..ApprovalRequested::default() };
    let resolved = ApprovalResolved {
        approval_id: asked.approval_id.clone(),
        state: Some(ApprovalState::Allowed),
        ..ApprovalResolved::default()
    };
    let of = Approval::of(&asked, (id(1), Provider::Claude), None, (Source::Hook, Confidence::High), at(1));
    let approval = Approval { state: ApprovalState::Allowed, allowed: Some(true), ..of };
    let finding = Finding { state: FindingState::Resolved, ..super::ids::finding(1, FindingKind::Approval) };
    live.log.append(row, &[event(1, 1, 1, asked), event(1, 2, 2, finding.clone()), event(1, 3, 3, resolved)]);
    live.log.writer.begin().unwrap();
    live.log.writer.put_entity(row, &approval).unwrap();
    live.log.writer.put_entity(row, &finding).unwrap();
    live.log.writer.commit().unwrap();
    live.live_view.advance(3);
    let mut stream = live.events("/api/v1/stream?events=none&after=1&epoch=epoch-1", "").await;
    let told = [stream.next().await, stream.next().await, stream.next().await];
    let told: Vec<_> = told.iter().map(|told| (told.event.as_str(), told.data["state"].as_str())).collect();
    assert_eq!(told, [("approval", Some("allowed")), ("finding", Some("resolved")), ("status", None)]);
}

#[tokio::test]
async fn a_batched_stream_sends_only_the_last_status_of_each_session() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Running)], 0);
    let mut stream = live.events("/api/v1/stream?batch_ms=1000", "").await;
    assert_eq!(stream.next().await.event, "snapshot");
    for n in 1..=3 {
        publish(&live.live_view, &prompt(1, n, n));
        announce(&live.live_view, Some(n), entry(1, State::Running));
    }
    announce(&live.live_view, Some(3), entry(1, State::Waiting));
    announce(&live.live_view, Some(3), entry(2, State::Running));
    let mut told = Vec::new();
    for _ in 0..5 {
        let next = stream.next().await;
        told.push(format!("{} {}", next.event, next.data["status"]["state"].as_str().unwrap_or_default()));
    }
    assert_eq!(told, ["event ", "event ", "event ", "status waiting", "status running"], "the last of each session");
    // No other frame follows for them, and nothing that was sent before.
    announce(&live.live_view, Some(4), entry(1, State::Waiting));
    publish(&live.live_view, &prompt(2, 4, 4));
    assert_eq!(stream.next().await.id, Some(4));
    announce(&live.live_view, Some(4), entry(1, State::Running));
    assert_eq!(stream.next().await.event, "status");
}

#[tokio::test]
async fn stream_ids_never_decrease() {
    let live = Live::new().await;
    let mut stream = live.events("/api/v1/stream", "").await;
    stream.next().await;
    publish(&live.live_view, &prompt(1, 1, 1));
    publish(&live.live_view, &prompt(1, 2, 2));
    announce(&live.live_view, Some(1), entry(1, State::Running));
    assert_eq!(stream.next().await.id, Some(1));
    assert_eq!(stream.next().await.id, Some(2));
    let status = stream.next().await;
    assert_eq!((status.event.as_str(), status.id), ("status", None));
}

#[tokio::test]
async fn a_stream_resumes_or_falls_back_to_a_snapshot() {
    let mut live = Live::with(|config| config.limits.resume_events = 50).await;
    live.live_view.put(entry(1, State::Running));
    let row = live.log.session(&session(1, State::Running));
    let events: Vec<Event> = (1..=100).map(|n| prompt(1, n, n)).collect();
    live.log.append(row, &events);
    live.live_view.advance(100);

    let mut stream = live.events("/api/v1/stream", "Last-Event-ID: 97\r\n").await;
    for n in 98..=100 {
        let told = stream.next().await;
        assert_eq!((told.event.as_str(), told.id), ("event", Some(n)));
    }
    let told = stream.next().await;
    assert_eq!((told.event.as_str(), told.id), ("status", Some(100)), "how the sessions met stand now");
    publish(&live.live_view, &prompt(1, 101, 101));
    assert_eq!(stream.next().await.id, Some(101));

    for (query, header, why) in [
        ("", "Last-Event-ID: 49\r\n", "too far back"),
        ("", "Last-Event-ID: 102\r\n", "of another log"),
        ("", "Last-Event-ID: x\r\n", "no position"),
        ("?epoch=epoch-0", "Last-Event-ID: 100\r\n", "of another epoch"),
        ("?after=100&epoch=epoch-0", "", "of another epoch"),
    ] {
        let mut stream = live.events(&format!("/api/v1/stream{query}"), header).await;
        assert_eq!(stream.next().await.event, "snapshot", "{why}");
    }
    let mut stream = live.events("/api/v1/stream?after=100&epoch=epoch-1", "").await;
    publish(&live.live_view, &prompt(1, 102, 102));
    // 101 was never written to this test's log; the test checks that the feed continues after it.
    assert_eq!(stream.next().await.id, Some(102));
}

#[tokio::test]
async fn a_slow_reader_gets_a_snapshot() {
    let live = Live::with(|config| config.limits.queue_frames = 4).await;
    live.live_view.put(entry(1, State::Running));
    let mut stream = live.events("/api/v1/stream", "").await;
    assert_eq!(stream.next().await.event, "snapshot");
    for n in 1..=50 {
        publish(&live.live_view, &prompt(1, n, n));
    }
    let told = stream.next().await;
    assert_eq!((told.event.as_str(), told.id), ("snapshot", Some(50)));
    publish(&live.live_view, &prompt(1, 51, 51));
    assert_eq!(stream.next().await.id, Some(51));
}

/// Clients connect, disconnect and resume from the last position they received, while a writer commits and publishes.
/// Each client keeps a ledger: positions must be consecutive, and a snapshot starts a new ledger.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resuming_clients_miss_and_repeat_no_position() {
    const LAST: u64 = 3000;
    const LEAD: u64 = 60;
    let live = Live::with(|config| config.limits.queue_frames = 64).await;
    let live_view = live.live_view.clone();
    live_view.put(entry(1, State::Running));
    let live = Arc::new(tokio::sync::Mutex::new(live));
    let address = live.lock().await.serving.address();
    let row = live.lock().await.log.session(&session(1, State::Running));

    // The progress of each client. The writer waits for them, so that they are connected while it writes.
    let ledgers: [Arc<AtomicU64>; 3] = Default::default();

    let writing = {
        let live = Arc::clone(&live);
        let ledgers = ledgers.clone();
        tokio::spawn(async move {
            let mut position = 0;
            while position < LAST {
                let events: Vec<Event> = (1..=7).map(|n| prompt(1, position + n, position + n)).collect();
                live.lock().await.log.append(row, &events);
                position += 7;
                live_view.put(entry(1, State::Running));
                if position % 700 == 0 {
                    live_view.advance(position);
                } else {
                    events.iter().for_each(|event| publish(&live_view, event));
                    announce(&live_view, Some(position), entry(1, State::Running));
                }
                let slowest = || ledgers.iter().map(|seen| seen.load(Ordering::Relaxed)).min().unwrap_or(0);
                while position < LAST && slowest() + LEAD < position {
                    tokio::task::yield_now().await;
                }
            }
            position
        })
    };
    let client = |stay: u64, ledger: Arc<AtomicU64>| async move {
        let (mut seen, mut resumed) = (0, 0);
        let mut snapshots = 0;
        while seen < LAST {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let last = if resumed > 0 { format!("Last-Event-ID: {seen}\r\n") } else { String::new() };
            let head = format!(
                "GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n{last}\r\n",
                token("read")
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut stream = Sse { stream, text: String::new() };
            stream.until("\r\n\r\n").await;
            for _ in 0..stay {
                let told = stream.next().await;
                match (told.event.as_str(), told.id) {
                    ("snapshot", Some(as_of)) => {
                        assert!(as_of >= seen, "{as_of} after {seen}");
                        seen = as_of;
                        snapshots += 1;
                    }
                    ("event", Some(position)) => {
                        assert_eq!(position, seen + 1, "after {resumed} resumptions");
                        seen = position;
                    }
                    ("status", id) => {
                        assert!(id.is_none_or(|id| id <= seen), "{id:?} after {seen}")
                    }
                    other => panic!("{other:?}"),
                }
                ledger.store(seen, Ordering::Relaxed);
                if seen >= LAST {
                    break;
                }
            }
            resumed += 1;
        }
        (resumed, snapshots)
    };
    let [a, b, c] = ledgers;
    let (a, b, c) = tokio::join!(client(3, a), client(50, b), client(100_000, c));
    let last = writing.await.unwrap();
    assert!(last >= LAST);
    assert!(a.0 > b.0 && b.0 > c.0, "{a:?} {b:?} {c:?}");
}
