//! Spans read from a store written as ingest would.

mod exporting;

use events::{
    Annotation, Confidence, Event, EventId, Origin, Payload, PromptOrigin, Provider, SessionId, Source, State,
    StatusChanged, Timestamp, ToolCall, ToolKind, ToolOutcome, ToolResult, Topic, TurnCompleted, TurnId, TurnOutcome,
    TurnTrigger, UserPrompt,
};
use opentelemetry_proto::tonic::{
    common::v1::any_value::Value,
    trace::v1::{Span, TracesData},
};
use projections::{Session, SessionState, StatusRules, Turn, Usage};
use prost::Message;
use store::{SessionRow, Writer};
use tempfile::TempDir;

use crate::spans::{SpanBatch, SpanReader};

const NOW_MS: i64 = 1_795_149_432_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(NOW_MS + ms)
}

/// Assembled here, so that no file contains the complete secret.
fn secret() -> String {
    ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat()
}

/// A store with one session.
struct Log {
    writer: Writer,
    row: SessionRow,
    position: u64,
    directory: TempDir,
}

fn session() -> Session {
    let id = SessionId::from_bits(1);
    let state = SessionState::new(id, Provider::Claude, Some("agent-1".into()), at(0), StatusRules::default());
    Session { title: Some("hunter2".into()), ..state.session }
}

impl Log {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path()).unwrap();
        let session = session();
        writer.begin().unwrap();
        let row = writer.add_session(session.id, session.provider, "agent-1").unwrap();
        writer.put_session(row, session.last_event_at, &serde_json::to_string(&session).unwrap(), "{}").unwrap();
        writer.commit().unwrap();
        Self { writer, row, position: 0, directory }
    }

    fn put(&mut self, ms: i64, payload: impl Into<Payload>) -> &mut Self {
        self.put_event(ms, payload, false)
    }

    fn put_event(&mut self, ms: i64, payload: impl Into<Payload>, history: bool) -> &mut Self {
        self.position += 1;
        let event = Event {
            position: self.position,
            id: EventId::from_bits(self.position.into()),
            session_id: session().id,
            sequence: self.position,
            provider: Provider::Claude,
            provider_session_id: "agent-1".into(),
            source: Source::Transcript,
            created_at: at(ms),
            observed_at: at(ms),
            turn_id: Some(TurnId::from_bits(7)),
            parent_id: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: Some(format!("{} said", secret())),
            text_ref: None,
            payload: payload.into(),
            origin: Origin::Derived,
            derived: false,
            history,
        };
        self.writer.begin().unwrap();
        self.writer.append(self.row, &event, None).unwrap();
        self.writer.commit().unwrap();
        self
    }

    fn prompt(&mut self, ms: i64) -> &mut Self {
        self.put(ms, UserPrompt { origin: PromptOrigin::Human, ..UserPrompt::default() })
    }

    fn call(&mut self, ms: i64, id: &str) -> &mut Self {
        let (call_id, name) = (id.to_owned(), "Bash".to_owned());
        self.put(ms, ToolCall { call_id, name, tool: ToolKind::Execute, ..ToolCall::default() })
    }

    fn result(&mut self, ms: i64, id: &str) -> &mut Self {
        self.put(ms, ToolResult { call_id: id.to_owned(), outcome: ToolOutcome::Ok, ..ToolResult::default() })
    }

    fn turn_end(&mut self, ms: i64, number: u32) -> &mut Self {
        let turn = Turn {
            id: TurnId::from_bits(7),
            number,
            trigger: TurnTrigger::Prompt,
            prompt: None,
            text: None,
            messages: 1,
            tool_calls: 1,
            tool_errors: 0,
            failures: std::collections::BTreeMap::new(),
            test_fix_loops: None,
            work: projections::TurnWork::default(),
            receipt: events::Receipt::default(),
            approvals: 0,
            steering: 0,
            outcome: Some(TurnOutcome::Completed),
            started_at: at(ms - 500),
            completed_at: Some(at(ms)),
            usage: Usage::default(),
        };
        self.writer.begin().unwrap();
        self.writer.put_turn(self.row, &turn).unwrap();
        self.writer.commit().unwrap();
        self.put(
            ms,
            TurnCompleted { outcome: TurnOutcome::Completed, number, duration_ms: 500, ..TurnCompleted::default() },
        )
    }

    fn state(&mut self, ms: i64, to: State) -> &mut Self {
        self.put(ms, StatusChanged { from: None, to, reason: None, activity: None, evidence: vec![] })
    }

    fn spans(&self, texts: bool) -> SpanReader {
        SpanReader::new(self.writer.reader(), texts, "1.2.3")
    }
}

fn decoded(batch: &SpanBatch) -> Vec<Span> {
    let of = |body: &[u8]| {
        let data = TracesData::decode(body).unwrap();
        data.resource_spans.into_iter().flat_map(|r| r.scope_spans).flat_map(|s| s.spans).collect::<Vec<_>>()
    };
    let spans: Vec<Span> = batch.messages.iter().flat_map(|message| of(&message.body)).collect();
    assert_eq!(spans.len() as u64, batch.messages.iter().map(|message| message.spans).sum::<u64>());
    spans
}

fn names(batch: &SpanBatch) -> Vec<String> {
    decoded(batch).into_iter().map(|span| span.name).collect()
}

#[test]
fn a_span_is_sent_once_as_soon_as_it_ends() {
    for texts in [false, true] {
        let mut log = Log::new();
        let mut spans = log.spans(texts);
        log.prompt(0).call(10, "a").call(20, "b").result(30, "a");
        let batch = spans.read(0, 4, at(0)).unwrap();
        assert_eq!((names(&batch), batch.until), (vec!["execute_tool Bash".to_owned()], 4));
        // The rest of the turn, with the calls still open at its end.
        log.call(40, "c").result(50, "b").turn_end(600, 1);
        let batch = spans.read(4, 7, at(0)).unwrap();
        let sent = decoded(&batch);
        let calls: Vec<_> = sent.iter().filter(|span| span.name == "execute_tool Bash").collect();
        let outcomes: Vec<_> = calls.iter().map(|span| attribute(span, "capture.tool.outcome").unwrap()).collect();
        assert_eq!(outcomes, ["ok", "open"], "texts: {texts}");
        let turn = sent.iter().find(|span| span.name == "invoke_agent claude").unwrap();
        assert!(calls.iter().all(|call| call.parent_span_id == turn.span_id));
        assert!(turn.links.is_empty());
        // A late result of a call that was sent with its turn does not send the call again.
        log.result(700, "c").prompt(800).call(810, "d").result(820, "d");
        assert_eq!(names(&spans.read(7, 11, at(0)).unwrap()), ["execute_tool Bash"], "texts: {texts}");
        log.turn_end(900, 2).state(1_000, State::Idle);
        assert_eq!(names(&spans.read(11, 13, at(0)).unwrap()), ["invoke_agent claude", "session"]);
        assert!(spans.read(13, 13, at(0)).unwrap().messages.is_empty());
    }
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    match span.attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_reader_continues_in_the_middle_of_a_turn() {
    let mut log = Log::new();
    log.prompt(0).turn_end(100, 1).prompt(200).call(210, "a").result(220, "a").call(230, "b").result(240, "b");
    // A restart after the first call: it may be sent again with the same id; the previous turn is not.
    let batch = log.spans(false).read(5, 7, at(0)).unwrap();
    let again = log.spans(false).read(4, 7, at(0)).unwrap();
    assert_eq!(names(&batch), ["execute_tool Bash", "execute_tool Bash"]);
    let ids = |batch: &SpanBatch| decoded(batch).into_iter().map(|span| span.span_id).collect::<Vec<_>>();
    assert_eq!(ids(&batch), ids(&again));
}

#[test]
fn expired_spans_are_dropped_and_counted_except_history() {
    let mut log = Log::new();
    log.prompt(0).call(10, "a").result(20, "a").turn_end(600, 1);
    let batch = log.spans(false).read(0, 4, at(10_000)).unwrap();
    assert_eq!((names(&batch).len(), batch.expired, batch.until), (0, 2, 4));
    let old = TurnCompleted { outcome: TurnOutcome::Completed, number: 2, duration_ms: 5, ..TurnCompleted::default() };
    log.put_event(700, old, true);
    assert_eq!(log.spans(false).read(4, 5, at(10_000)).unwrap().expired, 0);
}

#[test]
fn a_turn_span_is_linked_to_the_agents_trace() {
    let mut log = Log::new();
    let trace = |value: &str| Annotation { topic: Topic::Trace, value: value.into() };
    log.put(0, trace("0102030405060708090a0b0c0d0e0f10-0102030405060708"));
    log.prompt(0).put(1, trace("ff02030405060708090a0b0c0d0e0f10")).turn_end(500, 1);
    log.put(9_000, trace("aa02030405060708090a0b0c0d0e0f10-0102030405060708")).prompt(9_000).turn_end(9_500, 2);
    let sent = decoded(&log.spans(false).read(0, log.position, at(0)).unwrap());
    let [first, second] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((first.links.len(), first.links[0].trace_id[0], first.links[0].span_id[7]), (1, 1, 8));
    assert_eq!(attribute(first, "capture.agent.trace_id").unwrap(), "ff02030405060708090a0b0c0d0e0f10");
    assert_eq!((second.links.len(), second.links[0].trace_id[0]), (1, 0xaa));
}

#[test]
fn texts_are_omitted_unless_enabled_and_then_redacted() {
    let mut log = Log::new();
    log.prompt(0).call(10, "a").result(20, "a").turn_end(600, 1).state(700, State::Exited);
    let bodies = |texts| {
        let batch = log.spans(texts).read(0, 5, at(0)).unwrap();
        batch.messages.iter().flat_map(|message| message.body.clone()).collect::<Vec<u8>>()
    };
    let has = |body: &[u8], text: &str| body.windows(text.len()).any(|part| part == text.as_bytes());
    let without = bodies(false);
    assert!(!has(&without, "said") && !has(&without, "hunter2"));
    let with = bodies(true);
    assert!(has(&with, "said") && has(&with, "hunter2"), "the title is one of the texts");
    assert!(!has(&with, &secret()) && has(&with, "[redacted:"));
}

#[test]
fn a_message_contains_at_most_500_spans() {
    let mut log = Log::new();
    log.prompt(0);
    for n in 0..600 {
        log.call(10 + n, &format!("c{n}")).result(11 + n, &format!("c{n}"));
    }
    let batch = log.spans(false).read(0, log.position, at(0)).unwrap();
    assert_eq!(batch.messages.iter().map(|message| message.spans).collect::<Vec<_>>(), [500, 100]);
}
