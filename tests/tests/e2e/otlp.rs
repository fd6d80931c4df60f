//! Sessions are exported to an OpenTelemetry collector while they run: the real program with a collector that decodes
//! what it receives.

use std::collections::HashSet;

use opentelemetry_proto::tonic::{
    common::v1::any_value::Value as AttributeValue,
    metrics::v1::{Metric, MetricsData, metric::Data, number_data_point},
    trace::v1::{Span, TracesData},
};
use prost::Message;
use serde_json::json;
use tests::{
    PATIENCE, eventually,
    program::Machine,
    receiver::{Delivered, Receiver},
    transcript::{append, session, uuid},
};

use super::PROGRAM;

/// Assembled at run time so that no file contains the whole secret.
fn secret() -> String {
    ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat()
}

fn configured(machine: &Machine, collector: &Receiver, more: &str) {
    machine.configure(&format!(
        "[otlp]\nendpoint = \"{}\"\ninterval_s = 1\nmetrics_interval_s = 1\n{more}\n",
        collector.url("")
    ));
}

/// A line of a Claude transcript with the current time.
fn line(kind: &str, n: u64, message: &serde_json::Value, more: &serde_json::Value) -> String {
    let mut record = json!({
        "parentUuid": null, "isSidechain": false, "type": kind, "message": message, "uuid": uuid(1, n),
        "timestamp": home::clock::now().to_string(), "cwd": "/proj", "sessionId": session(1),
        "version": "2.1.328", "gitBranch": "main",
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("{record}\n")
}

/// A message of the model, with or without a call; after a call the turn continues.
fn said(n: u64, content: &serde_json::Value, stop: &str) -> String {
    let message = json!({
        "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
        "content": [content], "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 42},
    });
    line("assistant", n, &message, &json!({"requestId": format!("r{n}")}))
}

/// A turn with one call, in two parts: up to the result of the call, then the answer.
fn turn(from: u64) -> (String, String) {
    let none = json!({});
    let prompt = line("user", from, &json!({"role": "user", "content": format!("deploy with {}", secret())}), &none);
    let call =
        json!({"type": "tool_use", "id": format!("toolu_{from}"), "name": "Bash", "input": {"command": "make deploy"}});
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": format!("toolu_{from}"), "content": format!("used {}", secret())},
    ]});
    let result = line("user", from + 2, &result, &json!({"toolUseResult": {"stdout": "used", "stderr": ""}}));
    let begun = prompt + &said(from + 1, &call, "tool_use") + &result;
    (begun, said(from + 3, &json!({"type": "text", "text": "deployed"}), "end_turn"))
}

/// The spans of all requests, decoded.
fn spans(requests: &[Delivered]) -> Vec<Span> {
    let of = |request: &Delivered| TracesData::decode(request.body.as_slice()).unwrap().resource_spans;
    let resources = requests.iter().filter(|request| request.line == "POST /v1/traces HTTP/1.1").flat_map(of);
    resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn text<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key)?;
    let AttributeValue::StringValue(text) = attribute.value.as_ref()?.value.as_ref()? else { return None };
    Some(text)
}

fn metric(requests: &[Delivered], name: &str) -> Option<Metric> {
    let last = requests.iter().rev().find(|request| request.line == "POST /v1/metrics HTTP/1.1")?;
    let data = MetricsData::decode(last.body.as_slice()).unwrap();
    let metrics = data.resource_metrics.into_iter().flat_map(|r| r.scope_metrics).flat_map(|s| s.metrics);
    metrics.into_iter().find(|metric| metric.name == name)
}

#[test]
fn tool_calls_turns_and_states_are_exported_to_a_collector_live() {
    let machine = Machine::new(PROGRAM);
    let collector = Receiver::start();
    // Records written before the server started are history.
    let path = machine.claude(&session(1));
    let (begun, answered) = turn(1);
    append(&path, &(begun + &answered).replace(&home::clock::now().to_string()[..10], "2026-01-02"));
    let key = machine.home().join("key");
    std::fs::write(&key, "the-key\n").unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    configured(&machine, &collector, &format!("headers = {{ x-key = {{ file = \"{}\" }} }}", key.display()));
    let server = machine.serve();
    server.caught_up(&session(1), &path);

    let (begun, answered) = turn(11);
    append(&path, &begun);
    let call = eventually("the call is sent before its turn ends", || {
        spans(&collector.requests()).into_iter().find(|span| span.name == "execute_tool Bash")
    });
    assert_eq!(text(&call, "gen_ai.tool.call.id"), Some("toolu_11"));
    assert!(named(&spans(&collector.requests()), "invoke_agent claude").is_empty());
    append(&path, &answered);
    let turn = eventually("the turn is sent", || {
        spans(&collector.requests()).into_iter().find(|span| span.name == "invoke_agent claude")
    });
    assert_eq!((&call.trace_id, &call.parent_span_id), (&turn.trace_id, &turn.span_id));
    assert_eq!(text(&turn, "gen_ai.operation.name"), Some("invoke_agent"));
    assert_eq!(text(&turn, "gen_ai.request.model"), Some("claude-opus-5-5"));
    let gauge = eventually("the state is among the metrics", || {
        let Data::Gauge(gauge) = metric(&collector.requests(), "capture.sessions")?.data? else { return None };
        (!gauge.data_points.is_empty()).then_some(gauge)
    });
    let counts = gauge.data_points.iter().map(|point| match point.value {
        Some(number_data_point::Value::AsInt(count)) => count,
        Some(number_data_point::Value::AsDouble(_)) | None => panic!("{point:?}"),
    });
    assert_eq!(counts.sum::<i64>(), 1, "{gauge:?}");

    let requests = collector.requests();
    let all = spans(&requests);
    let ids: HashSet<_> = all.iter().map(|span| &span.span_id).collect();
    assert_eq!((ids.len(), all.len()), (2, 2), "each once, and nothing of history: {all:?}");
    assert!(requests.iter().all(|request| request.header("x-key") == "the-key"));
    assert!(requests.iter().all(|request| request.header("content-type") == "application/x-protobuf"));
    for request in &requests {
        let body = String::from_utf8_lossy(&request.body);
        assert!(!body.contains("deploy") && !body.contains(&secret()[4..]), "texts are left out: {body}");
    }
    let log = server.log();
    assert!(!log.contains("the-key") && !log.contains(&secret()[4..]), "{log}");
    let sources = server.client.json("/api/v1/health/sources").unwrap();
    let source = sources["sources"].as_array().unwrap().iter().find(|source| source["name"] == "otlp export").unwrap();
    assert_eq!(
        (&source["dropped"], source.get("trouble").unwrap_or(&json!(null))),
        (&json!(0), &json!(null)),
        "{source}"
    );
    assert!(server.client.get("/metrics").unwrap().text().contains("capture_otlp_spans_total{outcome=\"sent\"} 2"));

    // After a restart only the next turn is sent; nothing is sent again.
    assert!(server.stop().success());
    let (begun, answered) = self::turn(21);
    append(&path, &(begun + &answered));
    let _server = machine.serve();
    eventually("the turn that ended while nobody looked is sent", || {
        (named(&spans(&collector.requests()), "invoke_agent claude").len() == 2).then_some(())
    });
    let calls: Vec<_> = named(&spans(&collector.requests()), "execute_tool Bash")
        .iter()
        .map(|span| text(span, "gen_ai.tool.call.id").unwrap().to_owned())
        .collect();
    assert_eq!(calls, ["toolu_11", "toolu_21"]);
}

#[test]
fn busy_collectors_are_retried_and_rejected_spans_are_counted() {
    let machine = Machine::new(PROGRAM);
    let collector = Receiver::start();
    configured(&machine, &collector, "metrics = false\ntexts = true");
    // The collector is busy, then rejects the first message.
    collector.answer(503, "");
    collector.answer(429, "Retry-After: 1\r\n");
    collector.answer(400, "");
    let server = machine.serve();
    let path = machine.claude(&session(1));
    let (begun, answered) = turn(1);
    append(&path, &begun);
    let refused = collector.wait(3, PATIENCE);
    assert!(refused.iter().all(|request| request.body == refused[0].body), "the same again");
    append(&path, &answered);
    let turn = eventually("the turn is sent", || {
        spans(&collector.requests()).into_iter().find(|span| span.name == "invoke_agent claude")
    });
    let messages = text(&turn, "gen_ai.input.messages").unwrap();
    assert!(messages.contains("deploy with [redacted:") && !messages.contains(&secret()[4..]), "{messages}");
    let counted = eventually("it is counted", || {
        let text = server.client.get("/metrics").ok()?.text();
        text.contains("capture_otlp_spans_total{outcome=\"sent\"} 1").then_some(text)
    });
    assert!(counted.contains("capture_otlp_spans_total{outcome=\"rejected\"} 1"), "{counted}");
}

#[test]
fn an_unreachable_collector_is_reported_and_the_server_stays_healthy() {
    let machine = Machine::new(PROGRAM);
    // A port without a listener.
    let gone = Receiver::start();
    configured(&machine, &gone, "");
    drop(gone);
    let server = machine.serve();
    let path = machine.claude(&session(1));
    let (begun, answered) = turn(1);
    append(&path, &(begun + &answered));
    server.caught_up(&session(1), &path);
    let trouble = eventually("doctor says so", || {
        let sources = server.client.json("/api/v1/health/sources")?;
        let sources = sources["sources"].as_array()?.clone();
        let source = sources.into_iter().find(|source| source["name"] == "otlp export")?;
        source["trouble"].as_str().map(str::to_owned)
    });
    assert!(trouble.contains("collector"), "{trouble}");
    assert_eq!(server.client.get("/healthz").unwrap().status, 200, "the service is well");
    assert!(server.stop().success());
}
