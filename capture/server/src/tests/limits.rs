//! Limits on one client: just below passes, just above fails.

use super::*;

#[tokio::test]
async fn headers_over_16_kib_are_refused() {
    let live = Live::new().await;
    let head = live.head("GET /healthz");
    let filled = |total: usize| {
        let padding = total - head.len() - "X-Pad: \r\n\r\n".len();
        format!("{head}X-Pad: {}\r\n\r\n", "x".repeat(padding))
    };
    assert!(live.exchange(filled(16_383).as_bytes()).await.starts_with("HTTP/1.1 200"));
    assert!(live.exchange(filled(16_400).as_bytes()).await.starts_with("HTTP/1.1 431"));
    assert!(live.exchange(filled(1 << 20).as_bytes()).await.starts_with("HTTP/1.1 431"));
    let many: String = (0..120).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert!(live.exchange(format!("{head}{many}\r\n").as_bytes()).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let live = Live::new().await;
    live.live_view.put(entry(1, State::Running));
    let put = |length: usize| {
        let body = format!("{{\"enabled\":true{}}}", " ".repeat(length - 16));
        let head = live.head("PUT /api/v1/sessions/agent-1/capture");
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let limit = Limits::default().body_bytes;
    assert!(live.exchange(put(limit).as_bytes()).await.starts_with("HTTP/1.1 503"), "read, and not served");
    assert!(live.exchange(put(limit + 1).as_bytes()).await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn slow_heads_and_bodies_time_out() {
    let live = Live::with(|config| config.limits = tight()).await;
    live.live_view.put(entry(1, State::Running));
    assert_eq!(live.exchange(b"GET /healthz HTTP/1.1\r\nHo").await, "", "closed without an answer");
    let head = live.head("PUT /api/v1/sessions/agent-1/capture");
    let slow = format!("{head}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{");
    assert!(live.exchange(slow.as_bytes()).await.starts_with("HTTP/1.1 408"));
}

#[tokio::test]
async fn smuggled_and_malformed_requests_are_refused() {
    let live = Live::new().await;
    let put = format!("{}Content-Type: application/json\r\n", live.head("PUT /api/v1/sessions/x/capture"));
    let get = live.head("GET /api/v1/sessions");
    let tail = "\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n";
    for raw in [
        format!("{put}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n{tail}"),
        format!("{put}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n{tail}"),
        format!("{put}Transfer-Encoding: chunked\r\n{tail}"),
        format!("{get}Transfer-Encoding: chunked\r\n{tail}"),
        format!("{put}Transfer-Encoding: xchunked\r\n{tail}"),
        format!("{put}Content-Length: 5\r\nContent-Length: 6\r\n{tail}"),
        format!("{put}Content-Length: -1\r\n{tail}"),
        format!("{}\r\n", live.head("GET http://127.0.0.1/api/v1/sessions")),
        format!("{}\r\n", live.head("GET /api/v1/..%2fsessions")),
        format!("{}\r\n", live.head("GET /api/v1/sessions/%00")),
        format!("{}\r\n", live.head("GET /api/v1/sessions\0")),
        format!("{}\r\n", live.head("GET *")),
        "\r\n\r\nGARBAGE\r\n\r\n".to_owned(),
    ] {
        let answer = live.exchange(raw.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{raw:?}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{raw:?}: {answer:?}");
    }
    assert_eq!(live.exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await, "", "HTTP/2 is hung up on");
    assert!(live.get("/healthz").await.starts_with("HTTP/1.1 200"));
}
