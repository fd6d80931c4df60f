//! Planted secrets of every kind (`fixtures/redact`) through every door by which text leaves: every function that
//! shortens, joins or decorates a text removes its secrets. Each door declares whether it shows texts as written, so a
//! new door must declare it too.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use api::routes::{OperationId, ROUTES};
use events::{
    ApprovalRequested, AssistantMessage, Claim, Confidence, Dialog, Event, EventId, Kind, Origin, Payload, Provider,
    QuestionAsked, SessionId, Signal, Source, State, Timestamp, ToolCall, ToolKind, ToolOutcome, ToolResult,
    UserPrompt,
};
use export::{
    conversation::{self, ConversationFormat},
    conversation_html::{self, HtmlOptions},
    dataset::DatasetTurns,
    otlp::{OtlpOptions, SessionTrace},
    report::{Handoff, Markup, ReportFormat},
};
use monitor::{DetectorLimits, Monitor};
use projections::{ConversationItems, Drift, SessionState, StatusRules, WorkLog};
use serde::Deserialize;
use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    program::Machine,
    receiver::Receiver,
    terminal_user::end_all,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// Separates the parts of secrets in the fixtures.
const BREAK: &str = "\u{2016}";
/// Number of consecutive bytes of a secret that must not appear. Fewer reveal nothing.
const PART: usize = 10;

#[derive(Deserialize)]
struct Planted {
    id: String,
    text: String,
    secrets: Vec<String>,
}

impl Planted {
    /// One example of every kind.
    fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/redact");
        let mut kinds: BTreeSet<String> = BTreeSet::new();
        let mut all = Vec::new();
        for name in ["tuned", "wider", "held-out", "disguised", "unseen", "fresh"] {
            let file = fs::read_to_string(folder.join(name).with_extension("jsonl")).unwrap();
            for line in file.lines() {
                let mut one: Self = serde_json::from_str(line).unwrap();
                one.text = one.text.replace(BREAK, "");
                one.secrets.iter_mut().for_each(|secret| *secret = secret.replace(BREAK, ""));
                // `wider-github-pat-3` is the fourth of its kind in its file.
                let kind = one.id.trim_end_matches(|c: char| c.is_ascii_digit());
                let kind = kind.strip_prefix(name).unwrap_or(kind).to_owned();
                if !one.secrets.is_empty() && kinds.insert(kind) {
                    all.push(one);
                }
            }
        }
        all.extend(surroundings());
        all
    }

    /// The parts of the secrets that the rules find when they read the whole text.
    fn parts(&self, text: &str) -> HashSet<String> {
        let left = redact::text(text).into_owned();
        let parts = self.secrets.iter().flat_map(|secret| {
            let bytes = secret.as_bytes();
            bytes.windows(PART.min(bytes.len())).filter_map(|part| std::str::from_utf8(part).ok()).map(str::to_owned)
        });
        parts.filter(|part| part.is_ascii() && !left.contains(part)).collect()
    }
}

/// Secrets recognizable only by their surroundings: a command, a header, a preceding line.
fn surroundings() -> impl Iterator<Item = Planted> {
    const SECRET: &str = "q7Rk2mZp9Lw4TfVb";
    let lines: Vec<String> = (0..6).map(|n| format!("MIIEpAIBAAKCAQEA{n}{SECRET}{SECRET}{n}")).collect();
    let texts = [
        format!("echo {SECRET} | sudo -S ls"),
        format!("echo \"root:{SECRET}\" | chpasswd"),
        format!("https://app.test/#access_token={SECRET}{SECRET}&expires_in=3600"),
        format!("htpasswd -b f bob {SECRET}"),
        format!("-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----", lines.join("\n")),
        format!("{{\"auths\":{{\"r.test\":{{\"auth\":\"bWU6{SECRET}{SECRET}\"}}}}}}"),
        format!("mysql -u root -p{SECRET} -h db shop"),
        format!("curl -u admin:{SECRET} https://api.test"),
        format!("psql postgres://app:{SECRET}@db.test/app"),
        format!("export PASSWORD={SECRET}; ./deploy"),
    ];
    texts.into_iter().enumerate().map(move |(n, text)| {
        let mut secrets = lines.clone();
        secrets.push(SECRET.into());
        secrets.retain(|secret| text.contains(secret.as_str()));
        Planted { id: format!("surroundings-{n}"), text, secrets }
    })
}

/// Texts with the secret at the beginning, across each position at which texts are cut, and within a long text.
fn placements(one: &Planted) -> Vec<String> {
    const FILLER: &str = "look at what is said here and tell me what to do with it ";
    let at = one.text.find(&one.secrets[0]).unwrap();
    let mut texts = vec![one.text.clone(), format!("{}\n\n{}", one.text, FILLER.repeat(10))];
    for limit in [60_usize, 80, 160, 200, 256, 400] {
        for inside in [1, one.secrets[0].len().min(24) / 2] {
            let before = (limit + inside).saturating_sub(at + one.secrets[0].len().min(24));
            let mut filler: String = FILLER.chars().cycle().take(before).collect();
            filler.push(' ');
            texts.push(format!("{filler}{} {FILLER}", one.text));
        }
    }
    texts.push(format!("{}{}\n{}", FILLER.repeat(10), one.text, FILLER.repeat(10)));
    texts
}

fn event(sequence: u64, text: Option<&str>, payload: impl Into<Payload>) -> Event {
    let at = Timestamp::from_millisecond(1_000_000 + i64::try_from(sequence).unwrap() * 10);
    Event {
        position: sequence,
        id: EventId::from_bits(sequence.into()),
        session_id: SessionId::from_bits(1),
        sequence,
        provider: Provider::Claude,
        provider_session_id: "p".into(),
        source: Source::Transcript,
        created_at: at,
        observed_at: at,
        turn_id: None,
        parent_id: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: text.map(str::to_owned),
        text_ref: None,
        payload: payload.into(),
        origin: Origin::Derived,
        derived: false,
        history: false,
    }
}

/// A session in which every text is this one.
fn session_of(text: &str) -> Vec<Event> {
    let input = json!({ "command": text }).to_string();
    let call = |id: &str, tool| ToolCall {
        call_id: id.into(),
        name: "Bash".into(),
        tool,
        title: Some(text.to_owned()),
        ..ToolCall::default()
    };
    let returned = |id: &str| ToolResult { call_id: id.into(), outcome: ToolOutcome::Error, ..ToolResult::default() };
    let asked = ApprovalRequested {
        approval_id: "a1".into(),
        call_id: Some("c3".into()),
        command: Some(text.to_owned()),
        input: Some(input.clone()),
        ..ApprovalRequested::default()
    };
    let dialog = Dialog { subject: Some(text.to_owned()), question: Some(text.to_owned()), ..Dialog::default() };
    let claim = Claim::State { state: State::WaitingApproval, reason: None };
    let waits =
        Signal { dialog: Some(Box::new(dialog)), ..Signal::new(claim, Confidence::High, Some(text.to_owned())) };
    let failed = Payload::from_json(Kind::Error, r#"{"class":"provider","ends_turn":true}"#).unwrap();
    let mut events = vec![
        event(1, Some(text), UserPrompt::default()),
        event(2, Some(&input), call("c1", ToolKind::Execute)),
        event(3, Some(text), returned("c1")),
        event(4, Some(&input), call("c2", ToolKind::Edit)),
        event(5, Some(text), ToolResult { outcome: ToolOutcome::Ok, ..returned("c2") }),
        event(6, Some(text), AssistantMessage { thinking: Some(text.to_owned()), ..AssistantMessage::default() }),
        event(7, Some(text), QuestionAsked { call_id: Some("q".into()), ..QuestionAsked::default() }),
        event(8, Some(text), UserPrompt::default()),
        event(9, Some(&input), call("c3", ToolKind::Execute)),
        event(10, None, asked),
        event(11, None, waits),
        event(12, Some(text), failed),
    ];
    events[10].source = Source::Pty;
    events
}

/// Every string of a value.
fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\0');
        }
        Value::Array(values) => values.iter().for_each(|value| strings(value, out)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            out.push_str(name);
            out.push('\0');
            strings(value, out);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn strings_of(value: &impl serde::Serialize) -> String {
    let mut out = String::new();
    strings(&serde_json::to_value(value).unwrap(), &mut out);
    out
}

/// The texts that each door produces from a session.
fn doors(events: &[Event]) -> Vec<(&'static str, String)> {
    let (id, at) = (SessionId::from_bits(1), Timestamp::from_millisecond(1_000_000));
    let mut state = SessionState::new(id, Provider::Claude, None, at, StatusRules::default());
    let (mut monitor, mut items, mut work) =
        (Monitor::new(DetectorLimits::default()), ConversationItems::default(), WorkLog::default());
    let mut drift = Drift::default();
    let (mut views, mut turns, mut findings) = (String::new(), Vec::new(), String::new());
    let mut doors = Vec::new();
    for event in events {
        let conclusions = state.fold(event);
        turns.extend(conclusions.into_iter().filter_map(|conclusion| conclusion.turn));
        let session = state.view().clone();
        views += &strings_of(&session);
        views += &session.summary.tooltip();
        let found = monitor.apply(event).into_iter().chain(monitor.check(&session, event.created_at));
        found.for_each(|finding| findings += &strings_of(&redact::of_finding(finding)));
        work.apply(event);
        drift.apply(event);
        items.apply(event);
    }
    let later = Timestamp::from_millisecond(100_000_000);
    let found = monitor.advance(later);
    let open = found.into_iter().map(redact::of_finding).collect::<Vec<_>>();
    findings += &strings_of(&open);
    work.complete(|_| Ok::<_, ()>(None)).unwrap();
    let session = state.view().clone();
    doors.extend([
        ("a session, its title and summary", views),
        ("turns", strings_of(&turns)),
        ("findings", findings),
        ("what was done", strings_of(&work)),
        ("the distance of edits", strings_of(&drift)),
    ]);
    let note = Handoff::new(session.clone(), turns.clone(), work, open);
    for markup in [Markup::Markdown, Markup::Terminal] {
        let format = ReportFormat { markup, path: &|path| path.to_owned(), time: &|at| at.to_string() };
        doors.push(("a handoff", note.text(format)));
    }
    let redact = |text: &str| redact::text(text).into_owned();
    let format = ConversationFormat { lines: None, thinking: true, time: &|at| at.to_string() };
    let html = HtmlOptions { redact: &redact, time: &|at| at.to_string(), subagent: None };
    let otlp = OtlpOptions { redact: &redact, texts: true, provider: None, version: "1" };
    let mut trace = SessionTrace::new(&session, otlp);
    let mut dataset = DatasetTurns::new(&session, &redact, &|_| false);
    let mut spans = vec![trace.root()];
    let (mut markdown, mut page, mut records) =
        (conversation::heading(&session, format), conversation_html::begin(&session, html), String::new());
    for item in items.into_items(usize::MAX).iter().map(redact::of_item) {
        markdown += &conversation::item(&item, format);
        page += &conversation_html::item(&item, html);
        spans.extend(trace.item(&item));
        records += &dataset.apply(&item).map(|record| strings_of(&record)).unwrap_or_default();
    }
    spans.extend(turns.iter().map(|turn| trace.turn(turn)));
    records += &dataset.finish().map(|record| strings_of(&record)).unwrap_or_default();
    let trace: Value = serde_json::from_str(&trace.encode(spans).unwrap()).unwrap();
    doors.extend([
        ("Markdown", markdown),
        ("a page", page.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")),
        ("a trace", strings_of(&trace)),
        ("a dataset", records),
    ]);
    doors
}

#[test]
fn no_derived_text_contains_a_planted_secret() {
    let (mut checked, mut leaks) = (0, Vec::new());
    for (n, one) in Planted::all().into_iter().enumerate() {
        // Each kind checks only a share of the cuts.
        let is_its_turn = |place: &usize| *place < 2 || place % 6 == n % 6;
        for (_, text) in placements(&one).into_iter().enumerate().filter(|(place, _)| is_its_turn(place)) {
            let parts = one.parts(&text);
            checked += usize::from(!parts.is_empty());
            for (door, said) in doors(&session_of(&text)) {
                if let Some(part) = parts.iter().find(|part| said.contains(part.as_str())) {
                    let (before, behind) = said.split_once(part.as_str()).unwrap();
                    let begin = before.rfind('\0').map_or(0, |end| end + 1);
                    let end = before.len() + part.len() + behind.find('\0').unwrap_or(behind.len());
                    leaks.push(format!("{} by {door}: {part} in {:?}", one.id, &said[begin..end]));
                }
            }
        }
    }
    assert!(checked > 500, "{checked} texts with secrets");
    assert!(leaks.is_empty(), "{} leaks, such as\n{}", leaks.len(), leaks[..leaks.len().min(30)].join("\n"));
}

/// Why a route shows texts as written; `None` if it must redact, which is the default for a new route.
#[allow(clippy::wildcard_enum_match_arm, reason = "a new route has to redact")]
fn shows_as_written(operation: OperationId) -> Option<&'static str> {
    use OperationId as O;
    match operation {
        O::ListEvents | O::ReadConversation | O::GetText | O::ListNotes => Some("the record itself"),
        O::ListApprovals | O::GetApproval => Some("a person must see every byte of a request"),
        O::ListPrompts => Some("what is to be typed"),
        O::ListRuns | O::GetRun => Some("the command line that was given"),
        O::RunScreen | O::SessionScreen | O::ExplainRun | O::ExplainSession => Some("the screen of a terminal"),
        O::RunTerminal | O::RunRecording | O::RunRecordingFrames => Some("the terminal of a run"),
        O::AgentApiGetStatus | O::AgentApiGetMessages | O::AgentApiEvents => Some("the screen of a run"),
        O::Stream | O::StreamOverWebSocket | O::CompatStatusStream | O::CompatSessionStream => {
            Some("a stream: of its frames those of sessions and findings are the views that are checked here")
        }
        O::CompatMessages => Some("the record itself"),
        O::ConnectHost | O::WaitForState => Some("no answer of its own"),
        _ => None,
    }
}

/// A session with one secret in each of its texts.
fn written(machine: &Machine, n: u64, text: &str) -> (String, std::path::PathBuf) {
    let (id, cwd) = (session(n), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap().to_owned());
    append(&path, &prompt(&id, &uuid(n, 1), &cwd, text));
    append(&path, &answer(&id, &uuid(n, 2), &cwd, text));
    (id, path)
}

#[test]
fn no_route_command_export_or_message_leaks_a_planted_secret() {
    let machine = Machine::new(PROGRAM);
    let hooks = Receiver::start();
    let secret = machine.home().join("hook.secret");
    fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    machine.configure(&format!(
        "autostart = false\n[notify]\nallow_hosts = [\"{}\"]\n\
         channels = [{{ type = \"webhook\", name = \"hook\", url = \"{}\", secret_file = \"{}\" }}]\n",
        hooks.host(),
        hooks.url("/in"),
        secret.display()
    ));
    let server = machine.serve();
    let mut planted: Vec<(Planted, String)> = Vec::new();
    for (n, one) in Planted::all().into_iter().enumerate() {
        let mut texts = placements(&one);
        let text = texts.swap_remove(n % texts.len());
        if !one.parts(&text).is_empty() {
            planted.push((one, text));
        }
    }
    let mut parts: HashSet<String> = planted.iter().flat_map(|(one, text)| one.parts(text)).collect();
    // In another example the same bytes may not be secret.
    for (_, text) in &planted {
        let left = redact::text(text);
        parts.retain(|part| !left.contains(part.as_str()));
    }
    let mut last = (String::new(), std::path::PathBuf::new());
    for (n, (_, text)) in (1..).zip(&planted) {
        last = written(&machine, n, text);
    }
    server.caught_up(&last.0, &last.1);
    for (_, text) in planted.iter().rev().take(12) {
        let payload = json!({
            "session_id": last.0, "cwd": machine.project(), "hook_event_name": "PermissionRequest",
            "tool_name": "Bash", "tool_input": {"command": text},
        });
        let mut hook = machine.command(&["hook", "claude"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
        assert!(hook.wait().unwrap().success());
    }
    let ids: Vec<String> = eventually("every session is there", || {
        let page = server.client.json("/api/v1/sessions?active=all&limit=1000")?;
        let ids: Vec<_> = page["sessions"].as_array()?.iter().map(|s| s["id"].as_str().unwrap().to_owned()).collect();
        (ids.len() >= planted.len()).then_some(ids)
    });
    let mut leaks = Vec::new();
    let mut check = |door: &str, said: &str| {
        let window = |at: usize| said.get(at..at + PART).filter(|part| parts.contains(*part));
        for at in 0..said.len().saturating_sub(PART) {
            if let Some(part) = window(at) {
                let before = said.floor_char_boundary(at.saturating_sub(80));
                leaks.push(format!("{door}: {:?}", &said[before..at + part.len()]));
                return;
            }
        }
    };
    for route in ROUTES.iter().filter(|route| route.method == "GET" && shows_as_written(route.operation).is_none()) {
        let mut paths = vec![route.path.to_owned()];
        if route.is_of_session() || route.path.contains("/sessions/{id}") {
            paths = ids.iter().map(|id| route.path_of(id)).collect();
        } else if route.path.contains("/findings/{id}") {
            let all = server.client.json("/api/v1/findings?state=all&limit=1000").unwrap();
            let all = all["findings"].as_array().unwrap().iter();
            paths = all.map(|finding| route.path_of(finding["id"].as_str().unwrap())).collect();
        } else if matches!(
            route.operation,
            OperationId::ListSessions | OperationId::ListRecentTurns | OperationId::ListTimeline
        ) {
            paths = vec![format!("{}?limit=1000", route.path), format!("{}?limit=100", route.path)];
        } else if route.operation == OperationId::SearchTexts {
            paths =
                ["look", "token", "password", "key", "echo"].map(|word| format!("{}?q={word}", route.path)).to_vec();
        }
        for path in paths {
            let answer = server.client.get(&path).unwrap();
            let said = serde_json::from_slice::<Value>(&answer.body)
                .map_or_else(|_| answer.text(), |value| strings_of(&value));
            check(&path, &said);
        }
    }
    let says = |arguments: &[&str]| {
        let output = machine.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for arguments in [
        &["ps", "--all"] as &[&str],
        &["standup", "--since", "3650d"],
        &["standup", "--since", "3650d", "--json"],
        &["log"],
        &["findings", "--all"],
        &["dataset", "--out", "-"],
        &["show", &last.0],
        &["explain", &last.0],
    ] {
        check(&arguments.join(" "), &says(arguments));
    }
    let formats = says(&["export", "--help"]);
    for format in ["md", "html", "jsonl", "otlp"] {
        assert!(formats.contains(format), "{formats}");
        for id in ids.iter().step_by(ids.len() / 12 + 1) {
            check(&format!("export {format}"), &says(&["export", id, "--format", format, "--texts"]));
            check("handoff", &says(&["handoff", id]));
        }
    }
    for message in hooks.wait(1, PATIENCE) {
        check("a message", &String::from_utf8_lossy(&message.body));
    }
    check("the log", &server.log());
    end_all(&machine.data());
    assert!(planted.len() > 120, "{} examples", planted.len());
    assert!(leaks.is_empty(), "{} leaks, such as\n{}", leaks.len(), leaks[..leaks.len().min(30)].join("\n"));
}
