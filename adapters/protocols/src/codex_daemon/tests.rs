use std::fs;

use events::{Claim, NewEvent, Payload, Timestamp};
use serde_json::{Value, json};

use super::session::{DaemonSession, SessionOutput};

const THREAD: &str = "01a1f74e-8593-71e1-8e02-71959782e222";

/// The recorded messages in one direction.
fn recorded(dir: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/codex-daemon/observer.jsonl");
    let lines = fs::read_to_string(path).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["dir"] == dir).map(|mut line| line["msg"].take()).collect()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms)
}

/// A time during the recording.
fn then() -> Timestamp {
    at(1_795_150_484_800)
}

/// A claim as one line.
fn line(event: &NewEvent) -> String {
    let Payload::Signal(signal) = &event.payload else { panic!("{event:?}") };
    let state = match &signal.claim {
        Claim::State { state, .. } => state.to_string(),
        Claim::Withdrawn => "withdrawn".into(),
        other => panic!("{other:?}"),
    };
    format!("{} {state}: {}", event.provider_session_id, signal.words.as_deref().unwrap_or_default())
}

fn status(thread: &str, status: Value) -> String {
    json!({"method": "thread/status/changed", "params": {"threadId": thread, "status": status}, "emittedAtMs": 5})
        .to_string()
}

fn claims(talk: &mut DaemonSession, text: &str, now: Timestamp) -> Vec<String> {
    talk.receive(text, now).unwrap().events.iter().map(line).collect()
}

#[test]
fn a_recorded_daemon_session_yields_its_claims_and_no_extra_requests() {
    let (mut talk, hello) = DaemonSession::begin("/home", then());
    let mut sent = vec![hello];
    let mut events = Vec::new();
    for message in recorded("from_codex") {
        let SessionOutput { send, events: claimed } = talk.receive(&message.to_string(), then()).unwrap();
        sent.extend(send);
        events.extend(claimed);
    }
    let sent: Vec<Value> = sent.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let mut as_recorded = recorded("to_codex");
    as_recorded[0]["params"]["clientInfo"] = sent[0]["params"]["clientInfo"].clone();
    assert_eq!(sent, as_recorded);
    let said: Vec<String> = events.iter().map(line).collect();
    let of = |words: &str| format!("{THREAD} {words}");
    let asks = of("waiting_approval: daemon: active, waiting on approval");
    let (works, rests) = (of("running: daemon: active"), of("waiting: daemon: idle"));
    assert_eq!(said, [&asks, &works, &rests, &works, &asks, &works, &rests].map(String::clone));
    events.extend(talk.lost(then()));
    assert_eq!(events.last().map(line), Some(of("withdrawn: the Codex daemon is gone")));
    let mut identities: Vec<_> = events.iter().map(|event| event.identity.bits()).collect();
    identities.sort_unstable();
    identities.dedup();
    assert_eq!(identities.len(), events.len());
    assert!(talk.lost(then()).is_empty());
}

#[test]
fn daemon_thread_statuses_map_to_claims() {
    let (mut talk, _) = DaemonSession::begin("/home", at(1));
    let now = at(10);
    let cases = [
        (json!({"type": "active", "activeFlags": []}), vec!["t running: daemon: active"]),
        (json!({"type": "active", "activeFlags": ["new"]}), vec![]),
        (
            json!({"type": "active", "activeFlags": ["waitingOnUserInput"]}),
            vec!["t waiting: daemon: active, waiting on user input"],
        ),
        (json!({"type": "unheardOf"}), vec![]),
        (json!({"type": "systemError"}), vec!["t waiting: daemon: system error"]),
        (json!({"type": "notLoaded"}), vec!["t withdrawn: daemon: not loaded"]),
        (json!({"type": "notLoaded"}), vec![]),
        (json!({"type": "idle"}), vec!["t waiting: daemon: idle"]),
    ];
    for (words, expected) in cases {
        assert_eq!(claims(&mut talk, &status("t", words.clone()), now), expected, "{words}");
    }
    // A thread stays loaded even if its user may have left.
    let long_idle = |updated_at: i64| {
        let thread = json!({"id": "u", "status": {"type": "idle"}, "updatedAt": updated_at});
        json!({"method": "thread/started", "params": {"thread": thread}}).to_string()
    };
    assert_eq!(claims(&mut talk, &long_idle(0), at(500_000)), ["u withdrawn: daemon: idle, for long"]);
}

#[test]
fn malformed_daemon_messages_are_errors_and_change_no_state() {
    let (mut talk, _) = DaemonSession::begin("/home", at(1));
    for text in ["", "nonsense", "7", "{\"method\":7}"] {
        assert!(talk.receive(text, at(2)).is_err(), "{text}");
    }
    assert!(talk.receive(r#"{"method":"thread/status/changed","params":{"threadId":7}}"#, at(2)).is_err());
    assert!(talk.is_strange() && talk.threads().next().is_none());
    for message in recorded("from_codex") {
        let text = message.to_string();
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            assert!(talk.receive(&text[..cut], at(2)).is_err(), "{}", &text[..cut]);
        }
    }
    // Requests are left to other clients, even if the same method is otherwise handled as a notification.
    let request = json!({"method": "thread/status/changed", "id": 1, "params": {}}).to_string();
    let step = talk.receive(&request, at(2)).unwrap();
    assert!(step.send.is_empty() && step.events.is_empty());
    assert!(talk.receive(r#"{"id":1,"error":{"code":-1,"message":"no"}}"#, at(2)).is_err());
    assert!(talk.refused());
}
