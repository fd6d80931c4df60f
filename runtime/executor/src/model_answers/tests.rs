//! Requests to a loopback server that speaks Anthropic's protocol.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
};

use engine::{cache::CacheRules, *};
use models::{Api, Secret};
use outbound::{Lookup, SystemLookup};
use session_tree::{Json, NewEntry, Session, Stamp};
use tools::{SCHEMAS, Settings, Tools};

use super::*;
use crate::{
    PermissionBroker, PrintExit, PrintFormat, PrintGate, PrintStreams, SessionParts, SessionTools, open, print,
};

#[derive(Default)]
struct Clock(AtomicU64);

impl SessionClock for Clock {
    fn now(&self) -> StepTime {
        let ms = self.0.fetch_add(1, Ordering::Relaxed);
        StepTime { wall_ms: 1_763_900_000_000 + i64::try_from(ms).unwrap(), mono_ms: ms }
    }

    fn random(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

struct AllowAll;

impl PermissionBroker for AllowAll {
    fn decide(&self, _: AskedPermission) -> BoxFuture<'static, CallDecision> {
        let decision = CallDecision {
            verdict: CallVerdict::Allow,
            by: "policy".to_owned(),
            rule: None,
            audit: None,
            reason: None,
            answer: None,
            arguments: None,
        };
        Box::pin(std::future::ready(decision))
    }
}

/// Answers requests in order with these events; returns the bodies.
fn serve(answers: Vec<String>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (bodies, received) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            bodies.send(String::from_utf8(body).unwrap()).unwrap();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).unwrap();
        }
    });
    (url, received)
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// An answer of one block with this usage: uncached, read, written.
fn answer(start: &str, delta: &str, stop: &str, [input, read, written]: [u64; 3]) -> String {
    let usage = format!(
        r#"{{"input_tokens":{input},"cache_read_input_tokens":{read},"cache_creation_input_tokens":{written},"output_tokens":1}}"#
    );
    [
        event(
            "message_start",
            &format!(
                r#"{{"type":"message_start","message":{{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{usage}}}}}"#
            ),
        ),
        event("content_block_start", &format!(r#"{{"type":"content_block_start","index":0,"content_block":{start}}}"#)),
        event("content_block_delta", &format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)),
        event("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
        event(
            "message_delta",
            &format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop}"}},"usage":{{"output_tokens":9}}}}"#),
        ),
        event("message_stop", r#"{"type":"message_stop"}"#),
    ]
    .concat()
}

fn call(id: &str, tool: &str, input: &str, usage: [u64; 3]) -> String {
    let start = format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{{}}}}"#);
    let input = serde_json::to_string(input).unwrap();
    answer(&start, &format!(r#"{{"type":"input_json_delta","partial_json":{input}}}"#), "tool_use", usage)
}

fn choice() -> ModelChoice {
    ModelChoice {
        window: None,
        provider: "anthropic".to_owned(),
        id: "claude-x".to_owned(),
        api: Api::Anthropic.name().to_owned(),
        thinking: "off".to_owned(),
        cache: CacheRules::Markers { lookback: 20, min_tokens: 1024, ttl_ms: 300_000, long_ttl_ms: 3_600_000 },
        is_priced: false,
    }
}

fn answers(url: &str, clock: Arc<dyn SessionClock>) -> ModelAnswers {
    let target = Target::new(Api::Anthropic, "anthropic", "claude-x", 4096);
    let endpoint = ModelEndpoint::new(url, Some(Secret::new("key".to_owned()))).unwrap();
    let prices = Arc::new(Prices::shipped().unwrap());
    let routes = ModelRoutes::default();
    routes.add(ModelRoute {
        target,
        endpoint,
        client: ModelClient::loopback("capture-test").unwrap(),
        key_source: "the key is from MY_KEY".to_owned(),
    });
    ModelAnswers::new(routes, "session".to_owned(), prices, clock)
}

#[test]
fn a_session_runs_file_tools_and_predicts_cache_reads() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = dir.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let (url, bodies) = serve(vec![
        call("t1", "write", r#"{"path":"a.txt","content":"one\ntwo\n"}"#, [10, 0, 5000]),
        call("t2", "edit", r#"{"path":"a.txt","edits":[{"old":"two","new":"three"}]}"#, [10, 5000, 300]),
        call("t3", "read", r#"{"path":"a.txt","lines":3}"#, [10, 5300, 300]),
        // The cache is lost.
        answer(r#"{"type":"text","text":""}"#, r#"{"type":"text_delta","text":"done"}"#, "end_turn", [6000, 0, 0]),
    ]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let clock: Arc<dyn SessionClock> = Arc::new(Clock::default());
    let tools = Tools::new(Settings {
        cwd: workspace.clone(),
        workspace: workspace.clone(),
        outputs: dir.path().join("outputs"),
        environment: Vec::new(),
        pass: Vec::new(),
        host: Vec::new(),
        allow_hosts: Vec::new(),
        lookup: Arc::new(SystemLookup) as Arc<dyn Lookup>,
    })
    .unwrap();
    let session = Session::create(&dir.path().join("sessions"), "/w", None, Stamp { now_ms: 1, random: 2 });
    let path = session.path().to_owned();
    let schemas = Json::parse(SCHEMAS).unwrap();
    let schemas: Vec<Object> = schemas.as_array().unwrap().iter().filter_map(Json::as_object).cloned().collect();
    let parts = SessionParts {
        setup: EngineSetup {
            session: session.tree().header().id().to_owned(),
            version: "1".to_owned(),
            system: "You are an agent.".to_owned(),
            tools: schemas.clone(),
            model: choice(),
            limits: SpendLimits::default(),
            turns: TurnSettings::default(),
        },
        session,
        facts: SessionFacts::default(),
        workspace: workspace.clone(),
        answers: Box::new(answers(&url, Arc::clone(&clock))),
        tools: Arc::new(SessionTools::new(Arc::new(tools))),
        broker: Arc::new(AllowAll),
        clock,
        masks_messages: true,
    };
    let session = open(parts, runtime.handle()).unwrap();
    let message =
        UserMessage { id: "p".to_owned(), content: Json::from("write a file"), origin: MessageOrigin::Person };
    let mut out = Vec::new();
    let (exit, error) = runtime
        .block_on(print(
            &session,
            message,
            PrintFormat::Text,
            PrintStreams {
                out: &mut out,
                progress: None,
                clock: |_| String::new(),
                now: || 0,
                attempts: 13,
                gate: PrintGate::closed(),
            },
        ))
        .unwrap();
    runtime.block_on(session.close());
    assert_eq!((String::from_utf8(out).unwrap().as_str(), exit, error), ("done\n", PrintExit::Done, None));
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "one\nthree\n");

    let tree: Tree = Session::read(&path).unwrap().into();
    let messages: Vec<&Object> = tree.leaf_path().into_iter().filter_map(|entry| entry.message()).collect();
    let results = messages.iter().filter(|message| message.text("role") == Some("toolResult"));
    let errors: Vec<bool> = results.map(|result| result.get("isError") == Some(&Json::Bool(true))).collect();
    assert_eq!(errors, [false, false, true], "an unknown field is an error");
    // Every request contains the previous one, except for the marks.
    let bodies: Vec<String> = bodies.try_iter().collect();
    let plain = |body: &String| body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    for pair in bodies.windows(2) {
        let (before, after) = (plain(&pair[0]), plain(&pair[1]));
        let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        assert!(before.len() - same < 200, "{} of {} bytes are the same", same, before.len());
    }
    // The tools are sent as they were stored.
    assert!(plain(&bodies[0]).contains(&schemas[0].get("parameters").unwrap().to_text()));
    let of = |entry| match entries::RequestRecord::of(entry) {
        Some(entries::RequestRecord::Sent(sent)) => Some(format!("read {}", sent.predicted.read)),
        Some(entries::RequestRecord::Ended(ended)) => ended.cause.map(|cause| format!("{cause:?}")),
        None => None,
    };
    use entries::RuntimeEntry as _;
    let told: Vec<String> = tree.leaf_path().into_iter().filter_map(of).collect();
    assert_eq!(told, ["read 0", "read 5000", "read 5300", "read 5600", "EvictedByVendor"]);
}

#[test]
fn cache_markers_are_placed_as_the_engine_requests() {
    let clock: Arc<dyn SessionClock> = Arc::new(Clock::default());
    let mut answers = answers("http://127.0.0.1:9", clock);
    let mut tree = Tree::new(session_tree::SessionHeader::new("/w", None, Stamp { now_ms: 0, random: 1 }), Vec::new());
    let mut n = 1_i64;
    let mut say = |role: &str, text: &str| {
        n += 1;
        let block = Object::new().with("type", "text").with("text", text);
        let content: Json = if role == "system" { text.into() } else { vec![Json::from(block)].into() };
        let message = Object::new().with("role", role).with("content", content).with("stopReason", "stop");
        tree.append(
            NewEntry::Message(message.with("timestamp", 1_i64)),
            Stamp { now_ms: n, random: 7 + u128::from(n.unsigned_abs()) },
        )
        .unwrap();
        tree.clone()
    };
    say("system", "be good");
    say("user", "one");
    say("assistant", "two");
    let tree = say("user", "three");
    let plan = |long_system_cache| RequestPlan {
        request: RequestNumber(1),
        model: choice(),
        long_system_cache,
        purpose: RequestPurpose::Turn,
    };
    let digest = answers.prepare(&plan(true), &tree).unwrap();
    let marked: Vec<(bool, bool)> = digest.blocks.iter().map(|block| (block.is_marked, block.is_long)).collect();
    let marks = marked.iter().filter(|(is_marked, _)| *is_marked).count();
    assert_eq!(marks, 3, "{marked:?}");
    assert_eq!(marked.iter().filter(|(_, is_long)| *is_long).count(), 1);
    assert_eq!(marked[marked.len() - 3..], [(false, false), (true, false), (true, false)]);
    assert!(answers.send(RequestNumber(2)).is_none(), "another request");
    let unknown = RequestPlan { model: ModelChoice { id: "other".to_owned(), ..choice() }, ..plan(false) };
    let refused = answers.prepare(&unknown, &tree).unwrap_err();
    assert!(
        matches!(&refused, PrepareFailure::Failed(failure) if failure.kind == FailureKind::BadRequest),
        "{refused:?}"
    );
}

#[test]
fn a_session_with_released_texts_sends_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let clock: Arc<dyn SessionClock> = Arc::new(Clock::default());
    let new = || answers("http://127.0.0.1:9", Arc::clone(&clock));
    let spilling = new().spilling_to(SpillFile::new(tempfile::tempfile));
    let (mut lived, mut compared) = (spilling, new());
    let mut session = Session::create(dir.path(), "/w", None, Stamp { now_ms: 0, random: 1 });
    let message = |role: &str, block: Object| {
        let message = Object::new().with("role", role).with("content", vec![Json::from(block)]);
        NewEntry::Message(message.with("toolCallId", "c").with("stopReason", "toolUse").with("timestamp", 1_i64))
    };
    let text = |text: String| Object::new().with("type", "text").with("text", text);
    let call = || Object::new().with("type", "toolCall").with("id", "c").with("name", "read");
    let system = Object::new().with("role", "system").with("content", "be good").with("timestamp", 1_i64);
    let mut n = 1_i64;
    let mut append = |session: &mut Session, entry: NewEntry| {
        n += 1;
        session.append(entry, Stamp { now_ms: n, random: 7 + (u128::from(n.unsigned_abs()) << 70) }).unwrap();
    };
    let body = |answers: &ModelAnswers| {
        String::from_utf8(answers.prepared.as_ref().unwrap().encoded.body.to_vec().unwrap()).unwrap()
    };
    append(&mut session, NewEntry::Message(system));
    for round in 0..60_u64 {
        append(&mut session, message("user", text(format!("go on {round}"))));
        append(&mut session, message("assistant", call()));
        let data = Object::new().with("round", round);
        append(&mut session, NewEntry::Custom { custom_type: "capture.started".into(), data: Some(data.into()) });
        append(&mut session, message("toolResult", text(format!("{round} \n").repeat(10_000))));
        append(&mut session, message("assistant", text("That is all.".to_owned())));
        let plan = RequestPlan {
            request: RequestNumber(round),
            model: choice(),
            long_system_cache: round % 7 == 0,
            purpose: RequestPurpose::Turn,
        };
        let whole = session.whole_tree().unwrap();
        let digest = compared.prepare(&plan, &whole).unwrap();
        assert_eq!(lived.prepare(&plan, session.tree()).unwrap(), digest, "{round}");
        assert_eq!(body(&lived), body(&compared), "{round}");
        session.release(0);
    }
    let entries = session.tree().entries();
    assert!(entries[1..].iter().all(|entry| entry.is_released()));
    let bytes: usize = entries.iter().map(|entry| entry.fields().memory_bytes()).sum();
    assert!(bytes < 60 * 4000, "{bytes}");
    // Encoding them again requires their texts.
    let plan = RequestPlan {
        request: RequestNumber(99),
        model: choice(),
        long_system_cache: false,
        purpose: RequestPurpose::Turn,
    };
    assert_eq!(new().prepare(&plan, session.tree()), Err(PrepareFailure::Released));
    let mut another = new();
    another.prepare(&plan, &session.whole_tree().unwrap()).unwrap();
    compared.prepare(&plan, &session.whole_tree().unwrap()).unwrap();
    assert_eq!(body(&another), body(&compared));
}
