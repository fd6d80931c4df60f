//! Tests the records of the fixtures, both encodings, and input that is not telemetry.

use events::{AccountScope, Annotation, Claim, ErrorClass, Payload, Reason, State, Topic};
use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    resource::v1::Resource,
};
use proptest::prelude::*;

use super::*;

fn now() -> Timestamp {
    Timestamp::parse("2026-11-20T06:00:00.000Z").unwrap()
}

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/telemetry").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn protobuf(json: &[u8]) -> Vec<u8> {
    serde_json::from_slice::<ExportLogsServiceRequest>(json).unwrap().encode_to_vec()
}

fn logs(encoding: Encoding, body: &[u8]) -> Received {
    receive(Signal::Logs, encoding, body, now()).unwrap()
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

/// A record of a session, one second before the time of the fixtures.
fn record(attributes: Vec<KeyValue>) -> LogRecord {
    let mut all = vec![text("session.id", "s")];
    all.extend(attributes);
    let ms = now().plus_ms(-1_000).as_millisecond() as u64;
    LogRecord { time_unix_nano: ms * 1_000_000, attributes: all, ..LogRecord::default() }
}

fn request(service: &str, log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let resource = Resource { attributes: vec![text("service.name", service)], ..Resource::default() };
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    let group = ResourceLogs { resource: Some(resource), scope_logs, ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![group] }
}

fn sent(service: &str, attributes: Vec<KeyValue>) -> Received {
    logs(Encoding::Protobuf, &request(service, vec![record(attributes)]).encode_to_vec())
}

/// One line for each event.
fn shown(received: &Received) -> Vec<String> {
    let line = |event: &NewEvent| match &event.payload {
        Payload::Signal(signal) => match &signal.claim {
            Claim::State { state, reason } => format!("{state} {}", reason.unwrap()),
            other => panic!("{other:?}"),
        },
        Payload::Annotation(note) => note.value.clone(),
        Payload::Error(error) => {
            let code = error.code.as_deref().unwrap_or_default();
            format!("error {} {code}{}", error.class, if error.retrying { " retrying" } else { "" })
        }
        Payload::ToolResult(result) => {
            assert!(result.detail, "a result of telemetry closes no call");
            format!("result {} {}", result.outcome, result.duration_ms.unwrap())
        }
        Payload::Heartbeat(_) => format!("alive: {}", event.text.as_deref().unwrap()),
        Payload::UsageReported(usage) => {
            let account = usage.account.as_ref().unwrap();
            assert!(!usage.has_tokens() && account.scope == AccountScope::Call, "it counts no tokens");
            let used = &account.models[0];
            let tokens = [used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens];
            format!("used: {} {tokens:?} {:?}", used.model, used.cost_nano_usd)
        }
        other => panic!("{:?} is not for telemetry to say", other.kind()),
    };
    received.events.iter().map(line).collect()
}

#[test]
fn every_recorded_log_record_is_accepted_with_its_own_time() {
    for (name, provider, records, events) in
        [("claude", Provider::Claude, 27, 19), ("codex", Provider::Codex, 21, 19), ("gemini", Provider::Gemini, 28, 12)]
    {
        let received = logs(Encoding::Json, &fixture(&format!("{name}/logs.json")));
        assert_eq!(received.tallies, [(provider, ProviderTally { records, rejected: 0 })].into(), "{name}");
        assert_eq!(received.events.len(), events, "{name}: {:#?}", shown(&received));
        for event in &received.events {
            let at = event.created_at.unwrap();
            assert_eq!((event.provider, event.source), (provider, events::Source::Telemetry));
            assert!(at < now() && at.since_ms(now()) > -7_200_000, "{name}: the record's own time, not {at}");
        }
    }
}

#[test]
fn the_trace_id_of_a_prompt_is_recorded() {
    let traces = |name: &str| -> Vec<String> {
        let received = logs(Encoding::Json, &fixture(&format!("{name}/logs.json")));
        let notes = received.events.into_iter().filter_map(|event| match event.payload {
            Payload::Annotation(note) if note.topic == Topic::Trace => Some(note.value),
            _ => None,
        });
        notes.collect()
    };
    assert_eq!(traces("claude"), ["27361dc0712b43d469c6768ae1d5bb25-54d55cdfae2e4e31"]);
    assert_eq!(traces("gemini"), ["d9a7ad0225a21047e95a9c2addc11422-875771cadf8e066d"]);
    assert_eq!(traces("codex"), ["51d4273fb576e9ed0d04081b120cac45-4eb03e9aab516734"]);
}

#[test]
fn codex_log_records_decode_to_events() {
    let shown = shown(&logs(Encoding::Json, &fixture("codex/logs.json")));
    for line in [
        "running thinking",
        "error rate_limit 429 retrying",
        "error provider 503 retrying",
        "running retrying",
        "error auth 401",
        "exec_command allowed by the user (",
        "alive: model=gpt-6-sol status=200 attempt=0",
    ] {
        assert!(shown.iter().any(|shown| shown.starts_with(line)), "{line} is not in {shown:#?}");
    }
}

#[test]
fn gemini_log_records_decode_to_events() {
    let shown = shown(&logs(Encoding::Json, &fixture("gemini/logs.json")));
    for line in [
        "error rate_limit 429 retrying",
        "error auth 401",
        "permission mode: from=plan to=autoEdit",
        "context compacted: before=1200 after=547",
        "alive: model=gemini-2.5-pro for=main status=200",
    ] {
        assert!(shown.iter().any(|shown| shown.starts_with(line)), "{line} is not in {shown:#?}");
    }
    assert!(!shown.iter().any(|line| line.contains("allowed")), "`accept` proves no person");
    let reject = vec![text("event.name", "gemini_cli.tool_call"), text("decision", "reject")];
    assert_eq!(self::shown(&sent("gemini-cli", reject)), ["a tool denied by the user"]);
}

#[test]
fn claude_log_records_decode_to_events() {
    let shown = shown(&logs(Encoding::Json, &fixture("claude/logs.json")));
    for line in [
        "running thinking",
        "Bash allowed by the user (toolu_",
        "denied by the user",
        "allowed by a rule",
        "denied by a hook",
        "result ok 108",
        "context compacted: trigger=manual before=3191 after=2935",
        "permission mode: from=plan to=auto by=exit_plan_mode",
        "alive: model=claude-opus-5-5 for=repl_main_thread",
        "used: claude-opus-5-5 [10, 42, 5000, 120] Some(2480000)",
    ] {
        assert!(shown.iter().any(|shown| shown.contains(line)), "{line} is not in {shown:#?}");
    }
    let error = vec![
        text("event.name", "api_error"),
        attribute("status_code", Value::IntValue(529)),
        text("error", "Overloaded"),
    ];
    let received = sent("claude-code", error);
    assert_eq!(self::shown(&received), ["error provider 529"], "it gave up: no claim that it goes on");
    assert_eq!(received.events[0].text.as_deref(), Some("Overloaded"));
}

#[test]
fn a_claim_expires_within_15_s_of_the_record_time() {
    let received = logs(Encoding::Json, &fixture("codex/logs.json"));
    for event in &received.events {
        let Payload::Signal(signal) = &event.payload else { continue };
        let (until, at) = (signal.valid_until.unwrap(), event.created_at.unwrap());
        assert!((1..=15_000).contains(&until.since_ms(at)), "{until} {at}");
        assert_eq!(signal.strength, events::Confidence::Medium);
    }
    // A clock that is ahead does not extend the claim.
    let mut ahead = record(vec![text("event.name", "codex.user_prompt")]);
    ahead.time_unix_nano = now().plus_ms(86_400_000).as_millisecond() as u64 * 1_000_000;
    let received = logs(Encoding::Protobuf, &request("codex_cli_rs", vec![ahead]).encode_to_vec());
    let Payload::Signal(signal) = &received.events[0].payload else { panic!() };
    assert!(signal.valid_until.unwrap() <= now().plus_ms(15_000));
}

#[test]
fn api_errors_are_classified_by_status_and_message() {
    for (status, message, class, retrying) in [
        (Some(401), "", ErrorClass::Auth, false),
        (Some(403), "", ErrorClass::Auth, false),
        (Some(429), "slow down", ErrorClass::RateLimit, true),
        (Some(429), "insufficient_quota", ErrorClass::Quota, true),
        (Some(402), "", ErrorClass::Quota, false),
        (Some(500), "", ErrorClass::Provider, true),
        (Some(529), "", ErrorClass::Provider, true),
        (Some(400), "prompt is too long", ErrorClass::Context, false),
        (Some(404), "", ErrorClass::Other, false),
        (None, "connection reset", ErrorClass::Network, true),
    ] {
        let mut attributes = vec![text("event.name", "codex.api_request"), text("error.message", message)];
        attributes.extend(status.map(|status| attribute("http.response.status_code", Value::IntValue(status))));
        let received = sent("codex_cli_rs", attributes);
        let Payload::Error(error) = &received.events[0].payload else { panic!("{:?}", received.events) };
        assert_eq!((error.class, error.retrying, error.ends_turn), (class, retrying, false), "{status:?} {message}");
        assert_eq!(received.events.len(), if retrying { 2 } else { 1 });
    }
}

#[test]
fn both_encodings_give_the_same_events() {
    for name in ["claude/logs.json", "codex/logs.json", "gemini/logs.json"] {
        let json = fixture(name);
        let (a, b) = (logs(Encoding::Json, &json), logs(Encoding::Protobuf, &protobuf(&json)));
        assert_eq!((a.events, a.tallies), (b.events, b.tallies), "{name}");
    }
}

#[test]
fn event_identities_are_unique_and_the_same_when_a_request_is_repeated() {
    let json = fixture("claude/logs.json");
    let identities = |body: &[u8], at| {
        let received = receive(Signal::Logs, Encoding::Json, body, at).unwrap();
        received.events.iter().map(|event| event.identity).collect::<Vec<_>>()
    };
    let first = identities(&json, now());
    assert_eq!(first, identities(&json, now().plus_ms(60_000)), "when it comes does not matter");
    let mut unique = first.clone();
    unique.sort_by_key(|identity| identity.bits());
    unique.dedup();
    assert_eq!(unique.len(), first.len());
}

#[test]
fn unknown_services_and_incomplete_records_yield_no_events() {
    let prompt = || vec![text("event.name", "codex.user_prompt")];
    let received = sent("somebody-else", prompt());
    assert_eq!(received.events, []);
    assert_eq!(received.tallies, [(Provider::Unknown, ProviderTally { records: 1, rejected: 0 })].into());
    let mut nameless = record(prompt());
    nameless.attributes.remove(0);
    let mut timeless = record(prompt());
    timeless.time_unix_nano = 0;
    let received = logs(Encoding::Protobuf, &request("codex_cli_rs", vec![nameless, timeless]).encode_to_vec());
    assert_eq!((received.events.len(), received.rejected()), (0, 0));
}

#[test]
fn a_renamed_service_is_identified_by_its_scope() {
    let json = String::from_utf8(fixture("codex/logs.json")).unwrap().replace("codex_cli_rs", "my-codex");
    assert!(logs(Encoding::Json, json.replace("my-codex", "mine").as_bytes()).events.len() > 10);
}

#[test]
fn records_over_a_limit_are_rejected_and_the_others_kept() {
    let fine = || record(vec![text("event.name", "codex.user_prompt")]);
    let long = record(vec![text("prompt", &"x".repeat(ATTRIBUTE_BYTES + 1))]);
    let just = record(vec![text("event.name", "codex.user_prompt"), text("prompt", &"x".repeat(ATTRIBUTE_BYTES))]);
    let many = record((0..ATTRIBUTES).map(|n| text(&n.to_string(), "")).collect());
    let huge = record((0..5).map(|n| text(&n.to_string(), &"x".repeat(ATTRIBUTE_BYTES))).collect());
    let nested = |depth| {
        let list = |value| AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![value] })) };
        let value = (0..depth).fold(AnyValue::default(), |value, _| list(value));
        let deep = KeyValue { key: "deep".into(), value: Some(value), ..KeyValue::default() };
        record(vec![text("event.name", "codex.user_prompt"), deep])
    };
    for (bad, why) in [
        (long, "an attribute is larger than"),
        (many, "attributes"),
        (huge, "a record is larger than"),
        (nested(DEPTH + 1), "nested more than"),
        (nested(95), "cannot decode"),
    ] {
        let received = logs(Encoding::Protobuf, &request("codex_cli_rs", vec![fine(), bad]).encode_to_vec());
        assert_eq!((received.events.len(), received.rejected()), (1, 1), "{why}: {:?}", received.why);
        assert!(received.why.as_deref().unwrap().contains(why), "{why}: {:?}", received.why);
    }
    let received = logs(Encoding::Protobuf, &request("codex_cli_rs", vec![just, nested(DEPTH)]).encode_to_vec());
    assert_eq!((received.events.len(), received.rejected()), (2, 0));
}

#[test]
fn records_beyond_the_limit_are_counted_as_rejected() {
    let mut body = request("codex_cli_rs", Vec::new()).resource_logs.remove(0).encode_to_vec();
    // A million empty records in one scope, two bytes each, and a scope of one more.
    let scope = [0x12, 0].repeat(1_000_000);
    for scope in [scope.as_slice(), &[0x12, 0]] {
        body.push(0x12);
        prost::encoding::encode_varint(scope.len() as u64, &mut body);
        body.extend_from_slice(scope);
    }
    let mut whole = vec![0x0a];
    prost::encoding::encode_varint(body.len() as u64, &mut whole);
    whole.extend(body);
    let received = logs(Encoding::Protobuf, &whole);
    assert_eq!(
        received.tallies[&Provider::Codex],
        ProviderTally { records: 1_000_001, rejected: 1_000_001 - RECORDS as u64 }
    );
    let list = vec!["{}"; RECORDS + 7].join(",");
    let json = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{list}]}},{{}}]}},{{}}]}}"#);
    let received = logs(Encoding::Json, json.as_bytes());
    assert_eq!(received.tallies[&Provider::Unknown], ProviderTally { records: RECORDS as u64 + 7, rejected: 7 });
}

#[test]
fn spans_and_metrics_are_counted_and_not_read() {
    for (name, provider) in [("claude", Provider::Claude), ("codex", Provider::Codex)] {
        let body = fixture(&format!("{name}/metrics.json"));
        let received = receive(Signal::Metrics, Encoding::Json, &body, now()).unwrap();
        assert_eq!(received.events, []);
        assert!(received.tallies[&provider].records > 0 && received.rejected() == 0);
        assert_eq!(answer(Signal::Metrics, Encoding::Json, &received), b"{}");
    }
    let spans = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"},{"name":"y"}]}]}]}"#;
    let received = receive(Signal::Traces, Encoding::Json, spans, now()).unwrap();
    assert_eq!(received.tallies[&Provider::Unknown], ProviderTally { records: 2, rejected: 0 });
}

#[test]
fn malformed_request_bodies_are_errors() {
    for bad in [
        "",
        "{",
        "[]",
        "[[]]",
        "[]x",
        "nul",
        r#"{"resourceLogs":{}}"#,
        r#"{"resourceLogs":[1]}"#,
        r#"{"resourceLogs":[{"scopeLogs":7}]}"#,
    ] {
        assert!(receive(Signal::Logs, Encoding::Json, bad.as_bytes(), now()).is_err(), "{bad}");
    }
    for bad in [&b"\x0a\xff"[..], b"\x0a\x05ab", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0f", b"{\"a\":1}"]
    {
        assert!(receive(Signal::Logs, Encoding::Protobuf, bad, now()).is_err(), "{bad:?}");
    }
    for (encoding, empty) in [(Encoding::Json, &b"{}"[..]), (Encoding::Protobuf, b"")] {
        assert_eq!(receive(Signal::Logs, encoding, empty, now()).unwrap().tallies, BTreeMap::new());
    }
    // Deep nesting does not overflow the stack.
    let deep = format!(r#"{{"resourceLogs":{}1{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    assert!(receive(Signal::Logs, Encoding::Json, deep.as_bytes(), now()).is_err());
    let deep = format!(
        r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"attributes":[{{"key":"a","value":{}{}}}]}}]}}]}}]}}"#,
        r#"{"arrayValue":{"values":["#.repeat(50_000),
        "]}}".repeat(50_000)
    );
    assert_eq!(logs(Encoding::Json, deep.as_bytes()).rejected(), 1);
}

#[test]
fn the_response_reports_rejected_records() {
    let mut received = Received::default();
    assert_eq!(answer(Signal::Logs, Encoding::Json, &received), b"{}");
    assert_eq!(answer(Signal::Logs, Encoding::Protobuf, &received), b"");
    received.reject(Provider::Codex, 3, || "too long".into());
    let json: serde_json::Value = serde_json::from_slice(&answer(Signal::Logs, Encoding::Json, &received)).unwrap();
    assert_eq!(json["partialSuccess"], serde_json::json!({ "rejectedLogRecords": "3", "errorMessage": "too long" }));
    let bytes = answer(Signal::Logs, Encoding::Protobuf, &received);
    let partial = ExportLogsServiceResponse::decode(bytes.as_slice()).unwrap().partial_success.unwrap();
    assert_eq!((partial.rejected_log_records, partial.error_message.as_str()), (3, "too long"));
}

#[test]
fn generated_settings_enable_telemetry_without_prompt_content() {
    for provider in [Provider::Claude, Provider::Codex, Provider::Gemini] {
        let settings = settings::settings(provider, "http://127.0.0.1:4", "secret").unwrap();
        let all = format!("{settings:?}");
        assert!(all.contains("http://127.0.0.1:4") && all.contains("Bearer secret"), "{all}");
        assert!(!all.contains("OTEL_LOG_USER_PROMPTS"));
        if let Some(file) = settings.file {
            match provider {
                Provider::Codex => {
                    let table: toml::Table = file.content.parse().unwrap();
                    let exporter = &table["otel"]["exporter"]["otlp-http"];
                    assert_eq!(exporter["endpoint"].as_str(), Some("http://127.0.0.1:4/v1/logs"));
                    assert_eq!(exporter["headers"]["Authorization"].as_str(), Some("Bearer secret"));
                    assert_eq!(table["otel"]["log_user_prompt"].as_bool(), Some(false));
                }
                _ => {
                    let json: serde_json::Value = serde_json::from_str(&file.content).unwrap();
                    assert_eq!(json["telemetry"]["logPrompts"], false);
                }
            }
        }
    }
    assert_eq!(settings::settings(Provider::Pi, "", ""), None);
}

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        any::<String>().prop_map(|text| Some(Value::StringValue(text))),
        any::<bool>().prop_map(|flag| Some(Value::BoolValue(flag))),
        any::<i64>().prop_map(|n| Some(Value::IntValue(n))),
        any::<i32>().prop_map(|n| Some(Value::DoubleValue(f64::from(n) / 8.0))),
    ];
    leaf.prop_map(|value| AnyValue { value }).prop_recursive(3, 12, 3, |inner| {
        proptest::collection::vec(inner, 0..3)
            .prop_map(|values| AnyValue { value: Some(Value::ArrayValue(ArrayValue { values })) })
    })
}

fn any_record() -> impl Strategy<Value = LogRecord> {
    let name = prop_oneof![
        Just("codex.user_prompt"),
        Just("codex.api_request"),
        Just("codex.tool_decision"),
        Just("codex.tool_result"),
        Just("codex.other"),
    ];
    let key = prop_oneof![
        Just("http.response.status_code"),
        Just("attempt"),
        Just("decision"),
        Just("source"),
        Just("call_id"),
        Just("success"),
        Just("error.message"),
        Just("approval_id"),
        Just("session.id"),
    ];
    let value = prop_oneof![
        any_value(),
        "approved|denied|User|true|200|503|[0-9]{1,4}"
            .prop_map(|text| AnyValue { value: Some(Value::StringValue(text)) })
    ];
    let attributes = proptest::collection::vec((key, value), 0..8);
    (name, attributes, any::<u32>()).prop_map(|(name, attributes, ms)| {
        let mut record = record(vec![text("event.name", name)]);
        record.time_unix_nano = u64::from(ms) * 1_000_000;
        let attributes = attributes.into_iter();
        record.attributes.extend(attributes.map(|(key, value)| KeyValue {
            key: key.into(),
            value: Some(value),
            ..KeyValue::default()
        }));
        record
    })
}

/// OTLP/JSON as written by exporters.
fn json(value: &AnyValue) -> serde_json::Value {
    use serde_json::json;
    match &value.value {
        None => json!({}),
        Some(Value::StringValue(text)) => json!({ "stringValue": text }),
        Some(Value::BoolValue(flag)) => json!({ "boolValue": flag }),
        // Both forms occur: Codex writes texts, the JavaScript exporters numbers.
        Some(Value::IntValue(n)) if n % 2 == 0 => json!({ "intValue": n.to_string() }),
        Some(Value::IntValue(n)) => json!({ "intValue": n }),
        Some(Value::DoubleValue(n)) => json!({ "doubleValue": n }),
        Some(Value::ArrayValue(list)) => {
            json!({ "arrayValue": { "values": list.values.iter().map(json).collect::<Vec<_>>() } })
        }
        Some(other) => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn any_records_give_the_same_events_in_json_and_protobuf(records in proptest::collection::vec(any_record(), 0..6)) {
        let of = |record: &LogRecord| serde_json::json!({
            "timeUnixNano": record.time_unix_nano.to_string(),
            "attributes": record.attributes.iter().map(|a| serde_json::json!({
                "key": a.key, "value": a.value.as_ref().map(json),
            })).collect::<Vec<_>>(),
        });
        let body = serde_json::json!({ "resourceLogs": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "codex_cli_rs" } }] },
            "scopeLogs": [{ "logRecords": records.iter().map(of).collect::<Vec<_>>() }],
        }] }).to_string();
        let (a, b) = (
            logs(Encoding::Json, body.as_bytes()),
            logs(Encoding::Protobuf, &request("codex_cli_rs", records).encode_to_vec()),
        );
        prop_assert_eq!(&a.events, &b.events);
        prop_assert_eq!(a.tallies, b.tallies);
        // No input opens a session, closes an approval or counts tokens. The service here is Codex.
        for event in &a.events {
            let harmless = matches!(
                event.payload,
                Payload::Signal(_)
                    | Payload::Error(_)
                    | Payload::Heartbeat(_)
                    | Payload::ToolResult(_)
                    | Payload::Annotation(Annotation { topic: Topic::Notice, .. })
            );
            prop_assert!(harmless);
            if let Payload::Signal(signal) = &event.payload {
                let running = matches!(
                    signal.claim,
                    Claim::State { state: State::Running, reason: Some(Reason::Thinking | Reason::Retrying) }
                );
                prop_assert!(running);
            }
        }
    }

    #[test]
    fn arbitrary_or_corrupted_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..60_000, cut in 0_usize..60_000) {
        for signal in [Signal::Logs, Signal::Traces, Signal::Metrics] {
            for encoding in [Encoding::Json, Encoding::Protobuf] {
                receive(signal, encoding, &bytes, now()).ok();
            }
        }
        // A valid message, corrupted.
        for (encoding, mut body) in [
            (Encoding::Json, fixture("codex/logs.json")),
            (Encoding::Protobuf, protobuf(&fixture("codex/logs.json"))),
        ] {
            for (offset, byte) in bytes.iter().enumerate() {
                let index = (at + offset * 131) % body.len();
                body[index] ^= byte;
            }
            body.truncate(cut.max(1));
            receive(Signal::Logs, encoding, &body, now()).ok();
        }
    }
}
