//! The names and words of older clients.

use events::{ApprovalResolved, AssistantMessage};
use futures_util::{SinkExt, StreamExt};

use super::{sockets::websocket, *};

/// The header that `EventSource` sends.
const EVENTS: &str = "Accept: text/event-stream\r\n";

#[tokio::test]
async fn stream_routes_answer_plain_requests_with_finite_json() {
    let mut server = TestServer::new();
    for (n, state) in [(1, State::Running), (2, State::WaitingApproval), (3, State::Waiting), (4, State::Unknown)] {
        server.live_view.put(entry(n, state));
    }
    let row = server.log.session(&session(1, State::Running));
    server.log.append(row, &[prompt(1, 1, 1)]);
    let answer = server.get("/api/stream/status").await.json();
    let mut words: Vec<(&str, bool)> = answer["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| (session["status"].as_str().unwrap(), session["working"].as_bool().unwrap()))
        .collect();
    words.sort_unstable();
    assert_eq!(words, [("idle", false), ("running", true), ("waiting", false), ("waiting", false)]);
    let one = server.get("/api/sessions/agent-1/stream").await.json();
    assert_eq!((&one["sessionId"], &one["status"]), (&id(1).to_string().into(), &"running".into()));
    assert_eq!(one["events"][0]["text"], "text 1");
    assert_eq!(server.get("/api/sessions/agent-9/stream").await.error(), (404, "not_found".into()));
}

#[tokio::test]
async fn messages_are_paged_and_empty_ones_omitted() {
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Idle));
    let row = server.log.session(&session(1, State::Idle));
    let silent = Event { text: None, ..event(1, 3, 3, AssistantMessage::default()) };
    server.log.append(row, &[prompt(1, 1, 1), prompt(1, 2, 2), silent, prompt(1, 4, 4)]);
    let texts = async |query: &str| {
        let answer = server.get(&format!("/api/session/messages?session=agent-1{query}")).await.json();
        let text = |message: &Value| message["text"].as_str().unwrap().to_owned();
        answer["messages"].as_array().unwrap().iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts("").await, ["text 1", "text 2", "text 4"]);
    assert_eq!(texts("&before=2").await, ["text 1"]);
    assert_eq!(texts("&limit=1").await, ["text 4"]);
    assert_eq!(texts("&before=4&limit=2").await, ["text 2"]);
}

#[tokio::test]
async fn status_changes_are_streamed() {
    let live = Live::new().await;
    live.live_view.put(entry(1, State::Waiting));
    let mut stream = live.events("/api/stream/status", EVENTS).await;
    let told = stream.next().await;
    assert_eq!(told.event, "session.status");
    assert_eq!(
        told.data,
        serde_json::json!({
            "type": "session.status", "sessionId": id(1), "status": "waiting_input", "working": false, "reason": null,
        })
    );
    assert_eq!(stream.next().await.event, "waiting-for-input");
    publish(&live.live_view, &prompt(1, 1, 1));
    announce(&live.live_view, Some(1), entry(1, State::Running));
    let told = stream.next().await;
    assert_eq!(
        (told.event.as_str(), &told.data["status"], &told.data["working"]),
        ("session.status", &"running".into(), &true.into())
    );
}

#[tokio::test]
async fn one_session_is_streamed_over_a_websocket() {
    let mut live = Live::new().await;
    live.live_view.put(entry(1, State::Running));
    let row = live.log.session(&session(1, State::Running));
    live.log.append(row, &[prompt(1, 1, 1)]);
    live.live_view.advance(1);
    let mut socket = websocket(&live, "").await;
    let mut next = async |name: &str| loop {
        let message: Value = serde_json::from_str(socket.next().await.unwrap().unwrap().to_text().unwrap()).unwrap();
        if message["type"] == "snapshot" {
            let ask = serde_json::json!({ "type": "subscribe-stream", "sessionId": "agent-1" });
            socket.send(ask.to_string().into()).await.unwrap();
            continue;
        }
        assert_eq!(message["type"], name);
        assert_eq!(message["sessionId"], id(1).to_string());
        break message;
    };
    let init = next("stream-init").await;
    assert_eq!((&init["status"], &init["events"][0]["text"]), (&"running".into(), &"text 1".into()));
    publish(&live.live_view, &prompt(1, 2, 2));
    assert_eq!(next("stream-event").await["event"]["position"], 2);
    announce(&live.live_view, Some(2), entry(1, State::WaitingApproval));
    let status = next("stream-status").await;
    assert_eq!((&status["status"], &status["reason"]), (&"waiting".into(), &"tool".into()));
    assert_eq!(next("session.status").await["status"], "waiting_approval");
    next("waiting-for-input").await;
    let resolved = ApprovalResolved { approval_id: "a1".into(), allowed: Some(true), ..ApprovalResolved::default() };
    publish(&live.live_view, &event(1, 3, 3, resolved));
    next("stream-event").await;
    let decision = next("approval-decision").await;
    assert_eq!((&decision["approvalId"], &decision["allowed"]), (&"a1".into(), &true.into()));
}

#[tokio::test]
async fn one_session_is_streamed_as_server_sent_events() {
    let live = Live::new().await;
    live.live_view.put(entry(1, State::Idle));
    let mut stream = live.events("/api/sessions/agent-1/stream", EVENTS).await;
    assert_eq!(stream.next().await.event, "stream-init");
    publish(&live.live_view, &prompt(2, 1, 1));
    publish(&live.live_view, &prompt(1, 1, 2));
    let told = stream.next().await;
    assert_eq!((told.event.as_str(), &told.data["event"]["position"]), ("stream-event", &2.into()));
}

#[tokio::test]
async fn the_older_routes_return_messages_and_summary() {
    let mut server = TestServer::new();
    server.live_view.put(entry(1, State::Idle));
    let row = server.log.session(&session(1, State::Idle));
    server.log.append(row, &[prompt(1, 1, 1), changed(1, 2, 2, State::Idle, State::Running)]);
    let messages = server.get("/api/session/messages?session=agent-1").await.json();
    assert_eq!(messages["sessionId"], id(1).to_string());
    assert_eq!(messages["messages"].as_array().unwrap().len(), 1);
    assert_eq!(messages["messages"][0]["role"], "user");
    assert_eq!(server.get("/api/session/messages").await.error(), (400, "bad_parameter".into()));
    assert_eq!(server.get("/api/session/messages?session=x").await.error(), (404, "not_found".into()));
    let (older, now) =
        (server.get("/api/sessions/agent-1/summary").await, server.get("/api/v1/sessions/agent-1/summary").await);
    assert_eq!(older.json(), now.json());
}
