use std::fmt::Write;

use events::Provider;
use serde::Deserialize;
use serde_json::{Value, json};

use serde_json::value::RawValue;

use super::*;

mod requests;

#[derive(Deserialize)]
struct Recorded<'a> {
    dir: &'a str,
    #[serde(borrow)]
    msg: &'a RawValue,
}

const RECORDINGS: [(Provider, &str, &str); 6] = [
    (Provider::Claude, "claude-allow", include_str!("../../../fixtures/protocol/claude-allow.jsonl")),
    (Provider::Claude, "claude-deny", include_str!("../../../fixtures/protocol/claude-deny.jsonl")),
    (Provider::Claude, "claude-interrupt", include_str!("../../../fixtures/protocol/claude-interrupt.jsonl")),
    (Provider::Codex, "codex", include_str!("../../../fixtures/protocol/codex.jsonl")),
    (Provider::Gemini, "gemini", include_str!("../../../fixtures/protocol/gemini.jsonl")),
    (Provider::Opencode, "opencode", include_str!("../../../fixtures/protocol/opencode.jsonl")),
];

pub(super) const ALLOW: AgentAnswer = AgentAnswer { allow: true, message: None, rewrite: None, answers: None };

pub(super) fn deny(message: &str) -> AgentAnswer {
    AgentAnswer { allow: false, message: Some(message.to_owned()), ..ALLOW }
}

/// The codec of an agent.
pub(super) fn codec_of(provider: Provider, cwd: &str) -> Box<dyn Codec> {
    codec(drive(provider).unwrap().protocol, cwd)
}

/// The agent's lines in a recording.
pub(super) fn written(name: &str) -> (Provider, Vec<&'static str>) {
    let (provider, _, text) = RECORDINGS.into_iter().find(|(_, known, _)| *known == name).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Recorded<'static>>(line).unwrap());
    (provider, all.filter(|one| one.dir == "out").map(|one| one.msg.get()).collect())
}

/// The requests of a recording, in order.
pub(super) fn requests(name: &str) -> Vec<PermissionRequest> {
    let (provider, lines) = written(name);
    let mut codec = codec_of(provider, "/home/dev/proj");
    codec.begin();
    let heard = lines.into_iter().flat_map(|line| codec.decode_line(line));
    heard.filter_map(|meaning| if let Meaning::Asks(request) = meaning { Some(*request) } else { None }).collect()
}

/// The interpretation of a recording: a line for each message sent, and one for each meaning. A prompt is sent whenever
/// the agent is ready for one.
fn understood(name: &str) -> String {
    let (provider, lines) = written(name);
    let mut codec = codec_of(provider, "/home/dev/proj");
    let mut text = String::new();
    for line in codec.begin() {
        writeln!(text, "> {line}").unwrap();
    }
    for line in lines {
        for meaning in codec.decode_line(line) {
            let prompts = matches!(meaning, Meaning::Ready | Meaning::Ended(_));
            match meaning {
                Meaning::Send(line) => writeln!(text, "> {line}"),
                Meaning::Session(id) => writeln!(text, "session {id}"),
                Meaning::Ready => writeln!(text, "ready"),
                Meaning::Text(words) => writeln!(text, "text {words:?}"),
                Meaning::Called { tool, .. } => writeln!(text, "called {tool}"),
                Meaning::Returned { outcome, .. } => writeln!(text, "returned {outcome}"),
                Meaning::Asks(request) => {
                    let given = [codec.answer(&request, &ALLOW), codec.answer(&request, &deny("no"))];
                    writeln!(
                        text,
                        "asks {}\n  yes {}\n  no  {}",
                        request.id,
                        given[0].as_deref().unwrap_or("-"),
                        given[1].as_deref().unwrap_or("-")
                    )
                }
                Meaning::Settled(id) => writeln!(text, "settled {id}"),
                Meaning::Ended(outcome) => writeln!(text, "ended {outcome:?}"),
                Meaning::Failed(words) => writeln!(text, "failed {words}"),
                Meaning::Unrecognized(sort) => writeln!(text, "unrecognized {sort}"),
            }
            .unwrap();
            if prompts {
                codec.prompt("go on").unwrap();
            }
        }
    }
    text
}

#[track_caller]
fn check(name: &str, expected: &str) {
    let text = understood(name);
    let lines =
        |text: &str| text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&text), lines(expected), "{name}:\n{text}");
}

const GREETS_CLAUDE: &str = r#"> {"request":{"hooks":{"PreToolUse":[{"hookCallbackIds":["capture-place"],"matcher":null}]},"subtype":"initialize"},"request_id":"capture-begins","type":"control_request"}"#;

#[test]
fn recorded_claude_code_sessions_are_decoded_and_answered() {
    let allow = r#"
        session 5fae4b74-b896-484f-8cc3-1e938f8dc84e
        ready
        text "I'll run it."
        called Bash
        asks "dcf717d8-eb00-49b5-805c-26b91785e33f"
          yes {"type":"control_response","response":{"subtype":"success","request_id":"dcf717d8-eb00-49b5-805c-26b91785e33f","response":{"behavior":"allow","updatedInput":{"command": "touch made.txt && echo done", "description": "Create a file"}}}}
          no  {"type":"control_response","response":{"subtype":"success","request_id":"dcf717d8-eb00-49b5-805c-26b91785e33f","response":{"behavior":"deny","message":"no"}}}
        returned ok
        text "After the tool."
        ended Completed
        text "Second turn answer."
        ended Completed
    "#;
    check("claude-allow", &format!("{GREETS_CLAUDE}{allow}"));
    let denied = r#"
        session 51ef7ce5-56a4-46e3-977d-c2b69c45ca66
        ready
        text "I'll run it."
        called Bash
        asks "8f1df77f-7b57-41d1-b8c0-cafbffae1d18"
          yes {"type":"control_response","response":{"subtype":"success","request_id":"8f1df77f-7b57-41d1-b8c0-cafbffae1d18","response":{"behavior":"allow","updatedInput":{"command": "touch made.txt && echo done", "description": "Create a file"}}}}
          no  {"type":"control_response","response":{"subtype":"success","request_id":"8f1df77f-7b57-41d1-b8c0-cafbffae1d18","response":{"behavior":"deny","message":"no"}}}
        returned denied
        text "After the tool."
        ended Completed
    "#;
    check("claude-deny", &format!("{GREETS_CLAUDE}{denied}"));
    let interrupted = r#"
        session 5e6a53d1-f5ea-4c22-bf05-1667c7d84785
        ready
        text "A very long answer that "
        ended Interrupted
    "#;
    check("claude-interrupt", &format!("{GREETS_CLAUDE}{interrupted}"));
}

#[test]
fn recorded_codex_session_is_decoded_and_answered() {
    check(
        "codex",
        &r#"> {"id":1,"method":"initialize","params":{"capabilities":{"experimentalApi":true},"clientInfo":{"name":"capture","title":"capture","version":"VERSION"}}}
        > {"method":"initialized"}
        > {"id":2,"method":"thread/start","params":{"approvalPolicy":"on-request","cwd":"/home/dev/proj"}}
        session 01a1f744-863b-7322-a9ac-f2aef6b10097
        ready
        text "Running "
        text "it."
        called commandExecution
        asks 0
          yes {"id":0,"result":{"decision":"accept"}}
          no  {"id":0,"result":{"decision":"decline"}}
        settled 0
        returned ok
        text "Done."
        ended Completed
        called commandExecution
        asks 1
          yes {"id":1,"result":{"decision":"accept"}}
          no  {"id":1,"result":{"decision":"decline"}}
        settled 1
        returned denied
        text "Declined, "
        text "fine."
        ended Completed
        called fileChange
        asks 2
          yes {"id":2,"result":{"decision":"accept"}}
          no  {"id":2,"result":{"decision":"decline"}}
        settled 2
        returned ok
        text "Patch "
        text "handled."
        ended Completed
        text "word "
        text "word "
        ended Interrupted"#
            .replace("VERSION", env!("CARGO_PKG_VERSION")),
    );
}

#[test]
fn recorded_gemini_session_is_decoded_and_answered() {
    check(
        "gemini",
        r#"> {"id":1,"jsonrpc":"2.0","method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false}},"protocolVersion":1}}
        > {"id":2,"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/home/dev/proj","mcpServers":[]}}
        session 9e532f59-f339-481b-913c-1981ac501552
        ready
        text "Running."
        asks 0
          yes {"jsonrpc":"2.0","id":0,"result":{"outcome":{"optionId":"proceed_once","outcome":"selected"}}}
          no  {"jsonrpc":"2.0","id":0,"result":{"outcome":{"optionId":"cancel","outcome":"selected"}}}
        returned ok
        text "Acp "
        text "done."
        ended Completed
        asks 1
          yes {"jsonrpc":"2.0","id":1,"result":{"outcome":{"optionId":"proceed_once","outcome":"selected"}}}
          no  {"jsonrpc":"2.0","id":1,"result":{"outcome":{"optionId":"cancel","outcome":"selected"}}}
        text "Denied "
        text "then."
        ended Completed
        asks 2
          yes {"jsonrpc":"2.0","id":2,"result":{"outcome":{"optionId":"proceed_once","outcome":"selected"}}}
          no  {"jsonrpc":"2.0","id":2,"result":{"outcome":{"optionId":"cancel","outcome":"selected"}}}
        returned ok
        text "Edited "
        text "it."
        ended Completed
        text "Asked "
        text "it."
        ended Completed
        text "slow "
        text "slow "
        ended Interrupted
        ended Failed("{\"error\":{\"code\":401,\"message\":\"bad\",\"status\":\"UNAUTHENTICATED\"}}")
        called echo yolo
        returned ok
        text "Yolo "
        text "done."
        ended Completed"#,
    );
}

#[test]
fn recorded_opencode_session_is_decoded_and_answered() {
    check(
        "opencode",
        r#"> {"id":1,"jsonrpc":"2.0","method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false}},"protocolVersion":1}}
        > {"id":2,"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/home/dev/proj","mcpServers":[]}}
        session ses_dfa296869ffebp7tnE2BnABfIF
        ready
        text "I run it."
        called bash
        asks 0
          yes {"jsonrpc":"2.0","id":0,"result":{"outcome":{"optionId":"once","outcome":"selected"}}}
          no  {"jsonrpc":"2.0","id":0,"result":{"outcome":{"optionId":"reject","outcome":"selected"}}}
        returned ok
        text "I edit."
        called write
        asks 1
          yes {"jsonrpc":"2.0","id":1,"result":{"outcome":{"optionId":"once","outcome":"selected"}}}
          no  {"jsonrpc":"2.0","id":1,"result":{"outcome":{"optionId":"reject","outcome":"selected"}}}
        > {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"fs/write_text_file is not supported"}}
        unrecognized a request: fs/write_text_file
        returned ok
        text "Edited it."
        ended Completed
        text "Again."
        called bash
        asks 3
          yes {"jsonrpc":"2.0","id":3,"result":{"outcome":{"optionId":"once","outcome":"selected"}}}
          no  {"jsonrpc":"2.0","id":3,"result":{"outcome":{"optionId":"reject","outcome":"selected"}}}
        returned error
        ended Completed
        ended Interrupted"#,
    );
}

#[test]
fn unsupported_agent_requests_are_answered_with_an_error() {
    let hears = |provider, line: &Value| codec_of(provider, "/p").decode_line(&line.to_string());
    let sent = |heard: Vec<Meaning>| match heard.into_iter().next() {
        Some(Meaning::Send(line)) => serde_json::from_str::<Value>(&line).unwrap(),
        other => panic!("{other:?}"),
    };
    for subtype in ["elicitation", "can_use_all_tools", "can_use_tool"] {
        // The last one has no tool and arrives before the session is known.
        let asked = json!({"type": "control_request", "request_id": "r", "request": {"subtype": subtype}});
        let answer = sent(hears(Provider::Claude, &asked));
        assert_eq!((&answer["response"]["subtype"], &answer["response"]["request_id"]), (&json!("error"), &json!("r")));
    }
    for method in ["item/permissions/requestApproval", "execCommandApproval", "item/tool/requestUserInput", "new"] {
        let answer = sent(hears(Provider::Codex, &json!({"id": "7", "method": method, "params": {"threadId": "t"}})));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("7"), &json!(-32601)));
    }
    for method in ["fs/write_text_file", "terminal/create", "session/request_permission"] {
        let answer = sent(hears(Provider::Gemini, &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {}})));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)));
    }
}

#[test]
fn a_session_start_error_ends_the_turn_as_failed() {
    let failed = |provider, line: &str| codec_of(provider, "/p").decode_line(line);
    let words = |words: &str| vec![Meaning::Ended(TurnEnd::Failed(words.into()))];
    let refused =
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"capture-begins","error":"no"}}"#;
    assert_eq!(failed(Provider::Claude, refused), words("no"));
    assert_eq!(failed(Provider::Codex, r#"{"id":2,"error":{"code":-1,"message":"no"}}"#), words("no"));
    assert_eq!(failed(Provider::Gemini, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#), words("no"));
}

#[test]
fn an_early_interrupt_is_sent_once_the_turn_id_is_known() {
    let mut codec = app_server::AppServer::new("/p");
    assert_eq!(codec.interrupt(), None);
    codec.decode_line(r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    assert!(codec.prompt("go").unwrap().contains("\"turn/start\""));
    assert_eq!(codec.interrupt(), None, "its id is not known yet");
    let [Meaning::Send(stop)] = &codec.decode_line(r#"{"id":3,"result":{"turn":{"id":"u"}}}"#)[..] else { panic!() };
    assert_eq!(stop, r#"{"id":4,"method":"turn/interrupt","params":{"threadId":"t","turnId":"u"}}"#);
    let mut codec = acp::Acp::new("/p");
    codec.decode_line(r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#);
    assert_eq!(codec.interrupt(), None);
    codec.prompt("go").unwrap();
    assert!(codec.interrupt().unwrap().contains("session/cancel"));
    let mut codec = stream_json::StreamJson::default();
    assert_eq!((codec.prompt("go"), codec.interrupt()), (None, None));
}

#[test]
fn a_patch_approval_uses_the_latest_version_of_the_patch() {
    let change = |path: &str| json!([{"path": path, "kind": {"type": "add"}, "diff": "x\n"}]);
    let mut codec = app_server::AppServer::new("/p");
    let mut told =
        |method: &str, params: Value| codec.decode_line(&json!({"method": method, "params": params}).to_string());
    told("thread/started", json!({"thread": {"id": "t"}}));
    told("item/started", json!({"item": {"id": "i", "type": "fileChange", "changes": change("README.md")}}));
    told("item/fileChange/patchUpdated", json!({"threadId": "t", "itemId": "i", "changes": change(".git/hooks/x")}));
    let asked =
        json!({"id": 7, "method": "item/fileChange/requestApproval", "params": {"threadId": "t", "itemId": "i"}});
    let [Meaning::Asks(asked)] = &codec.decode_line(&asked.to_string())[..] else { panic!("nothing is asked") };
    let item = asked.item.as_deref().unwrap();
    assert_eq!(app_server::changed(item), Some(vec![".git/hooks/x".to_owned()]));
}

#[test]
fn the_line_splitter_reports_invalid_and_overlong_lines_as_damaged() {
    let mut lines = LineSplitter::default();
    assert_eq!(lines.push(b"a\n\n  \nb"), [AgentLine::Whole("a".into())]);
    assert_eq!(
        lines.push(b"c\n\xff\nd\r\n"),
        [AgentLine::Whole("bc".into()), AgentLine::Damaged, AgentLine::Whole("d\r".into())]
    );
    let long = vec![b'x'; LINE_BYTES / 2 + 1];
    assert!(lines.push(&long).is_empty() && lines.push(&long).is_empty());
    assert_eq!(lines.push(b"x\ny\n"), [AgentLine::Damaged, AgentLine::Whole("y".into())]);
}
