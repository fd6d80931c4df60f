//! The interface of coder/agentapi.

use api::runs::{Input, InputSent};
use events::{AssistantDelta, AssistantMessage, Block, Reason, RunId, Stop};
use live_view::RunTarget;

use super::{
    commands::{Command, commands},
    *,
};

const BASE: &str = "/api/v1/runs/agent-1/agentapi";

fn answer(sequence: u64, position: u64) -> Event {
    event(1, sequence, position, AssistantMessage::default())
}

#[tokio::test]
async fn status_and_messages_use_the_agentapi_format() {
    let (control, _inbox) = commands(1);
    let mut server = TestServer::with(Health::default(), |config| config.control = control);
    let row = server.log.session(&session(1, State::Running));
    let silent = Event { text: None, ..answer(3, 3) };
    server.log.append(row, &[prompt(1, 1, 1), answer(2, 2), silent]);
    for (state, word) in [
        (State::Running, "running"),
        (State::Unknown, "running"),
        (State::Waiting, "stable"),
        (State::WaitingApproval, "stable"),
        (State::Idle, "stable"),
    ] {
        server.live_view.put(entry(1, state));
        let status = server.get(&format!("{BASE}/status")).await.json();
        assert_eq!(status, serde_json::json!({"status": word, "agent_type": "claude", "transport": "pty"}));
    }
    assert_eq!(
        server.get(&format!("{BASE}/messages")).await.json(),
        serde_json::json!({"messages": [
            {"id": 1, "role": "user", "content": "text 1", "time": at(1)},
            {"id": 2, "role": "agent", "content": "text 2", "time": at(2)},
        ]})
    );
    assert_eq!(server.get("/api/v1/runs/agent-9/agentapi/status").await.error(), (404, "not_found".into()));
}

fn complete(n: u128) -> SessionEntry {
    let mut session = session(n, State::Waiting);
    session.status.reason = Some(Reason::TurnComplete);
    SessionEntry::of(&session, true).unwrap()
}

fn changes_to(to: State) -> StatusChanged {
    StatusChanged { from: Some(State::Running), to, reason: None, activity: None, evidence: vec![] }
}

fn goes_on(sequence: u64, position: u64) -> Event {
    event(1, sequence, position, AssistantMessage { stop: Some(Stop::ToolUse), ..AssistantMessage::default() })
}

#[tokio::test(start_paused = true)]
async fn status_is_stable_only_after_the_answer_is_stored() {
    let (control, _inbox) = commands(1);
    let mut server = TestServer::with(Health::default(), |config| config.control = control);
    let row = server.log.session(&session(1, State::Running));
    server.log.append(row, &[prompt(1, 1, 1), goes_on(2, 2)]);
    // A hook has reported the end of the turn; the answer is not stored yet.
    server.live_view.put(complete(1));
    for path in ["status", "messages"] {
        let path = format!("{BASE}/{path}");
        let mut asked = std::pin::pin!(server.get(&path));
        tokio::select! {
            biased;
            answer = &mut asked => panic!("without the answer: {}", answer.json()),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
    let end = AssistantDelta { stop: Some(Stop::EndTurn), block: Block::Text, ..AssistantDelta::default() };
    server.log.append(row, &[event(1, 3, 3, end)]);
    let messages = server.get(&format!("{BASE}/messages")).await.json()["messages"].clone();
    let contents: Vec<&str> = messages.as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(contents, ["text 1", "text 2", "text 3"], "each part of a message is one");
    assert_eq!(server.get(&format!("{BASE}/status")).await.json()["status"], "stable");
    // The next turn began and ended before its prompt is stored; compaction has no answer.
    let begins =
        |reason| StatusChanged { from: Some(State::Waiting), reason: Some(reason), ..changes_to(State::Running) };
    server.log.append(row, &[event(1, 4, 4, begins(Reason::Compacting))]);
    assert_eq!(server.get(&format!("{BASE}/status")).await.json()["status"], "stable");
    server.log.append(row, &[event(1, 5, 5, begins(Reason::Thinking)), event(1, 6, 6, changes_to(State::Waiting))]);
    let path = format!("{BASE}/messages");
    let mut asked = std::pin::pin!(server.get(&path));
    tokio::select! {
        biased;
        answer = &mut asked => panic!("without the answer: {}", answer.json()),
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn status_becomes_stable_although_the_answer_never_arrives() {
    let (control, _inbox) = commands(1);
    let mut server = TestServer::with(Health::default(), |config| config.control = control);
    let row = server.log.session(&session(1, State::Running));
    server.log.append(row, &[prompt(1, 1, 1)]);
    server.live_view.put(complete(1));
    assert_eq!(server.get(&format!("{BASE}/status")).await.json()["status"], "stable");
    // An interrupted turn has no answer.
    server.live_view.put(entry(1, State::Waiting));
    let began = tokio::time::Instant::now();
    assert_eq!(server.get(&format!("{BASE}/status")).await.json()["status"], "stable");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_message_is_typed_only_while_the_agent_waits() {
    let post = |body: &str| {
        request(Method::POST, &format!("{BASE}/message"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_owned()))
            .unwrap()
    };
    let (control, mut inbox) = commands(4);
    let server = TestServer::with(Health::default(), |config| config.control = control);
    server.live_view.put(entry(1, State::Waiting));
    tokio::spawn(server.live_view.clone().relay_frames(CancellationToken::new()));
    for (body, submit) in [(r#"{"content":"go","type":"user"}"#, true), (r#"{"content":"go","type":"raw"}"#, false)] {
        let serve = async {
            let Some(Command::Input { target, input, reply }) = inbox.recv().await else { panic!() };
            if submit {
                // The turn began and ended before the typing is confirmed.
                announce(&server.live_view, Some(1), entry(1, State::Running));
                announce(&server.live_view, Some(2), entry(1, State::Waiting));
            }
            reply.send(Ok(InputSent { run: RunId::from_bits(7), sent: true, position: 5, forced: false })).unwrap();
            (target, input)
        };
        let (answer, (target, input)) = tokio::join!(server.send(post(body)), serve);
        assert_eq!(answer.json(), serde_json::json!({"ok": true}));
        let typed = Input { text: Some("go".into()), submit, ..Input::default() };
        assert_eq!((target, input), (RunTarget::Session(id(1)), typed));
    }
    for bad in
        [r#"{"content":"","type":"user"}"#, r#"{"content":"a"}"#, r#"{"content":"a","type":"user","force":true}"#]
    {
        assert_eq!(server.send(post(bad)).await.error(), (400, "bad_body".into()), "{bad}");
    }
    server.live_view.put(entry(1, State::Running));
    let answer = server.send(post(r#"{"content":"go","type":"user"}"#)).await;
    assert_eq!(answer.error(), (409, "conflict".into()), "as agentapi, while the agent works");
    assert!(inbox.try_recv().is_err(), "nothing was typed");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_starts_no_turn_times_out() {
    let (control, mut inbox) = commands(4);
    let server = TestServer::with(Health::default(), |config| config.control = control);
    server.live_view.put(entry(1, State::Waiting));
    let serve = async {
        let Some(Command::Input { reply, .. }) = inbox.recv().await else { panic!() };
        reply.send(Ok(InputSent { run: RunId::from_bits(7), sent: true, position: 5, forced: false })).unwrap();
    };
    let message = request(Method::POST, &format!("{BASE}/message"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::from(r#"{"content":"go","type":"user"}"#))
        .unwrap();
    let (answer, ()) = tokio::join!(server.send(message), serve);
    assert_eq!(answer.error(), (408, "timeout".into()));
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("was typed"));
}

#[tokio::test]
async fn the_event_stream_begins_with_the_current_state() {
    let (control, _inbox) = commands(1);
    let mut live = Live::with(|config| config.control = control).await;
    live.live_view.put(entry(1, State::Running));
    let row = live.log.session(&session(1, State::Running));
    live.log.append(row, &[prompt(1, 1, 1)]);
    live.live_view.advance(1);
    let mut stream = live.events(&format!("{BASE}/events"), "").await;
    let told = stream.next().await;
    assert_eq!(
        (told.event.as_str(), told.data),
        ("status_change", serde_json::json!({"status": "running", "agent_type": "claude"}))
    );
    let told = stream.next().await;
    assert_eq!(
        (told.event.as_str(), told.data),
        ("message_update", serde_json::json!({"id": 1, "role": "user", "message": "text 1", "time": at(1)}))
    );
    live.log.append(row, &[answer(2, 2)]);
    publish(&live.live_view, &answer(2, 2));
    let told = stream.next().await;
    assert_eq!((told.event.as_str(), &told.data["message"]), ("message_update", &"text 2".into()));
    // In agentapi, waiting for permission and waiting for a prompt are the same state.
    announce(&live.live_view, Some(2), entry(1, State::Waiting));
    announce(&live.live_view, Some(2), entry(1, State::WaitingApproval));
    announce(&live.live_view, Some(2), entry(1, State::Running));
    let told = [stream.next().await, stream.next().await];
    assert_eq!(told.map(|told| told.data["status"].clone()), ["stable", "running"]);
}
