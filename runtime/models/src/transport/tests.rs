use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::*;
use crate::{
    Api, EncodedRequest, EndReason, FailureKind, Secret, StreamEvent, Transcript,
    codec::tests::{prefix, target, user},
};

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const ANSWER: &str = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n\
    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
    data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";
const PING: &[u8] = b"event: ping\ndata: {\"type\":\"ping\"}\n\n: comment\n\n";

/// A server for one request; returns the request's bytes.
fn serve(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        let text = loop {
            let read = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&request).into_owned();
            let length =
                text.split_once("content-length: ").and_then(|(_, rest)| rest.split_once("\r\n")?.0.parse().ok());
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
            if body.is_some() && body >= length {
                break text;
            }
        };
        answer(&mut stream);
        text
    });
    (url, serving)
}

fn request() -> EncodedRequest {
    let mut transcript = Transcript::new(target(Api::Anthropic), &prefix()).unwrap();
    transcript.push(&user("Hello"));
    transcript.request(None, &[]).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn events(url: &str, patience: Patience) -> Vec<StreamEvent> {
    let client = ModelClient::loopback("test").unwrap();
    let mut endpoint = ModelEndpoint::new(url, Some(Secret::new("sk-secret".to_owned()))).unwrap();
    endpoint.patience = patience;
    let mut exchange = client.exchange(&endpoint, &request(), "1").unwrap();
    let mut events = Vec::new();
    while let Some(event) = exchange.next().await {
        events.push(event);
    }
    events
}

fn failure(answer: impl FnOnce(&mut TcpStream) + Send + 'static, patience: Patience) -> crate::Failure {
    let (url, serving) = serve(answer);
    let events = run(events(&url, patience));
    serving.join().unwrap();
    match events.last() {
        Some(StreamEvent::Failed(failure)) => failure.clone(),
        other => panic!("{other:?}"),
    }
}

fn send(stream: &mut TcpStream, text: &str) {
    // The client may have closed the connection.
    stream.write_all(text.as_bytes()).ok();
}

#[test]
fn a_request_is_sent_with_its_key_and_its_answer_is_read() {
    let (url, serving) = serve(|stream| send(stream, &format!("{STREAM}{ANSWER}")));
    let events = run(events(&format!("{url}/v1/"), Patience::default()));
    assert_eq!(events.last(), Some(&StreamEvent::Ended(EndReason::Stop)));
    let sent = serving.join().unwrap();
    assert!(sent.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{sent}");
    for header in ["x-api-key: sk-secret\r\n", "anthropic-version: 2023-06-01\r\n", "user-agent: test\r\n"] {
        assert!(sent.contains(header), "{header} in {sent}");
    }
    assert!(sent.ends_with(&String::from_utf8(request().body.to_vec().unwrap()).unwrap()));
}

#[test]
fn server_errors_are_failures_that_do_not_reveal_the_key() {
    let body = r#"{"error":{"type":"authentication_error","message":"wrong key sk-secret"}}"#;
    let head = format!("HTTP/1.1 401 No\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    let failed = failure(move |stream| send(stream, &format!("{head}{body}")), Patience::default());
    assert_eq!((failed.kind, failed.status), (FailureKind::Auth, Some(401)));
    assert!(!format!("{failed:?}").contains("sk-secret"), "{failed:?}");
    let html = |stream: &mut TcpStream| {
        send(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>")
    };
    assert_eq!(failure(html, Patience::default()).kind, FailureKind::Network);
    let later =
        |stream: &mut TcpStream| send(stream, "HTTP/1.1 529 Busy\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n");
    let failed = failure(later, Patience::default());
    assert_eq!((failed.kind, failed.retry_after), (FailureKind::Overloaded, Some(Duration::from_secs(3))));
}

#[test]
fn redirects_are_not_followed() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let head =
        format!("HTTP/1.1 307 Go\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n", target.local_addr().unwrap());
    let failed = failure(move |stream| send(stream, &head), Patience::default());
    assert_eq!(failed.kind, FailureKind::BadRequest);
    assert!(target.accept().is_err(), "the key went elsewhere");
}

#[test]
fn an_answer_that_is_cut_is_a_failure() {
    let failed =
        failure(|stream| send(stream, &format!("{STREAM}{}", &ANSWER[..ANSWER.len() / 2])), Patience::default());
    assert_eq!(failed.kind, FailureKind::Network);
}

/// Writes until the client closes the connection.
fn pings(stream: &mut TcpStream) {
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    while stream.write_all(PING).is_ok() {}
}

#[test]
fn pings_do_not_keep_an_answer_alive() {
    let short = Duration::from_millis(200);
    let patience = Patience::default().with_silence(short, Duration::from_secs(600)).unwrap();
    let before = failure(
        |stream| {
            send(stream, STREAM);
            pings(stream);
        },
        patience,
    );
    assert_eq!(before.kind, FailureKind::Stalled);
    assert!(before.message.contains("no answer"), "{before}");
    // After the first output, the other limit applies.
    let patience = Patience::default().with_silence(Duration::from_secs(600), short).unwrap();
    let half = ANSWER.find("data: {\"type\":\"content_block_stop").unwrap();
    let after = failure(
        move |stream| {
            send(stream, &format!("{STREAM}{}", &ANSWER[..half]));
            pings(stream);
        },
        patience,
    );
    assert_eq!(after.kind, FailureKind::Stalled);
    assert!(after.message.contains("nothing more arrived"), "{after}");
    // A server that sends output slowly without end reaches the total limit.
    let patience = Patience { total: short, ..Patience::default() };
    let drip = move |stream: &mut TcpStream| {
        send(stream, &format!("{STREAM}{}", &ANSWER[..half]));
        let word = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\".\"}}\n\n";
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        while stream.write_all(word.as_bytes()).is_ok() {}
    };
    assert!(matches!(failure(drip, patience).kind, FailureKind::Stalled | FailureKind::Unknown));
}

#[test]
fn cancelling_a_wait_for_an_answer_loses_no_events() {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let (url, serving) = serve(move |stream| {
        // The head is sent after a caller has waited for it.
        gone.recv().unwrap();
        send(stream, &format!("{STREAM}{ANSWER}"));
    });
    let client = ModelClient::loopback("test").unwrap();
    let endpoint = ModelEndpoint::new(&url, None).unwrap();
    let mut exchange = client.exchange(&endpoint, &request(), "1").unwrap();
    let events = run(async {
        for _ in 0..3 {
            let waited = tokio::time::timeout(Duration::from_millis(5), exchange.next()).await;
            assert!(waited.is_err());
        }
        go.send(()).unwrap();
        let mut events = Vec::new();
        while let Some(event) = exchange.next().await {
            events.push(event);
        }
        events
    });
    assert_eq!(events.last(), Some(&StreamEvent::Ended(EndReason::Stop)));
    // The server accepts only one request.
    serving.join().unwrap();
}

/// A proxy in front of an https server with the certificate of the fixtures, which is for `hooks.test`. Accepts one
/// request.
fn secure_server() -> String {
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(fixture("server.pem")).unwrap()],
            PrivateKeyDer::from_pem_file(fixture("server.key.pem")).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, mut byte, mut head) = (listener.accept().unwrap().0, [0], Vec::new());
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.extend_from_slice(&byte);
        }
        assert!(head.starts_with(b"CONNECT "));
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
        // A client that does not trust the certificate closes the connection here.
        while let Ok(1..) = stream.read(&mut piece).inspect(|read| seen.extend_from_slice(&piece[..*read])) {
            if seen.ends_with(br#""stream":true}"#) {
                stream.write_all(format!("{STREAM}{ANSWER}").as_bytes()).unwrap();
                stream.conn.send_close_notify();
                stream.flush().unwrap();
                return;
            }
        }
    });
    url
}

fn fixture(name: &str) -> String {
    format!("{}/../../fixtures/notifier/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn certificates_are_checked() {
    let authority = CertificateDer::from_pem_file(fixture("authority.pem")).unwrap().to_vec();
    for (host, more_roots) in
        [("hooks.test", vec![authority.clone()]), ("other.test", vec![authority]), ("hooks.test", Vec::new())]
    {
        let trusted = host == "hooks.test" && !more_roots.is_empty();
        let proxy = Some(Secret::new(secure_server()));
        let client = ModelClient::new(&ClientOptions { proxy, more_roots, ..ClientOptions::default() }).unwrap();
        let endpoint = ModelEndpoint::new(&format!("https://{host}"), None).unwrap();
        let mut exchange = client.exchange(&endpoint, &request(), "1").unwrap();
        let events = run(async {
            let mut events = Vec::new();
            while let Some(event) = exchange.next().await {
                events.push(event);
            }
            events
        });
        assert_eq!(events.last() == Some(&StreamEvent::Ended(EndReason::Stop)), trusted, "{host}: {events:?}");
        if let Some(StreamEvent::Failed(failed)) = events.last() {
            assert!(failed.message.contains("certificate"), "{failed}");
        }
    }
}

#[test]
fn a_proxy_is_not_used_for_loopback_hosts() {
    let (proxy, proxying) = serve(|stream| send(stream, &format!("{STREAM}{ANSWER}")));
    let (near, serving) = serve(|stream| send(stream, &format!("{STREAM}{ANSWER}")));
    let options = ClientOptions { proxy: Some(Secret::new(proxy)), ..ClientOptions::default() };
    let client = ModelClient::new(&options).unwrap();
    for url in [near.as_str(), "http://model.invalid"] {
        let endpoint = ModelEndpoint::new(url, None).unwrap();
        let mut exchange = client.exchange(&endpoint, &request(), "1").unwrap();
        let first = run(async { exchange.next().await });
        assert!(matches!(first, Some(StreamEvent::Began { .. })), "{url}: {first:?}");
    }
    assert!(serving.join().unwrap().starts_with("POST /v1/messages HTTP/1.1\r\n"));
    assert!(proxying.join().unwrap().starts_with("POST http://model.invalid/v1/messages HTTP/1.1\r\n"));
}

#[test]
fn a_refused_connection_is_a_network_failure() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let events = run(events(&url, Patience::default()));
    let [StreamEvent::Failed(failed)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(failed.kind, FailureKind::Network);
    let host = url.trim_start_matches("http://");
    assert!(failed.to_string() == format!("cannot connect to {host}: connection refused"), "{failed}");
}

#[test]
fn keys_are_sent_only_over_https_or_to_loopback() {
    let key = || Some(Secret::new("k".to_owned()));
    let check = |url: &str, key, works| assert_eq!(ModelEndpoint::new(url, key).is_ok(), works, "{url}");
    check("https://api.example.com", key(), true);
    check("http://api.example.com", key(), false);
    check("http://api.example.com", None, true);
    check("http://localhost:1", key(), true);
    check("http://127.1.2.3:1", key(), true);
    check("http://[::1]:1", key(), true);
    check("http://localhost.example.com", key(), false);
    check("https://user:word@api.example.com", None, false);
    check("ftp://localhost", None, false);
    let patience = Patience::default();
    assert!(patience.with_silence(Duration::ZERO, Duration::from_secs(1)).is_err());
    assert!(patience.with_silence(Duration::from_secs(1), Duration::from_secs(16 * 60)).is_err());
}
