//! Runs: the requests forwarded to the daemon, and those the server refuses.

use api::{
    runs::{Input, InputSent},
    steering::{CommandOutcome, OutcomeKind, SessionCommand, SessionInputTaken},
};
use events::RunId;
use live_view::{Refusal, RunTarget};
use tokio::sync::mpsc;

use super::{
    commands::{Command, commands},
    *,
};

fn post(path: &str, body: &str) -> Request<Full<Bytes>> {
    request(Method::POST, path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::from(body.to_owned()))
        .unwrap()
}

/// A server whose commands the test answers.
fn server() -> (TestServer, mpsc::Receiver<Command>) {
    let (control, inbox) = commands(4);
    let server = TestServer::with(Health::default(), |config| config.control = control);
    server.live_view.put(entry(1, State::Running));
    (server, inbox)
}

/// Sends input and answers the command it becomes.
async fn asked(request: Request<Full<Bytes>>, answer: Result<InputSent, Refusal>) -> (Answered, (RunTarget, Input)) {
    let (server, mut inbox) = server();
    let serve = async {
        match inbox.recv().await {
            Some(Command::Input { target, input, reply }) => {
                reply.send(answer).unwrap();
                (target, input)
            }
            other => panic!("{other:?}"),
        }
    };
    tokio::join!(server.send(request), serve)
}

#[tokio::test]
async fn input_is_forwarded_unchanged() {
    let nothing = Input::default();
    let sent = InputSent { run: RunId::from_bits(7), sent: true, position: 5, forced: false };
    for (path, target) in [
        ("/api/v1/sessions/agent-1/input", RunTarget::Session(id(1))),
        ("/api/v1/runs/my%20run/input", RunTarget::Run("my run".into())),
        ("/api/v1/runs/agent-1/input", RunTarget::Session(id(1))),
    ] {
        for (body, input) in [
            (r#"{"text":"y\n"}"#, Input { text: Some("y\n".into()), ..nothing.clone() }),
            (r#"{"text":"go","submit":true}"#, Input { text: Some("go".into()), submit: true, ..nothing.clone() }),
            (r#"{"keys":["esc"]}"#, Input { keys: Some(vec!["esc".into()]), ..nothing.clone() }),
            (r#"{"interrupt":true}"#, Input { interrupt: true, ..nothing.clone() }),
            (
                r#"{"text":"y","timeout_ms":5}"#,
                Input { text: Some("y".into()), timeout_ms: Some(5), ..nothing.clone() },
            ),
        ] {
            let (answer, command) = asked(post(path, body), Ok(sent)).await;
            assert_eq!((answer.status.as_u16(), command), (200, (target.clone(), input)), "{body}");
            assert_eq!(answer.json(), serde_json::json!({ "run": RunId::from_bits(7), "sent": true, "position": 5 }));
        }
    }
}

#[tokio::test]
async fn a_session_command_is_forwarded_and_its_outcome_returned() {
    let (server, mut inbox) = server();
    let body = r#"{"do":"steer","text":"left"}"#;
    let serve = async {
        match inbox.recv().await {
            Some(Command::Session { session, command, reply }) => {
                assert_eq!((session, command), (id(1), SessionCommand::Steer { text: "left".into() }));
                let outcome = CommandOutcome { outcome: OutcomeKind::Queued, message: Some("m".into()), entry: None };
                let run = RunId::from_bits(7);
                reply.send(Ok(SessionInputTaken { run, sent: true, position: 5, outcome: Some(outcome) })).unwrap();
            }
            other => panic!("{other:?}"),
        }
    };
    let (answer, ()) = tokio::join!(server.send(post("/api/v1/sessions/agent-1/input", body)), serve);
    assert_eq!(answer.status.as_u16(), 200);
    let told = serde_json::json!({
        "run": RunId::from_bits(7), "sent": true, "position": 5, "outcome": "queued", "message": "m"
    });
    assert_eq!(answer.json(), told);
    for bad in [r#"{"do":"steer"}"#, r#"{"do":"abort","keys":["esc"]}"#, r#"{"model":"a/b"}"#, "{}"] {
        let answer = server.send(post("/api/v1/sessions/agent-1/input", bad)).await;
        assert_eq!(answer.error(), (400, "bad_body".into()), "{bad}");
    }
}

#[tokio::test]
async fn starting_a_session_needs_the_control_scope() {
    let (server, mut inbox) = server();
    for name in ["read", "ingest"] {
        let mut request = post("/api/v1/sessions", r#"{"cwd":"/w"}"#);
        request.headers_mut().insert("authorization", format!("Bearer {}", token(name)).parse().unwrap());
        assert_eq!(server.send(request).await.error(), (403, "wrong_scope".into()), "{name}");
    }
    let unknown = server.send(post("/api/v1/sessions", r#"{"cwd":"/w","approved":true}"#)).await;
    assert_eq!(unknown.error(), (400, "bad_body".into()));
    assert!(inbox.try_recv().is_err(), "nothing was asked for");
}

#[tokio::test]
async fn a_refused_request_returns_the_reason() {
    let no = || Err(Refusal::Conflict("a dialog is open".into()));
    let (answer, _) = asked(post("/api/v1/sessions/agent-1/input", r#"{"text":"y"}"#), no()).await;
    assert_eq!(answer.error(), (409, "conflict".into()));
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("a dialog is open"));
    let (server, mut inbox) = server();
    let serve = async {
        let Some(Command::Screen { target, reply }) = inbox.recv().await else { panic!() };
        reply.send(Err(Refusal::NotFound("no run".into()))).unwrap();
        target
    };
    let (answer, target) = tokio::join!(server.get("/api/v1/runs/x/screen"), serve);
    assert_eq!(answer.error(), (404, "not_found".into()));
    assert_eq!(target, RunTarget::Run("x".into()));
    let answer = server.get("/api/v1/runs/agent-9/screen").await;
    assert_eq!(answer.error(), (404, "not_found".into()), "neither a run nor a session");
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("agent-9"));
}

#[tokio::test]
async fn empty_or_contradictory_input_is_refused_before_forwarding() {
    let (server, mut inbox) = server();
    for bad in [
        "",
        "{}",
        r#"{"interrupt":false}"#,
        r#"{"text":"a","keys":["b"]}"#,
        r#"{"text":"a","interrupt":true}"#,
        r#"{"text":1}"#,
        r#"{"keys":"enter"}"#,
        r#"{"text":"a","approved":true}"#,
    ] {
        let answer = server.send(post("/api/v1/sessions/agent-1/input", bad)).await;
        assert_eq!(answer.error(), (400, "bad_body".into()), "{bad}");
    }
    let form = request(Method::POST, "/api/v1/sessions/agent-1/input")
        .header(header::CONTENT_TYPE, "text/plain")
        .body(Full::from(r#"{"text":"a"}"#))
        .unwrap();
    assert_eq!(server.send(form).await.status, 415);
    assert!(inbox.try_recv().is_err(), "nobody was asked");
    let nobody = TestServer::new();
    let list = request(Method::GET, "/api/v1/runs").body(Full::default()).unwrap();
    assert_eq!(nobody.send(list).await.error(), (503, "unavailable".into()));
}

#[tokio::test]
async fn a_host_may_connect_only_over_the_unix_socket() {
    let (server, _inbox) = server();
    let mut hello = request(Method::GET, "/api/v1/host").body(Full::default()).unwrap();
    assert_eq!(server.get("/api/v1/host").await.status, 426);
    hello.headers_mut().insert(header::UPGRADE, http::HeaderValue::from_static("capture-host/1"));
    assert_eq!(server.send(hello).await.error(), (403, "unix_only".into()));
}
