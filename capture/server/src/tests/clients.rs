//! The connection limits of each client. Addresses in 127.0.1.0/24 stand for other users.

use std::{net::Ipv4Addr, os::unix::fs::PermissionsExt};

use tokio::net::{TcpSocket, UnixStream};

use super::*;
use crate::{ClientLimits, TcpUser};

/// Maps 127.0.1.N to user N, 127.0.2.1 to an unknown user, and all other addresses to us.
fn users() -> TcpUser {
    Arc::new(|from, _| match from.ip() {
        std::net::IpAddr::V4(ip) if ip.octets()[2] == 1 => Some(100_000 + u32::from(ip.octets()[3])),
        std::net::IpAddr::V4(ip) if ip.octets()[2] == 2 => None,
        std::net::IpAddr::V4(_) | std::net::IpAddr::V6(_) => Some(rustix::process::getuid().as_raw()),
    })
}

async fn live(clients: ClientLimits) -> Live {
    Live::with(|config| {
        config.tcp_user = Some(users());
        config.limits.clients = clients;
    })
    .await
}

/// A connection of another user.
async fn connect(live: &Live, from: Ipv4Addr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(live.serving.address()).await.unwrap()
}

const MALLORY: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
const NOBODY: Ipv4Addr = Ipv4Addr::new(127, 0, 2, 1);

/// Sends a request over a connection and returns the response; empty if the server closed the connection.
async fn ask(live: &Live, stream: &mut TcpStream, path: &str) -> String {
    let head = format!("{}\r\n", live.head(&format!("GET {path}")));
    let _ = stream.write_all(head.as_bytes()).await;
    rest(stream).await
}

/// Retries until there is a response: a closed connection's slot is freed a little later.
async fn answered(live: &Live, from: Ipv4Addr) {
    loop {
        let mut stream = connect(live, from).await;
        if ask(live, &mut stream, "/healthz").await.starts_with("HTTP/1.1 200") {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn another_user_is_limited_to_few_connections() {
    let limits = ClientLimits::default();
    let live = live(limits).await;
    // Half a head on each connection, without a token, and never completed.
    let mut held = Vec::new();
    for _ in 0..limits.another {
        let mut stream = connect(&live, MALLORY).await;
        stream.write_all(b"GET / HT").await.unwrap();
        held.push(stream);
    }
    let mut over = connect(&live, MALLORY).await;
    assert_eq!(ask(&live, &mut over, "/healthz").await, "", "one over the limit");
    for from in [NOBODY, Ipv4Addr::new(127, 0, 1, 2), Ipv4Addr::LOCALHOST] {
        let mut stream = connect(&live, from).await;
        assert!(ask(&live, &mut stream, "/healthz").await.starts_with("HTTP/1.1 200"), "{from}");
    }
    let last = held.last_mut().unwrap();
    last.write_all(b"TP/1.1\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(rest(last).await.starts_with("HTTP/1.1 403"), "the last under the limit is served");
    held.pop();
    answered(&live, MALLORY).await;
}

#[tokio::test]
async fn all_other_clients_together_leave_room_for_the_owner() {
    let live = live(ClientLimits { another: 2, others: 3, ..ClientLimits::default() }).await;
    let mut held = Vec::new();
    for from in [MALLORY, MALLORY, NOBODY] {
        let mut stream = connect(&live, from).await;
        // After the response to a first request, the connection is counted.
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        stream.read_u8().await.unwrap();
        held.push(stream);
    }
    let mut over = connect(&live, NOBODY).await;
    assert_eq!(ask(&live, &mut over, "/healthz").await, "");
    assert!(live.get("/healthz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn half_open_connections_of_others_do_not_block_the_owner() {
    let live = live(ClientLimits::default()).await;
    let mut flood = Vec::new();
    for n in 0..300_u16 {
        let from = if n % 2 == 0 { MALLORY } else { NOBODY };
        flood.push(connect(&live, from).await);
    }
    // Ours comes last, so all of theirs were handled by then.
    assert!(live.get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(live.get("/api/v1/sessions").await.starts_with("HTTP/1.1 200"));
    let open = flood.into_iter().filter(|stream| {
        let read = rustix::net::recv(stream, &mut [0; 1], rustix::net::RecvFlags::DONTWAIT);
        read == Err(rustix::io::Errno::AGAIN)
    });
    assert_eq!(open.count(), 2 * ClientLimits::default().another);
}

#[tokio::test]
async fn other_users_have_less_time_to_send_a_request_head() {
    let limits = ClientLimits { others_read: Duration::from_millis(50), ..ClientLimits::default() };
    let live = live(limits).await;
    let mut ours = live.connect().await;
    ours.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.unwrap();
    let mut theirs = connect(&live, MALLORY).await;
    theirs.write_all(b"GET /healthz HTTP/1.1\r\nHo").await.unwrap();
    assert_eq!(rest(&mut theirs).await, "", "closed without an answer");
    let end = format!("{}\r\nConnection: close\r\n\r\n", live.serving.address());
    ours.write_all(end.as_bytes()).await.unwrap();
    assert!(rest(&mut ours).await.starts_with("HTTP/1.1 200"));
}

async fn over(path: &std::path::Path, request: &str) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut part = [0; 4096];
    let n = stream.read(&mut part).await.unwrap();
    String::from_utf8_lossy(&part[..n]).into_owned()
}

#[tokio::test]
async fn the_unix_socket_has_reserved_capacity() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = directory.path().join("capture.sock");
    let live = Live::with(|config| {
        config.socket = Some(path.clone());
        config.limits.clients = ClientLimits {
            requests: 3,
            requests_reserved: 1,
            streams: 2,
            streams_reserved: 1,
            ..ClientLimits::default()
        };
    })
    .await;
    let stream = live.events("/api/v1/stream", "").await;
    let refused = live.get("/api/v1/stream").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too_many_streams"), "{refused}");
    let streamed =
        format!("{}Accept: text/event-stream\r\nConnection: close\r\n\r\n", live.head("GET /api/stream/status"));
    let refused = live.exchange(streamed.as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too_many_streams"), "{refused}");

    let mut held = Vec::new();
    for _ in 0..2 {
        let mut connection = live.connect().await;
        connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
        connection.read_u8().await.unwrap();
        held.push(connection);
    }
    let refused = live.get("/healthz").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too many connections"), "{refused}");
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n");
    assert!(over(&path, &get("/api/v1/sessions")).await.starts_with("HTTP/1.1 200"));

    let mut last = UnixStream::connect(&path).await.unwrap();
    last.write_all(get("/api/v1/stream").as_bytes()).await.unwrap();
    let mut head = [0; 12];
    last.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let refused = over(&path, &get("/api/v1/stream")).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too_many_streams"), "{refused}");
    drop((stream, held, last));
    while !live.get("/healthz").await.starts_with("HTTP/1.1 200") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn streams_up_to_their_limit_leave_room_for_requests() {
    let limits =
        ClientLimits { requests: 8, requests_reserved: 4, streams: 40, streams_reserved: 8, ..ClientLimits::default() };
    let live = live(limits).await;
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(live.events("/api/v1/stream", "").await);
    }
    assert!(live.get("/api/v1/stream").await.starts_with("HTTP/1.1 503"));
    assert!(live.get("/api/v1/sessions").await.starts_with("HTTP/1.1 200"));
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    let head = live.head("GET /api/v1/ws").replace("Connection: close\r\n", "");
    let websocket = || async {
        let mut stream = live.connect().await;
        stream.write_all(format!("{head}{upgrade}").as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        (answer, stream)
    };
    assert_eq!(&websocket().await.0, b"HTTP/1.1 503", "WebSockets are streams");
    streams.pop();
    loop {
        let (answer, _stream) = websocket().await;
        if &answer == b"HTTP/1.1 101" {
            assert!(live.get("/api/v1/stream").await.starts_with("HTTP/1.1 503"), "it took the place");
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn another_users_wrong_tokens_do_not_lock_out_the_owner() {
    let live = live(ClientLimits::default()).await;
    let wrong = |live: &Live| live.head("GET /api/v1/sessions").replace(&token("owner"), &"x".repeat(43)) + "\r\n";
    for n in 1..=21 {
        let mut theirs = connect(&live, MALLORY).await;
        theirs.write_all(wrong(&live).as_bytes()).await.unwrap();
        let answer = rest(&mut theirs).await;
        let expected = if n == 21 { "HTTP/1.1 429" } else { "HTTP/1.1 401" };
        assert!(answer.starts_with(expected), "{n}: {answer}");
    }
    assert!(live.exchange(wrong(&live).as_bytes()).await.starts_with("HTTP/1.1 401"));
    assert!(live.get("/api/v1/sessions").await.starts_with("HTTP/1.1 200"));
}
