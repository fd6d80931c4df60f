//! WebSockets and the Unix socket.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use futures_util::{SinkExt, StreamExt};
use live_view::Peer;
use tokio::net::UnixStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Message,
        client::IntoClientRequest,
        protocol::{
            CloseFrame,
            frame::{
                Frame as WireFrame,
                coding::{CloseCode, Data, OpCode},
            },
        },
    },
};

use super::*;
use crate::{ServeError, SocketError};

pub(super) async fn websocket(live: &Live, query: &str) -> WebSocketStream<TcpStream> {
    websocket_with(live, query, "read").await
}

async fn websocket_with(live: &Live, query: &str, name: &str) -> WebSocketStream<TcpStream> {
    let address = live.serving.address();
    let mut request = format!("ws://{address}/api/v1/ws{query}").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", token(name)).parse().unwrap());
    client_async(request, live.connect().await).await.unwrap().0
}

async fn frame(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) | Message::Pong(_) => {}
            other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => {
                panic!("{other:?}")
            }
        }
    }
}

async fn closed(socket: &mut WebSocketStream<TcpStream>) -> CloseFrame {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Close(Some(close)) => return close,
            Message::Close(None) => panic!("closed without a reason"),
            Message::Text(_) | Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}

#[tokio::test]
async fn a_websocket_sends_a_snapshot_and_then_frames() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running)], 7);
    let mut socket = websocket(&live, "").await;
    let snapshot = frame(&mut socket).await;
    assert_eq!((&snapshot["type"], &snapshot["epoch"]), (&"snapshot".into(), &"epoch-1".into()));
    assert_eq!(snapshot["data"]["as_of"], 7);
    assert_eq!(snapshot["data"]["sessions"][0]["id"], id(1).to_string());
    announce(&live.live_view, None, entry(1, State::Waiting));
    publish(&live.live_view, &prompt(1, 1, 8));
    let ahead = frame(&mut socket).await;
    assert_eq!((&ahead["type"], &ahead["live"], &ahead["position"]), (&"status".into(), &true.into(), &Value::Null));
    let event = frame(&mut socket).await;
    assert_eq!(
        (&event["type"], &event["position"], &event["data"]["kind"]),
        (&"event".into(), &8.into(), &"user.prompt".into())
    );
}

#[tokio::test]
async fn a_subscription_limits_the_sessions_that_are_sent() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Running)], 0);
    let mut socket = websocket(&live, "").await;
    assert_eq!(frame(&mut socket).await["data"]["sessions"].as_array().unwrap().len(), 2);
    socket.send(r#"{"subscribe":["agent-2"]}"#.into()).await.unwrap();
    let subscribed = frame(&mut socket).await;
    assert_eq!(
        (&subscribed["type"], &subscribed["data"]["sessions"][0]),
        (&"subscribed".into(), &id(2).to_string().into())
    );
    let snapshot = frame(&mut socket).await;
    assert_eq!(snapshot["data"]["sessions"].as_array().unwrap().len(), 1);
    publish(&live.live_view, &prompt(1, 1, 1));
    publish(&live.live_view, &prompt(2, 1, 2));
    assert_eq!(frame(&mut socket).await["position"], 2);
    for (messages, code) in [(r#"{"subscribe":["nobody"]}"#, "not_found"), ("{", "bad_body"), ("{}", "bad_body")] {
        socket.send(messages.into()).await.unwrap();
        let answer = frame(&mut socket).await;
        assert_eq!((&answer["type"], &answer["data"]["code"]), (&"error".into(), &code.into()), "{messages}");
    }
}

#[tokio::test]
async fn a_read_only_client_cannot_send_session_commands() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running)], 0);
    let input = r#"{"input":{"do":"prompt","text":"go"},"session":"agent-1","id":7}"#;
    for (name, code) in [("read", "wrong_scope"), ("owner", "unavailable")] {
        let mut socket = websocket_with(&live, "", name).await;
        assert_eq!(frame(&mut socket).await["type"], "snapshot");
        socket.send(input.into()).await.unwrap();
        let answer = frame(&mut socket).await;
        assert_eq!((&answer["type"], &answer["data"]["id"]), (&"input".into(), &7.into()), "{answer}");
        assert_eq!(answer["data"]["error"]["code"], code, "{answer}");
        for bad in [
            r#"{"input":{"do":"prompt"},"session":"agent-1"}"#,
            r#"{"input":{"do":"abort"}}"#,
            r#"{"input":{"do":"fly"}}"#,
        ] {
            socket.send(bad.into()).await.unwrap();
            let answer = frame(&mut socket).await;
            let error = if answer["type"] == "error" { &answer["data"] } else { &answer["data"]["error"] };
            assert!(error["code"] == "bad_body" || error["code"] == "wrong_scope", "{bad} {answer}");
        }
    }
}

#[tokio::test]
async fn a_websocket_resumes_after_a_position() {
    let mut live = Live::new().await;
    live.live_view.put(entry(1, State::Running));
    let row = live.log.session(&session(1, State::Running));
    let events: Vec<Event> = (1..=1200).map(|n| prompt(1, n, n)).collect();
    live.log.append(row, &events);
    live.live_view.advance(1200);
    let mut socket = websocket(&live, "?after=10&epoch=epoch-1").await;
    for n in 11..=1200 {
        assert_eq!(frame(&mut socket).await["position"], n, "more than a page of the log");
    }
    assert_eq!(frame(&mut socket).await["type"], "status");
    socket.send(r#"{"subscribe":["agent-1"],"after":1199,"epoch":"epoch-1"}"#.into()).await.unwrap();
    assert_eq!(frame(&mut socket).await["type"], "subscribed");
    assert_eq!(frame(&mut socket).await["position"], 1200);
}

#[tokio::test]
async fn invalid_client_messages_close_the_websocket() {
    let live = Live::new().await;
    let limit = Limits::default().message_bytes;
    let mut socket = websocket(&live, "").await;
    socket.send(Message::text("x".repeat(limit))).await.unwrap();
    assert_eq!(frame(&mut socket).await["type"], "snapshot");
    assert_eq!(frame(&mut socket).await["type"], "error", "just under the limit it is read");
    socket.send(Message::text("x".repeat(limit + 1))).await.unwrap();
    assert_eq!(closed(&mut socket).await.code, CloseCode::Size);

    let mut socket = websocket(&live, "").await;
    let bad = WireFrame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
    socket.send(Message::Frame(bad)).await.unwrap();
    assert_eq!(closed(&mut socket).await.code, CloseCode::Invalid);

    let mut socket = websocket(&live, "").await;
    socket.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(closed(&mut socket).await.code, CloseCode::Unsupported);

    let mut socket = websocket(&live, "").await;
    for _ in 0..100 {
        let part = WireFrame::message(vec![b'x'; 1024], OpCode::Data(Data::Text), false);
        if socket.send(Message::Frame(part)).await.is_err() {
            break;
        }
    }
    assert!(live.get("/healthz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_slow_client_is_closed_and_told_where_to_resume() {
    let live = Live::with(|config| config.limits.queue_frames = 8).await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Running)], 0);
    let mut slow = websocket(&live, "").await;
    let mut other = websocket(&live, "?session=agent-2").await;
    assert_eq!(frame(&mut slow).await["type"], "snapshot");
    assert_eq!(frame(&mut other).await["type"], "snapshot");
    publish(&live.live_view, &prompt(1, 1, 1));
    assert_eq!(frame(&mut slow).await["position"], 1);
    // All at once, more than the queue's capacity; no server task runs in between.
    for n in 2..100 {
        publish(&live.live_view, &prompt(1, n, n));
    }
    let close = closed(&mut slow).await;
    assert_eq!(close.code, CloseCode::Again);
    assert!(close.reason.starts_with("the client reads too slowly; resume with ?after="), "{}", close.reason);
    assert!(close.reason.ends_with("&epoch=epoch-1"), "{}", close.reason);
    publish(&live.live_view, &prompt(2, 1, 100));
    assert_eq!(frame(&mut other).await["position"], 100, "others notice nothing");
}

#[tokio::test]
async fn client_messages_are_read_while_frames_are_sent() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running)], 0);
    let mut socket = websocket(&live, "").await;
    frame(&mut socket).await;
    let view = live.live_view.clone();
    let busy = tokio::spawn(async move {
        for n in 1.. {
            publish(&view, &prompt(1, n, n));
            tokio::task::yield_now().await;
        }
    });
    socket.send("nonsense".into()).await.unwrap();
    while frame(&mut socket).await["type"] != "error" {}
    busy.abort();
}

#[tokio::test]
async fn a_client_that_answers_no_pings_is_disconnected() {
    let live = Live::with(|config| config.limits.keepalive = Duration::from_millis(5)).await;
    let socket = websocket(&live, "").await;
    let mut stream = socket.into_inner();
    // From here on the pings are not answered, so the server hangs up.
    let end = rest(&mut stream).await;
    assert!(end.matches("\u{fffd}\0").count() >= 3, "it asked first: {end:?}");
}

#[tokio::test]
async fn shutdown_closes_sockets_and_streams() {
    let live = Live::new().await;
    let mut socket = websocket(&live, "").await;
    let mut stream = live.events("/api/v1/stream", "").await;
    stream.next().await;
    let idle = live.connect().await;
    live.cancel.cancel();
    assert_eq!(closed(&mut socket).await.code, CloseCode::Away);
    drop(socket);
    live.serving.stopped().await;
    drop(idle);
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_block_shutdown() {
    let live = Live::with(|config| {
        config.limits.write = Duration::from_secs(3_600);
        config.limits.shutdown = Duration::from_millis(10);
    })
    .await;
    live.live_view.load([entry(1, State::Running)], 0);
    let mut compressed = websocket(&live, "?compress=gzip").await;
    let mut socket = websocket(&live, "").await;
    for socket in [&mut compressed, &mut socket] {
        socket.next().await.unwrap().unwrap();
    }
    // More than the buffers of both ends can hold.
    let text = "x".repeat(64 << 10);
    for n in 1..200 {
        let mut long = prompt(1, n, n);
        long.text = Some(format!("{n} {text}"));
        publish(&live.live_view, &long);
        tokio::task::yield_now().await;
    }
    live.cancel.cancel();
    live.serving.stopped().await;
}

/// The decompressed lines of a stream, up to a line with this text.
struct Lines {
    socket: WebSocketStream<TcpStream>,
    packed: Vec<u8>,
    read: usize,
    text: String,
}

impl Lines {
    async fn new(live: &Live, query: &str) -> Self {
        let socket = websocket(live, &format!("?compress=gzip{query}")).await;
        Self { socket, packed: Vec::new(), read: 0, text: String::new() }
    }

    /// The lines of the next message.
    async fn next(&mut self) -> Vec<Value> {
        let message = self.socket.next().await.unwrap().unwrap();
        let Message::Binary(piece) = message else { panic!("{message:?}") };
        self.packed.extend_from_slice(&piece);
        let mut decoder = flate2::write::GzDecoder::new(Vec::new());
        std::io::Write::write_all(&mut decoder, &self.packed).unwrap();
        std::io::Write::flush(&mut decoder).unwrap();
        let all = String::from_utf8(decoder.get_ref().clone()).unwrap();
        self.text = all[self.read..].to_owned();
        self.read = all.len();
        assert!(self.text.ends_with('\n'), "whole lines");
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["type"].as_str()).collect()
}

#[tokio::test]
async fn compressed_lines_contain_the_time_and_the_resume_position() {
    let live = Live::with(|config| config.clock = Arc::new(|| at(5))).await;
    live.live_view.load([entry(1, State::Running)], 7);
    let mut lines = Lines::new(&live, "&events=none").await;
    let first = lines.next().await;
    assert_eq!(types(&first), ["snapshot", "sent"]);
    assert_eq!(first[1], serde_json::json!({"type":"sent","epoch":"epoch-1","at":at(5).to_string(),"position":7}));
    announce(&live.live_view, Some(8), entry(1, State::Waiting));
    let next = lines.next().await;
    assert_eq!(types(&next), ["status", "sent"]);
    assert_eq!((&next[0]["position"], &next[1]["position"]), (&8.into(), &8.into()));
}

#[tokio::test]
async fn approval_frames_are_sent_before_other_ready_frames() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Running)], 0);
    let mut lines = Lines::new(&live, "&batch_ms=1").await;
    lines.next().await;
    // No server task runs in between.
    publish(&live.live_view, &prompt(1, 1, 1));
    announce(&live.live_view, Some(2), entry(1, State::Waiting));
    let request = Json::from_text(r#"{"id":"a"}"#.into());
    live.live_view.publish(Frame::approval(Some(3), id(2), request));
    let mut came = Vec::new();
    while came.len() < 3 {
        let piece = lines.next().await;
        assert_eq!(piece.last().unwrap()["position"], 3, "only where nothing waits behind it: {piece:?}");
        came.extend(types(&piece).into_iter().filter(|kind| *kind != "sent").map(str::to_owned));
    }
    assert_eq!(came, ["approval", "event", "status"]);
}

#[tokio::test]
async fn a_client_can_change_the_sessions_whose_events_it_receives() {
    let mut live = Live::new().await;
    live.live_view.load([entry(1, State::Running), entry(2, State::Running)], 0);
    let row = live.log.session(&session(2, State::Running));
    let mut socket = websocket(&live, "?events=none").await;
    assert_eq!(frame(&mut socket).await["type"], "snapshot");
    // Not sent, but requested afterwards from the position before it.
    live.log.append(row, &[prompt(2, 1, 1)]);
    publish(&live.live_view, &prompt(2, 1, 1));
    let more = format!(r#"{{"events":["{}"],"after":0,"epoch":"epoch-1","batch_ms":1}}"#, id(2));
    socket.send(more.into()).await.unwrap();
    let event = frame(&mut socket).await;
    assert_eq!((&event["type"], &event["position"]), (&"event".into(), &1.into()));
    assert_eq!(frame(&mut socket).await["type"], "status", "how the session stands, and no snapshot");
    publish(&live.live_view, &prompt(1, 1, 2));
    announce(&live.live_view, Some(3), entry(1, State::Waiting));
    assert_eq!(frame(&mut socket).await["type"], "status", "of all sessions, and events of one");
    for (bad, code) in [(r#"{"events":["nobody"]}"#, "not_found"), (r#"{"batch_ms":5000}"#, "bad_parameter")] {
        socket.send(bad.into()).await.unwrap();
        let answer = frame(&mut socket).await;
        assert_eq!((&answer["type"], &answer["data"]["code"]), (&"error".into(), &code.into()), "{bad}");
    }
}

#[tokio::test]
async fn a_client_that_subscribes_at_once_still_gets_the_snapshot() {
    let live = Live::new().await;
    live.live_view.load([entry(1, State::Running)], 7);
    let mut socket = websocket(&live, "?events=none&batch_ms=1").await;
    socket.send(format!(r#"{{"events":["{}"]}}"#, id(1)).into()).await.unwrap();
    assert_eq!(frame(&mut socket).await["type"], "snapshot");
    announce(&live.live_view, Some(8), entry(1, State::Waiting));
    assert_eq!(frame(&mut socket).await["type"], "status");
}

#[tokio::test]
async fn unsupported_compression_is_refused() {
    let live = Live::new().await;
    for path in ["/api/v1/stream?compress=gzip", "/api/v1/ws?compress=br"] {
        let answer = live.get(path).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("compress"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn unpublished_commits_trigger_a_snapshot() {
    let live = Live::new().await;
    let mut socket = websocket(&live, "").await;
    assert_eq!(frame(&mut socket).await["type"], "snapshot");
    live.live_view.put(entry(1, State::Idle));
    live.live_view.advance(1000);
    let snapshot = frame(&mut socket).await;
    assert_eq!((&snapshot["type"], &snapshot["data"]["as_of"]), (&"snapshot".into(), &1000.into()));
    publish(&live.live_view, &prompt(1, 1, 1001));
    assert_eq!(frame(&mut socket).await["position"], 1001);
}

fn private() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    directory
}

async fn over(path: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_unix_socket_needs_no_token_to_read_but_one_for_admin() {
    let directory = private();
    let path = directory.path().join("capture.sock");
    let live = Live::with(|config| config.socket = Some(path.clone())).await;
    live.live_view.put(entry(1, State::Running));
    assert_eq!(live.serving.socket(), Some(path.as_path()));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let get = |more: &str| format!("GET /api/v1/sessions HTTP/1.1\r\nHost: any\r\nConnection: close\r\n{more}\r\n");
    assert!(over(&path, &get("")).await.starts_with("HTTP/1.1 200"));
    assert!(over(&path, &get("Origin: http://localhost\r\n")).await.starts_with("HTTP/1.1 403"));
    assert!(over(&path, &get("Authorization: Bearer x\r\n")).await.starts_with("HTTP/1.1 401"));
    let put = |more: &str| {
        format!(
            "PUT /api/v1/sessions/agent-1/capture HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: 16\r\n{more}\r\n{{\"enabled\":true}}"
        )
    };
    assert!(over(&path, &put("")).await.starts_with("HTTP/1.1 403"), "admin needs a token here too");
    let bearer = format!("Authorization: Bearer {}\r\n", token("admin"));
    assert!(over(&path, &put(&bearer)).await.starts_with("HTTP/1.1 503"), "let in, and not served");
    live.cancel.cancel();
    live.serving.stopped().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_unix_peer_can_be_denied_control_but_still_read() {
    let directory = private();
    let path = directory.path().join("capture.sock");
    let _live = Live::with(|config| {
        config.socket = Some(path.clone());
        config.control_peer = Some(Arc::new(|peer: Peer| {
            (peer.pid == Some(std::process::id() as i32)).then(|| "its environment has CLAUDECODE".to_owned())
        }));
    })
    .await;
    let request = format!(
        "PUT /api/v1/sessions/x/capture HTTP/1.1\r\nHost: any\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        token("owner")
    );
    let answer = over(&path, &request).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let why = "not allowed from this process, since processes started by an agent may not do this: its environment has CLAUDECODE";
    assert!(answer.contains(why), "{answer}");
    // Every process of our user may read, unless it sends a token that is not ours.
    let read = |more: &str| format!("GET /api/v1/sessions HTTP/1.1\r\nHost: any\r\nConnection: close\r\n{more}\r\n");
    for (more, status) in [
        (String::new(), "200"),
        (format!("Authorization: Bearer {}\r\n", token("control")), "200"),
        (format!("Authorization: Bearer {}\r\n", token("nobody")), "401"),
    ] {
        let answer = over(&path, &read(&more)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{more}: {answer}");
    }
}

#[tokio::test]
async fn the_tcp_port_checks_who_may_control() {
    for (may, capture, list) in [(false, 403, 200), (true, 400, 200)] {
        let server = TestServer::with(Health::default(), |config| {
            config.control_tcp =
                Some(Arc::new(move |_, _| (!may).then(|| crate::TcpRefusal::Agent("started by an agent".to_owned()))));
        });
        for (method, path, expected) in
            [(Method::PUT, "/api/v1/sessions/x/capture", capture), (Method::GET, "/api/v1/sessions", list)]
        {
            let request =
                request(method, path).header(header::CONTENT_TYPE, "application/json").body(Full::from("{")).unwrap();
            assert_eq!(server.send(request).await.status, expected, "{path} {may}");
        }
    }
}

async fn try_socket(path: &Path) -> Result<Serving, ServeError> {
    let mut config = Config::new(tokens());
    config.socket = Some(path.to_owned());
    let log = Log::new();
    serve(config, LiveView::new("e"), log.writer.reader(), Health::default(), CancellationToken::new()).await
}

#[tokio::test]
async fn the_unix_socket_path_must_be_free_and_private() {
    let directory = private();
    let path = directory.path().join("capture.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let serving = try_socket(&path).await.unwrap();
    let second = try_socket(&path).await;
    assert!(matches!(second, Err(ServeError::Socket(SocketError::InUse { .. }))), "{second:?}");
    drop(serving);

    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let refused = try_socket(&file).await;
    assert!(matches!(refused, Err(ServeError::Socket(SocketError::NoSocket { .. }))), "{refused:?}");
    assert_eq!(fs::read(&file).unwrap(), b"x");

    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o750)).unwrap();
    let refused = try_socket(&directory.path().join("other.sock")).await;
    assert!(matches!(refused, Err(ServeError::Socket(SocketError::OpenDirectory { mode: 0o750, .. }))), "{refused:?}");
}
