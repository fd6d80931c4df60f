use std::collections::BTreeMap;

use events::{ApprovalId, ErrorClass, EventId, Provider, ToolKind, TurnTrigger};
use projections::{CallResult, ItemText, SessionState, StatusRules, Usage};

use super::*;

const PROVIDER: Option<&str> = Some("anthropic");

fn session() -> Session {
    let (id, at) =
        (SessionId::from_bits(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10), Timestamp::from_millisecond(1_000));
    let state = SessionState::new(id, Provider::Claude, None, at, StatusRules::default());
    Session { last_event_at: at.plus_ms(9_000), ..state.session }
}

fn redact(text: &str) -> String {
    text.replace("hunter2", "[redacted]")
}

fn said(text: &str) -> ItemText {
    ItemText { text: text.into(), text_ref: None }
}

fn item(sequence: u64, ms: i64, body: ItemBody) -> ConversationItem {
    let (at, turn_id) = (Timestamp::from_millisecond(ms), Some(EventId::from_bits(7).into()));
    ConversationItem { sequence, at, turn_id, agent_id: None, body }
}

fn items() -> Vec<ConversationItem> {
    let call = |call_id: &str, outcome, exit_code| ItemBody::ToolCall {
        call_id: call_id.into(),
        name: "Bash".into(),
        tool: ToolKind::Execute,
        title: Some("echo hunter2".into()),
        input: said("{\"command\":\"echo hunter2\"}"),
        result: Some(CallResult { outcome, exit_code, duration_ms: Some(250), text: said("hunter2") }),
        subagents: Vec::new(),
    };
    vec![
        item(1, 2_000, ItemBody::Prompt { origin: PromptOrigin::Human, text: said("say hunter2"), attachments: 0 }),
        item(2, 2_500, call("c1", ToolOutcome::Ok, Some(0))),
        item(
            3,
            2_600,
            ItemBody::Approval {
                approval_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse::<ApprovalId>().unwrap(),
                call_id: Some("c1".into()),
                subject: Some("echo hunter2".into()),
                state: ApprovalState::Allowed,
                by: None,
                closed_at: Some(Timestamp::from_millisecond(4_600)),
            },
        ),
        item(4, 5_000, call("c2", ToolOutcome::Error, Some(2))),
        item(5, 5_100, ItemBody::Error { class: ErrorClass::ALL[0], code: Some("529".into()), text: said("hunter2") }),
        item(6, 5_500, ItemBody::Message { model: None, thinking: None, text: said("it is hunter2"), stop: None }),
    ]
}

fn turn() -> Turn {
    Turn {
        id: EventId::from_bits(7).into(),
        number: 1,
        trigger: TurnTrigger::Prompt,
        prompt: Some("say hunter2".into()),
        text: None,
        messages: 1,
        tool_calls: 2,
        tool_errors: 1,
        failures: BTreeMap::new(),
        test_fix_loops: None,
        work: projections::TurnWork::default(),
        receipt: events::Receipt::default(),
        approvals: 1,
        steering: 0,
        outcome: Some(TurnOutcome::Completed),
        started_at: Timestamp::from_millisecond(2_000),
        completed_at: Some(Timestamp::from_millisecond(6_000)),
        usage: Usage {
            input_tokens: 10,
            output_tokens: 20,
            cache_read_tokens: 300,
            cache_write_tokens: 4_000,
            ..Usage::default()
        },
    }
}

/// The content that a collector reads from the exported line.
fn collected(texts: bool) -> (String, Vec<Span>) {
    let session = session();
    let options = OtlpOptions { redact: &redact, texts, provider: PROVIDER, version: "1.2.3" };
    let mut trace = SessionTrace::new(&session, options);
    let mut spans = vec![trace.root()];
    for item in items() {
        spans.extend(trace.item(&item));
    }
    spans.push(trace.turn(&turn()));
    let line = trace.encode(spans).unwrap();
    assert!(!line.contains('\n'));
    let data: TracesData = serde_json::from_str(&line).unwrap();
    let [resource] = data.resource_spans.try_into().unwrap();
    assert_eq!((resource.schema_url.as_str(), resource.scope_spans.len()), (SCHEMA_URL, 1));
    (line, resource.scope_spans.into_iter().next().unwrap().spans)
}

fn string<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
    match &value(span, key)? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn number(span: &Span, key: &str) -> Option<i64> {
    match value(span, key)? {
        Value::IntValue(number) => Some(*number),
        _ => None,
    }
}

fn value<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[test]
fn a_session_is_a_trace_of_turns_calls_and_requests() {
    let (_, spans) = collected(false);
    assert!(spans.iter().all(|span| span.trace_id == session().id.to_bytes() && span.span_id.len() == 8));
    let ids: HashSet<_> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len());
    let [root] = named(&spans, "session")[..] else { panic!("{spans:?}") };
    assert!(root.parent_span_id.is_empty());
    let [turn] = named(&spans, "invoke_agent claude")[..] else { panic!("{spans:?}") };
    assert_eq!(turn.parent_span_id, root.span_id);
    assert_eq!((turn.start_time_unix_nano, turn.end_time_unix_nano), (2_000_000_000, 6_000_000_000));
    assert_eq!(string(turn, "gen_ai.operation.name"), Some("invoke_agent"));
    assert_eq!(string(turn, "gen_ai.provider.name"), PROVIDER);
    assert_eq!(number(turn, "gen_ai.usage.input_tokens"), Some(4_310), "with what the cache served and took");
    assert_eq!(number(turn, "gen_ai.usage.cache_read.input_tokens"), Some(300));
    let calls = named(&spans, "execute_tool Bash");
    let [good, bad] = calls[..] else { panic!("{spans:?}") };
    assert_eq!((&good.parent_span_id, &bad.parent_span_id), (&turn.span_id, &turn.span_id));
    assert_eq!(good.end_time_unix_nano - good.start_time_unix_nano, 250_000_000);
    assert_eq!((string(good, "gen_ai.tool.call.id"), good.status.is_none()), (Some("c1"), true));
    assert_eq!((string(bad, "error.type"), number(bad, "process.exit.code")), (Some("tool_error"), Some(2)));
    assert_eq!(bad.status.as_ref().unwrap().code, i32::from(StatusCode::Error));
    let [request] = named(&spans, "permission_request")[..] else { panic!("{spans:?}") };
    assert_eq!(request.parent_span_id, good.span_id, "beside the call it is about");
    assert_eq!(request.end_time_unix_nano - request.start_time_unix_nano, 2_000_000_000);
    assert_eq!(string(request, "capture.approval.state"), Some("allowed"));
    assert_eq!(named(&spans, "error").len(), 1);
}

#[test]
fn span_texts_are_omitted_by_default_and_redacted_when_enabled() {
    let (line, spans) = collected(false);
    for text in ["hunter2", "echo", "say"] {
        assert!(!line.contains(text), "{line}");
    }
    assert!(spans.iter().all(|span| value(span, "gen_ai.input.messages").is_none()));
    let (line, spans) = collected(true);
    assert!(!line.contains("hunter2") && line.contains("[redacted]"), "{line}");
    let turn = named(&spans, "invoke_agent claude")[0];
    let input: serde_json::Value = serde_json::from_str(string(turn, "gen_ai.input.messages").unwrap()).unwrap();
    assert_eq!(input, serde_json::json!([{"role": "user", "parts": [{"type": "text", "content": "say [redacted]"}]}]));
    let output: serde_json::Value = serde_json::from_str(string(turn, "gen_ai.output.messages").unwrap()).unwrap();
    assert_eq!(output[0]["parts"][0]["content"], "it is [redacted]");
    let call = named(&spans, "execute_tool Bash")[0];
    assert_eq!(string(call, "gen_ai.tool.call.result"), Some("[redacted]"));
}

#[test]
fn the_same_session_gives_the_same_spans() {
    assert_eq!(collected(true).0, collected(true).0);
}
