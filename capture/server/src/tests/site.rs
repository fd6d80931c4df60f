//! The server's own routes.

use std::sync::atomic::{AtomicU8, Ordering};

use super::*;
use api::{health::SourceHealth, routes::ROUTES};
use prometheus_client::{metrics::counter::ConstCounter, registry::Registry};

fn source() -> SourceHealth {
    SourceHealth {
        name: "claude \"transcripts\"".into(),
        active: true,
        lag_ms: Some(12),
        last_event_at: None,
        dropped: 1,
        coalesced: 2,
        errors: 3,
        files: 4,
        reading: None,
        detail: None,
        trouble: Some("nothing arrives".into()),
    }
}

#[tokio::test]
async fn health_sources_and_metrics_are_served() {
    let mut metrics = Registry::default();
    metrics.register("capture_more", "More", ConstCounter::new(1_u64));
    let health = Health {
        trouble: Arc::new(|| Some("the disk is full".into())),
        sources: Arc::new(|| vec![source(), source()]),
        metrics,
    };
    let server = TestServer::with(health, |_| ());
    server.live_view.put(entry(1, State::Running));
    server.live_view.advance(9);
    let health = server.get("/healthz").await;
    assert_eq!(
        (health.status, &*health.body),
        (StatusCode::SERVICE_UNAVAILABLE, &b"not ready: the disk is full\n"[..])
    );
    let sources = server.get("/api/v1/health/sources").await.json();
    assert_eq!(sources, serde_json::json!({ "sources": [source(), source()] }));
    let metrics = server.get("/metrics").await;
    let form = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(metrics.head.headers[header::CONTENT_TYPE], form);
    let text = std::str::from_utf8(&metrics.body).unwrap();
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    for line in [
        "capture_sessions{provider=\"claude\",state=\"running\"} 1",
        "capture_events_committed_total 9",
        "capture_source_lag_milliseconds{source=\"claude \\\"transcripts\\\"\"} 12",
        "capture_source_files{source=\"claude \\\"transcripts\\\"\"} 8",
        "capture_source_trouble{source=\"claude \\\"transcripts\\\"\"} 1",
        "capture_more_total 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_panic_fails_only_its_own_request() {
    let calls = Arc::new(AtomicU8::new(0));
    let health = Health {
        trouble: Arc::new(move || {
            assert!(calls.fetch_add(1, Ordering::Relaxed) > 0, "a failing handler");
            None
        }),
        ..Health::default()
    };
    let server = TestServer::with(health, |_| ());
    assert_eq!(server.get("/healthz").await.error(), (500, "internal".into()));
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused() {
    let server = TestServer::new();
    assert_eq!(server.get("/api/v1/nothing").await.error(), (404, "not_found".into()));
    assert_eq!(server.get("/api/v1/..%2fhealthz").await.error(), (404, "not_found".into()));
    let post = request(Method::POST, "/api/v1/turns").body(Full::default()).unwrap();
    let answer = server.send(post).await;
    assert_eq!(answer.error(), (405, "method_not_allowed".into()));
    assert_eq!(answer.head.headers[header::ALLOW], "GET, HEAD");
    let absolute = request(Method::GET, "http://127.0.0.1:7777/healthz").body(Full::default()).unwrap();
    assert_eq!(server.send(absolute).await.error(), (400, "bad_target".into()));
}

#[tokio::test]
async fn openapi_lists_every_route_and_all_references_resolve() {
    let document = TestServer::new().get("/openapi.json").await.json();
    for route in ROUTES {
        let operation = &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()];
        assert_eq!(operation["summary"], route.about, "{}", route.path);
    }
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for name in ["Session", "Turn", "Event", "Error", "StatusChange", "SourceHealth"] {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                if key == "$ref"
                    && let Some(reference) = inner.as_str()
                {
                    references.push(reference.to_owned());
                }
                collect(inner, references);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| collect(inner, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
