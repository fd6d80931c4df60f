//! OTLP/HTTP as exporters use it: compressed, chunked, too large, and while the server is busy.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use live_view::{Telemetry, TelemetryKind, TelemetryRefusal};
use tokio::sync::mpsc;

use super::{
    commands::{Command, commands},
    *,
};

fn logs(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let builder = request(Method::POST, "/v1/logs").header(header::CONTENT_TYPE, "application/json");
    builder.body(Full::from(body.into())).unwrap()
}

fn packed(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = logs(body);
    request.headers_mut().insert(header::CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
    request
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn server(adjust: impl FnOnce(&mut Limits)) -> (TestServer, mpsc::Receiver<Command>) {
    let (control, inbox) = commands(4);
    let server = TestServer::with(Health::default(), |config| {
        config.control = control;
        adjust(&mut config.limits);
    });
    (server, inbox)
}

/// Sends a request, and answers the message the daemon receives.
async fn told(
    request: Request<Full<Bytes>>,
    answer: Result<Vec<u8>, TelemetryRefusal>,
) -> (Answered, Option<Telemetry>) {
    let (server, mut inbox) = server(|_| ());
    let serve = async {
        match inbox.recv().await {
            Some(Command::Telemetry { message, reply }) => {
                reply.send(answer).unwrap();
                Some(message)
            }
            other => panic!("{other:?}"),
        }
    };
    tokio::join!(server.send(request), serve)
}

#[tokio::test]
async fn a_message_is_forwarded_and_answered_in_its_encoding() {
    for (path, kind) in [
        ("/v1/logs", TelemetryKind::Logs),
        ("/v1/traces", TelemetryKind::Traces),
        ("/v1/metrics", TelemetryKind::Metrics),
    ] {
        for (content_type, protobuf) in [
            ("application/json", false),
            ("application/json; charset=utf-8", false),
            ("application/x-protobuf", true),
            ("Application/X-Protobuf", true),
        ] {
            let builder = request(Method::POST, path).header(header::CONTENT_TYPE, content_type);
            let request = builder.body(Full::from("message")).unwrap();
            let (answer, message) = told(request, Ok(b"done".to_vec())).await;
            let message = message.unwrap();
            assert_eq!((message.kind, message.protobuf, message.body.as_slice()), (kind, protobuf, &b"message"[..]));
            assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"done"[..]));
            let own = if protobuf { "application/x-protobuf" } else { "application/json" };
            assert_eq!(answer.head.headers[header::CONTENT_TYPE], own);
        }
    }
}

#[tokio::test]
async fn a_gzipped_message_is_inflated() {
    let (_, message) = told(packed(gzip(b"a message")), Ok(Vec::new())).await;
    assert_eq!(message.unwrap().body, b"a message");
    // Two consecutive streams form one body.
    let (_, message) = told(packed([gzip(b"one "), gzip(b"two")].concat()), Ok(Vec::new())).await;
    assert_eq!(message.unwrap().body, b"one two");
    let mut identity = logs("plain");
    identity.headers_mut().insert(header::CONTENT_ENCODING, http::HeaderValue::from_static("identity"));
    let (_, message) = told(identity, Ok(Vec::new())).await;
    assert_eq!(message.unwrap().body, b"plain");
}

#[tokio::test]
async fn other_content_encodings_are_refused() {
    let (server, _inbox) = server(|_| ());
    for coding in ["zstd", "deflate", "br", "gzip, gzip", "gzip,", "x-gzip"] {
        let mut request = logs("{}");
        request.headers_mut().insert(header::CONTENT_ENCODING, coding.parse().unwrap());
        let answer = server.send(request).await;
        assert_eq!(answer.error(), (415, "unknown_coding".into()), "{coding}");
        assert_eq!(answer.head.headers[header::ACCEPT_ENCODING], "gzip");
    }
    let mut twice = packed(gzip(b"{}"));
    twice.headers_mut().append(header::CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
    assert_eq!(server.send(twice).await.status, 415);
}

#[tokio::test]
async fn damaged_bodies_are_refused() {
    let (server, mut inbox) = server(|_| ());
    let whole = gzip(&b"a message ".repeat(100));
    let mut wrong_sum = whole.clone();
    let sum = wrong_sum.len() - 6;
    wrong_sum[sum] ^= 1;
    let mut wrong_length = whole.clone();
    *wrong_length.last_mut().unwrap() ^= 1;
    let mut trailing = whole.clone();
    trailing.extend_from_slice(b"garbage");
    for (what, body) in [
        ("no gzip", b"{}".to_vec()),
        ("cut short", whole[..whole.len() / 2].to_vec()),
        ("without its trailer", whole[..whole.len() - 3].to_vec()),
        ("wrong sum", wrong_sum),
        ("wrong length", wrong_length),
        ("with more behind it", trailing),
    ] {
        let answer = server.send(packed(body)).await;
        assert_eq!(answer.error(), (400, "bad_body".into()), "{what}");
    }
    assert!(inbox.try_recv().is_err(), "capture was not bothered");
    let (answer, _) = told(logs("nonsense"), Err(TelemetryRefusal::Malformed("expected a value".into()))).await;
    assert_eq!(answer.error(), (400, "bad_body".into()));
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("expected a value"));
}

#[tokio::test]
async fn a_body_over_20_mib_inflated_is_refused() {
    let limit = Limits::default().telemetry_bytes;
    let (_, message) = told(packed(gzip(&vec![b' '; limit])), Ok(Vec::new())).await;
    assert_eq!(message.unwrap().body.len(), limit);
    let (server, mut inbox) = server(|_| ());
    assert_eq!(server.send(packed(gzip(&vec![b' '; limit + 1]))).await.error(), (413, "body_too_large".into()));
    assert_eq!(server.send(logs(vec![b' '; limit + 1])).await.error(), (413, "body_too_large".into()));
    assert!(inbox.try_recv().is_err());
}

/// The peak memory of this process, bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn a_gzip_bomb_is_refused_with_bounded_memory() {
    // 1 GiB of zeros in some 5 MiB.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..1024 {
        encoder.write_all(&[0; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 8 << 20, "{}", bomb.len());
    let (server, _inbox) = server(|_| ());
    let before = peak();
    for _ in 0..8 {
        assert_eq!(server.send(packed(bomb.clone())).await.error(), (413, "body_too_large".into()));
    }
    let grown = peak() - before;
    assert!(grown < 96 << 20, "{} MiB more for a body of {} MiB", grown >> 20, bomb.len() >> 20);
}

#[tokio::test]
async fn chunked_bodies_are_read_over_a_connection() {
    let (control, mut inbox) = commands(4);
    let live = Live::with(|config| {
        config.control = control;
        config.limits.telemetry_bytes = 100;
    })
    .await;
    let head = |more: &str| format!("{}{more}\r\n", live.head("POST /v1/logs"));
    let chunked = head("Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n");
    let serve = async {
        let Some(Command::Telemetry { message, reply }) = inbox.recv().await else { panic!() };
        reply.send(Ok(b"{}".to_vec())).unwrap();
        message.body
    };
    let request = format!("{chunked}3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
    let (answer, body) = tokio::join!(live.exchange(request.as_bytes()), serve);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(body, b"abcdefg");
    let long = format!("{chunked}65\r\n{}\r\n", "x".repeat(101));
    assert!(live.exchange(long.as_bytes()).await.starts_with("HTTP/1.1 413"), "before its end");
    let broken = format!("{chunked}3\r\nabcdef\r\n");
    let answer = live.exchange(broken.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn a_stalled_body_times_out() {
    let (control, _inbox) = commands(4);
    let live = Live::with(|config| {
        config.control = control;
        config.limits = tight();
    })
    .await;
    let head = live.head("POST /v1/logs");
    let slow = format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab");
    assert!(live.exchange(slow.as_bytes()).await.starts_with("HTTP/1.1 408"));
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_refuses_telemetry_with_retry_after() {
    for (refusal, status, code) in
        [(TelemetryRefusal::Busy, 429, "busy"), (TelemetryRefusal::Stuck, 503, "unavailable")]
    {
        let (answer, _) = told(logs("{}"), Err(refusal)).await;
        assert_eq!(answer.error(), (status, code.to_owned()));
        assert_eq!(answer.head.headers[header::RETRY_AFTER], "2");
    }
    // The channel to the daemon has room for four, and the daemon answers none of them in time.
    let (server, inbox) = server(|limits| limits.telemetry_at_once = 6);
    let answers = futures_util::future::join_all((0..5).map(|_| server.send(logs("{}")))).await;
    for answer in answers {
        assert_eq!(answer.error(), (429, "busy".into()));
        assert_eq!(answer.head.headers[header::RETRY_AFTER], "2");
    }
    assert_eq!(inbox.len(), 4);
}

#[tokio::test]
async fn bodies_beyond_the_concurrency_limit_are_refused() {
    let (server, mut inbox) = server(|limits| limits.telemetry_at_once = 1);
    let serve = async {
        let Some(Command::Telemetry { reply, .. }) = inbox.recv().await else { panic!() };
        let second = server.send(logs("{}")).await;
        reply.send(Ok(b"{}".to_vec())).unwrap();
        second.error()
    };
    let (first, second) = tokio::join!(server.send(logs("{}")), serve);
    assert_eq!((first.status.as_u16(), second), (200, (429, "busy".into())));
    let (third, _) = tokio::join!(server.send(logs("{}")), async { inbox.recv().await.map(|_| ()) });
    assert_eq!(third.status, 503, "the place is free again");
}

#[tokio::test(start_paused = true)]
async fn a_failed_store_is_reported_as_unavailable_and_not_as_busy() {
    let (control, inbox) = commands(4);
    let health = Health { trouble: Arc::new(|| Some("the disk is full".into())), ..Health::default() };
    let server = TestServer::with(health, |config| config.control = control);
    let answer = server.send(logs("{}")).await;
    assert_eq!(answer.error(), (503, "unavailable".into()));
    assert_eq!(answer.head.headers[header::RETRY_AFTER], "2");
    drop(inbox);
}
