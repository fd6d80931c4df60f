//! Our own agent driven by another program: the commands of pi's RPC mode, replayed from a recording of pi; the
//! questions the client is asked; and the end of the program.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    models::{
        Api,
        script::{Part, Script, Step, call, say},
    },
    terminal_user::signal,
};

use super::own_agent::{House, key, tool};

/// The lines pi 0.87.1 wrote and read.
const RECORDING: &str = include_str!("../../../fixtures/pi-rpc/pi-0.87.1.jsonl");

/// A program that drives the agent.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    sent: usize,
    /// The answer to questions about calls; with `None` they stay open.
    answer: Option<Value>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Client {
    fn start(house: &House, words: &[&str]) -> Self {
        let mut command = house.command(&[&["rpc"], words].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                assert!(!line.contains(&key()), "{line}");
                if send.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, input: Some(input), lines, sent: 0, answer: Some(json!({ "confirmed": true })) }
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).and_then(|()| input.flush()).unwrap();
    }

    /// Sends a command with a new id and returns the id.
    fn send(&mut self, mut command: Value) -> String {
        self.sent += 1;
        let id = format!("c{}", self.sent);
        command["id"] = id.clone().into();
        self.write(&command.to_string());
        id
    }

    /// The next line. Questions about calls are answered automatically.
    #[track_caller]
    fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        if line["type"] == "extension_ui_request"
            && let Some(answer) = &self.answer
        {
            let mut answer = answer.clone();
            answer["type"] = "extension_ui_response".into();
            answer["id"] = line["id"].clone();
            self.write(&answer.to_string());
        }
        line
    }

    /// Reads up to the first line that satisfies the condition; returns all lines read.
    #[track_caller]
    fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut read = Vec::new();
        while !read.last().is_some_and(&holds) {
            let line = self.next();
            read.push(line);
        }
        read
    }

    /// Sends a command; returns its answer and the lines before it.
    #[track_caller]
    fn ask(&mut self, command: Value) -> (Value, Vec<Value>) {
        let id = self.send(command);
        let mut read = self.until(|line| line["type"] == "response" && line["id"] == *id);
        (read.pop().unwrap(), read)
    }

    /// Sends a command that must succeed; returns the data of its answer.
    #[track_caller]
    fn data(&mut self, command: Value) -> Value {
        let (answer, _) = self.ask(command);
        assert_eq!(answer["success"], true, "{answer}");
        answer["data"].clone()
    }

    /// Sends a command that must fail; returns the error.
    #[track_caller]
    fn refused(&mut self, command: Value) -> String {
        let (answer, _) = self.ask(command);
        assert_eq!(answer["success"], false, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt; returns all lines up to the end of the turn.
    #[track_caller]
    fn prompt(&mut self, text: &str) -> Vec<Value> {
        self.send(json!({ "type": "prompt", "message": text }));
        self.until(is_end)
    }

    /// Requests a compaction; returns all lines up to its end, which may come before the answer.
    #[track_caller]
    fn compact(&mut self, command: Value) -> Vec<Value> {
        let is_over = |line: &Value| line["type"] == "compaction_end";
        let (answer, mut lines) = self.ask(command);
        assert_eq!(answer["success"], true, "{answer}");
        if !lines.iter().any(is_over) {
            lines.extend(self.until(is_over));
        }
        lines
    }

    /// Closes standard input; returns the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

fn is_end(line: &Value) -> bool {
    line["type"] == "agent_settled"
}

/// The kind of an event for comparing the order of events; `None` for events that pi may repeat a varying number of
/// times.
fn kind_of(line: &Value) -> Option<String> {
    let kind = line["type"].as_str().unwrap();
    match kind {
        // Partial output, events that only we send, and requests to the client.
        "tool_execution_update" | "bash_execution_update" | "entry_appended" | "extension_ui_request" => None,
        "message_update" => Some(line["assistantMessageEvent"]["type"].as_str().unwrap().to_owned()),
        "message_start" | "message_end" => {
            let role = line["message"]["role"].as_str().unwrap();
            // Only we send the session context.
            (role != "custom").then(|| format!("{kind} {role}"))
        }
        "response" => Some(format!("response {}", line["command"])),
        _ => Some(kind.to_owned()),
    }
}

/// Whether tools determine the order of such events.
fn is_of_tools(kind: &str) -> bool {
    kind.starts_with("tool_execution") || kind.ends_with("toolResult")
}

/// The kinds of events, with repetitions collapsed: the ordered ones, and the number of each kind of tool event.
fn kinds(lines: &[Value]) -> (Vec<String>, BTreeMap<String, usize>) {
    let (mut ordered, mut of_tools) = (Vec::new(), BTreeMap::new());
    for kind in lines.iter().filter_map(kind_of) {
        if is_of_tools(&kind) {
            *of_tools.entry(kind).or_default() += 1;
        } else if ordered.last() != Some(&kind) || !kind.ends_with("_delta") {
            ordered.push(kind);
        }
    }
    (ordered, of_tools)
}

/// The streamed text, joined.
fn text_of(lines: &[Value]) -> String {
    let pieces = lines.iter().map(|line| &line["assistantMessageEvent"]).filter(|piece| piece["type"] == "text_delta");
    pieces.filter_map(|piece| piece["delta"].as_str()).collect()
}

/// The paths of an object's fields; the paths in a list are the union over its items.
fn fields(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = format!("{path}.{key}");
                into.insert(path.clone());
                fields(value, &path, into);
            }
        }
        Value::Array(items) => {
            for item in items {
                fields(item, &format!("{path}[]"), into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The text the model sends before it hangs.
const HANGING: &str = "A long text";

/// The model of the recording.
fn script() -> Script {
    let with_id = |call: tests::models::script::Call, id: &str| {
        let id = Some(id.to_owned());
        tests::models::script::Call { id, ..call }
    };
    let read = with_id(tool("read", json!({ "path": "notes.txt" })), "toolu_a");
    let echo = with_id(tool("bash", json!({ "command": "echo hi" })), "toolu_b");
    let wait = "while [ ! -e go ]; do sleep 0.05; done; echo went";
    let wait = with_id(tool("bash", json!({ "command": wait })), "toolu_c");
    Script::default()
        .lane(
            "How many notes",
            [
                Step::Answer(vec![
                    Part::Think("hm".to_owned()),
                    Part::Say("I look.".to_owned()),
                    Part::Call(read),
                    Part::Call(echo),
                ]),
                say("There are two lines."),
            ],
        )
        .lane("now run", [call(wait)])
        .lane("steer it", [say("Steered.")])
        .lane("and then", [say("Followed.")])
        .lane("hang", [Step::Answer(vec![Part::Say(HANGING.to_owned()), Part::Until("never".to_owned())])])
        .lane("retry", [Step::Fail { status: 529, retry_after: None, times: 1 }, say("After a retry.")])
        .lane("fails", [Step::Fail { status: 400, retry_after: None, times: 9 }])
}

/// Commands that pi executes and we refuse, or the reverse; `docs/agent.md` gives the reasons.
const DIFFERENT: [(&str, bool); 2] = [("bash", false), ("set_model nope", true)];

/// Fields of pi that our output lacks: those its types mark as optional (`docs/message-types.md`), fields of a provider
/// in a message that has only begun, the parts of its system prompt, its commands, and the details its tools report.
const NOT_OURS: [&str; 11] = [
    ".responseId",
    ".rawStopReason",
    ".cacheWrite1h",
    "message_start assistant pending.message.content[]",
    ".sections",
    ".data.commands[]",
    ".tree[]",
    ".details",
    ".replacement",
    ".targetId",
    // pi records the level with which a session begins; we record only changes.
    ".entries[].thinkingLevel",
];

#[test]
fn replayed_pi_rpc_commands_are_answered_like_pi() {
    let house = House::new(Api::Anthropic, script());
    let mut client = Client::start(&house, &[]);
    let lines: Vec<Value> = RECORDING.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut parts: Vec<(Value, Vec<Value>)> = Vec::new();
    for line in lines {
        match line["dir"].as_str() {
            Some("in") => parts.push((line["line"].clone(), Vec::new())),
            _ => parts.last_mut().unwrap().1.push(line["line"].clone()),
        }
    }
    let (mut forks, mut state) = (Value::Null, Value::Null);
    let mut told = BTreeMap::new();
    for (mut command, recorded) in parts {
        let name = command["type"].as_str().unwrap().to_owned();
        match name.as_str() {
            "fork" => command["entryId"] = forks["messages"][1]["entryId"].clone(),
            "switch_session" => command["sessionPath"] = state["sessionFile"].clone(),
            _ => {}
        }
        let id = command["id"].as_str().unwrap().to_owned();
        // The last line is not JSON; the recorder sent it after the last command.
        let expected: Vec<Value> = recorded.into_iter().filter(|line| line["command"] != "parse").collect();
        client.write(&command.to_string());
        if id == "r18" {
            fs::write(house.machine.project().join("go"), "").unwrap();
        }
        let (ordered, of_tools) = kinds(&expected);
        let mut read = Vec::new();
        loop {
            read.push(client.next());
            let (ours, of_ours) = kinds(&read);
            // The hanging text arrives in pieces: the next command is sent only after the last one.
            let whole = id != "r19" || text_of(&read) == HANGING;
            if whole && ours.len() >= ordered.len() && of_ours.values().sum::<usize>() >= of_tools.values().sum() {
                break;
            }
        }
        assert_eq!(kinds(&read), (ordered, of_tools), "{command}");
        let answer_in = |lines: &[Value]| lines.iter().find(|line| line["type"] == "response").cloned().unwrap();
        let (ours, theirs) = (answer_in(&read), answer_in(&expected));
        let named = format!("{name} {}", command["modelId"].as_str().unwrap_or_default());
        let different = DIFFERENT.iter().find(|(of, _)| named.trim() == *of);
        let success = different.map_or(theirs["success"].clone(), |(_, success)| Value::Bool(*success));
        assert_eq!(ours["success"], success, "{command} {ours}");
        match name.as_str() {
            "get_fork_messages" => forks = ours["data"].clone(),
            "get_state" if id == "r39" => state = ours["data"].clone(),
            _ => {}
        }
        if different.is_none() {
            for (lines, whose) in [(&read, 0), (&expected, 1)] {
                for line in lines {
                    let Some(kind) = kind_of(line) else { continue };
                    let stop = line["message"]["stopReason"].as_str().unwrap_or_default();
                    let of: &mut [BTreeSet<String>; 2] =
                        told.entry(format!("{kind} {stop}").trim_end().to_owned()).or_default();
                    fields(line, "", &mut of[whose]);
                }
            }
        }
    }
    let mut missing = Vec::new();
    for (kind, [ours, theirs]) in &told {
        let missed = theirs.difference(ours).map(|path| format!("{kind}{path}"));
        missing.extend(missed.filter(|path| !NOT_OURS.iter().any(|not| path.contains(not))));
    }
    assert_eq!(missing, [""; 0]);
    client.write("not json");
    let line = client.next();
    assert_eq!((&line["command"], &line["success"]), (&json!("parse"), &json!(false)), "{line}");
    assert_eq!(client.end(), Some(0));
}

/// The fields of the answers that the client of pi 1.6.0 reads (`dist/modes/rpc/rpc-client.js`).
#[test]
fn accepted_messages_report_whether_they_started_a_turn_or_were_queued() {
    let script = Script::default()
        .lane("hang", [Step::Answer(vec![Part::Say(HANGING.to_owned()), Part::Until("go".to_owned())])])
        .lane("steer", [say("Steered.")])
        .lane("follow", [say("Followed.")])
        .lane("later", [say("Later.")]);
    let house = House::new(Api::Anthropic, script);
    let mut client = Client::start(&house, &[]);
    let prompt = |text: &str| json!({ "type": "prompt", "message": text });
    assert_eq!(client.data(prompt("hang")), json!({ "disposition": "started" }));
    client.until(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    let queued = json!({ "disposition": "queued" });
    assert_eq!(client.data(json!({ "type": "steer", "message": "steer" })), queued);
    assert_eq!(client.data(json!({ "type": "follow_up", "message": "follow" })), queued);
    let later = json!({ "type": "prompt", "message": "later", "streamingBehavior": "followUp" });
    assert_eq!(client.data(later), queued);
    assert!(client.refused(prompt("now")).contains("a turn is running"));
    house.model.tell("go");
    client.until(is_end);
    assert_eq!(client.end(), Some(0));
    house.is_clean();
}

#[test]
fn background_commands_stopped_with_a_session_are_reported_to_the_client() {
    let serve = tool("bash", json!({ "command": "sleep 600", "background": true }));
    let house = House::new(Api::Anthropic, Script::default().lane("serve", [call(serve), say("It runs.")]));
    let mut client = Client::start(&house, &[]);
    client.prompt("serve");
    let (_, before) = client.ask(json!({ "type": "new_session" }));
    let stopped = before.iter().find(|line| line["type"] == "background_stopped").unwrap();
    assert_eq!(stopped["processes"], json!([{ "id": "p1", "command": "sleep 600" }]));
    assert_eq!(client.end(), Some(0));
    assert!(!house.runs("600"));
}

#[test]
fn only_a_confirmation_by_the_rpc_client_allows_a_call() {
    let edit = || call(tool("edit", json!({ "path": "notes.txt", "edits": [{ "old": "second", "new": "2nd" }] })));
    let question = json!({ "question": "Which one?", "options": ["left", "right"] });
    let script = Script::default()
        .lane("first", [call(tool("read", json!({ "path": "notes.txt" }))), edit(), say("No.")])
        .lane("second", [edit(), say("Yes.")])
        .lane("third", [call(tool("ask", question)), call(tool("ask", json!({ "question": "Why?" }))), say("Thanks.")])
        .lane("fourth", [call(tool("bash", json!({ "command": "touch made" }))), say("Nobody.")]);
    let house = House::new(Api::Anthropic, script);
    let mut client = Client::start(&house, &["--wait", "1"]);
    let asked = |lines: &[Value]| -> Vec<Value> {
        lines.iter().filter(|line| line["type"] == "extension_ui_request").cloned().collect()
    };
    // Any answer except a yes counts as no.
    client.answer = Some(json!({ "value": "yes" }));
    let question = asked(&client.prompt("first"));
    assert_eq!(question.len(), 1, "{question:?}");
    assert_eq!(question[0]["method"], "confirm");
    let timeout = question[0]["timeout"].as_u64().unwrap();
    assert!((1..=1000).contains(&timeout), "{question:?}");
    assert!(question[0]["title"].as_str().unwrap().contains("edit"), "{question:?}");
    assert!(question[0]["message"].as_str().unwrap().contains("+2nd line"), "{question:?}");
    assert_eq!(house.notes(), "first line\nsecond line\n");
    client.answer = Some(json!({ "confirmed": true }));
    client.prompt("second");
    assert_eq!(house.notes(), "first line\n2nd line\n");
    client.answer = Some(json!({ "value": "right" }));
    let questions = asked(&client.prompt("third"));
    assert_eq!((&questions[0]["method"], &questions[0]["options"]), (&json!("select"), &json!(["left", "right"])));
    assert_eq!(questions[1]["method"], "input");
    let results = house.model.results("third");
    assert!(results.iter().rev().take(2).all(|result| result.contains("right")), "{results:?}");
    // Without an answer the call is not run.
    client.answer = None;
    client.prompt("fourth");
    assert!(house.model.results("fourth").last().unwrap().contains("was not answered in time"));
    assert!(!house.machine.project().join("made").exists());
    let decided = house.entries("capture.decided");
    let by = decided.iter().map(|entry| entry["data"]["by"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(by, ["policy", "client", "client", "client", "client", "nobody"]);
    assert_eq!(client.end(), Some(0));
    house.is_clean();
}

#[test]
fn unavailable_rpc_commands_are_refused_and_our_extensions_work() {
    let reads = || [call(tool("read", json!({ "path": "notes.txt" }))), say("Done.")];
    let script = Script::default().lane("read", reads()).lane("more", reads());
    let house = House::new(Api::Anthropic, script);
    let mut client = Client::start(&house, &["--name", "A name"]);
    for (command, told) in [
        (json!({ "type": "undo" }), "not implemented"),
        (json!({ "type": "redo" }), "not implemented"),
        (json!({ "type": "tasks" }), "not implemented"),
        (json!({ "type": "bash", "command": "touch made" }), "does not run commands"),
        (json!({ "type": "export_html" }), "capture export"),
        (json!({ "type": "set_steering_mode", "mode": "one-at-a-time" }), "only the mode `all`"),
        (json!({ "type": "set_model", "provider": "other", "modelId": "x" }), "`other` is not configured"),
        (json!({ "type": "fork", "entryId": "nope" }), "no messages yet"),
        (json!({ "type": "switch_session", "sessionPath": "/nowhere.jsonl" }), "/nowhere.jsonl"),
        (json!({ "type": "clone" }), "no messages yet"),
        (json!({ "type": "pause" }), "no turn is running"),
        (json!({ "type": "limit", "costUsd": -1 }), "US dollars"),
        (json!({ "type": "prompt", "message": "" }), "empty"),
        (json!({ "type": "prompt" }), "missing field `message`"),
        (
            json!({ "type": "prompt", "message": "x", "images": [{ "type": "image", "data": "a~b", "mimeType": "image/png" }] }),
            "images[0].data: not base64",
        ),
        (
            json!({ "type": "steer", "message": "x", "images": [{ "type": "image", "data": "aGk=", "mimeType": "text/html" }] }),
            "images[0].mimeType: expected image/png",
        ),
    ] {
        let error = client.refused(command.clone());
        assert!(error.contains(told), "{command}: {error}");
    }
    assert!(!house.machine.project().join("made").exists());
    assert_eq!(client.data(json!({ "type": "get_state" }))["sessionName"], "A name");
    // The limit pauses the turn before the second request; raising it continues the turn.
    client.data(json!({ "type": "limit", "calls": 1 }));
    client.send(json!({ "type": "prompt", "message": "read" }));
    client.until(|line| line["type"] == "turn_paused" && line["reason"] == "call_limit");
    client.data(json!({ "type": "limit" }));
    let (resumed, before) = client.ask(json!({ "type": "resume" }));
    assert_eq!(resumed["success"], true, "{resumed}");
    // The answer may arrive after the end of the turn.
    if !before.iter().any(is_end) {
        client.until(is_end);
    }
    let cache = client.data(json!({ "type": "cache" }));
    assert_eq!(cache["requests"].as_array().unwrap().len(), 2, "{cache}");
    // A line that is too long is skipped, and the next one is read.
    client.write(&format!(r#"{{"type":"prompt","message":"{}"}}"#, "x".repeat(5 << 20)));
    assert!(client.next()["error"].as_str().unwrap().contains("longer than 4 MiB"));
    // Switches to another session and back.
    let first = client.data(json!({ "type": "get_state" }));
    client.data(json!({ "type": "new_session" }));
    let second = client.data(json!({ "type": "get_state" }));
    assert_ne!(first["sessionId"], second["sessionId"]);
    assert_eq!(second["messageCount"], 0);
    client.data(json!({ "type": "switch_session", "sessionPath": first["sessionFile"] }));
    assert_eq!(client.data(json!({ "type": "get_state" }))["sessionId"], first["sessionId"]);
    let error = client.refused(json!({ "type": "fork", "entryId": "nope" }));
    assert!(error.contains("nope"), "{error}");
    client.prompt("more");
    assert_eq!(client.data(json!({ "type": "get_last_assistant_text" }))["text"], "Done.");
    assert_eq!(client.end(), Some(0));
    house.is_clean();
}

#[test]
fn rpc_mode_stops_running_commands_at_end_of_input_or_sigterm() {
    let sleep = || Script::default().lane("sleep", [call(tool("bash", json!({ "command": "exec sleep 7777" })))]);
    for how in [None, Some(Signal::TERM)] {
        let house = House::new(Api::Anthropic, sleep());
        let mut client = Client::start(&house, &[]);
        client.send(json!({ "type": "prompt", "message": "sleep" }));
        client.until(|line| line["type"] == "tool_execution_start");
        eventually("the command runs", || house.runs("7777").then_some(()));
        let code = match how {
            None => client.end(),
            Some(with) => {
                signal(client.child.id().try_into().unwrap(), with);
                client.child.wait().unwrap().code()
            }
        };
        assert_eq!(code, Some(if how.is_some() { 143 } else { 0 }));
        eventually("the command ended with it", || (!house.runs("7777")).then_some(()));
        let ended = house.entries("capture.task");
        assert_eq!(ended[0]["data"]["outcome"], "interrupted", "{ended:?}");
    }
}

#[test]
fn invalid_or_forbidden_rpc_invocations_are_refused() {
    let house = House::new(Api::Anthropic, Script::default());
    for (words, code, told) in [
        (
            &["--mode", "accept-edits"][..],
            5,
            "needs you at a terminal, but a program drives this session: use --mode ask",
        ),
        (&["--model", "sonnet"], 2, "PROVIDER/MODEL"),
        (&["--continue"], 4, "capture's own agent has no session in "),
    ] {
        let output = house.command(&[&["rpc"], words].concat()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?} {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(told), "{words:?} {output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    let run = house.machine.agents_shell("claude", "capture agent rpc").output().unwrap();
    assert_eq!(run.status.code(), Some(5), "{run:?}");
}

#[test]
fn a_long_conversation_is_compacted_and_goes_on() {
    let long = |text: &str| say(&format!("{text} {}", "and so on ".repeat(6_000)));
    let script = Script::default()
        .lane("The conversation above", [say("## Goal\nCount the apples.")])
        .lane("Session context", [say("The value is 7919.")])
        .lane("first", [long("One.")])
        .lane("second", [long("Two.")])
        .lane("third", [long("Three.")])
        .lane("fourth", [say("The value is 7919.")]);
    let house = House::new(Api::Anthropic, script);
    let mut client = Client::start(&house, &[]);
    assert_eq!(client.data(json!({ "type": "get_state" }))["autoCompactionEnabled"], true);
    client.data(json!({ "type": "set_auto_compaction", "enabled": false }));
    assert_eq!(client.data(json!({ "type": "get_state" }))["autoCompactionEnabled"], false);
    client.prompt("first: the value is 7919");
    // Nothing is replaced yet: the end of a conversation always stays.
    let ended = client.compact(json!({ "type": "compact" })).pop().unwrap();
    assert!(ended["errorMessage"].as_str().unwrap().starts_with("there is nothing to compact yet"), "{ended}");
    client.prompt("second");
    client.prompt("third");
    let lines = client.compact(json!({ "type": "compact", "customInstructions": "the apples" }));
    assert!(lines.iter().any(|line| line["type"] == "compaction_start" && line["reason"] == "manual"), "{lines:?}");
    let ended = lines.last().unwrap();
    assert_eq!((&ended["aborted"], &ended["reason"]), (&json!(false), &json!("manual")), "{ended}");
    assert!(ended["result"]["tokensBefore"].as_u64().unwrap() > 30_000, "{ended}");
    let file = fs::read_to_string(house.file()).unwrap();
    let entries = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let compacted = entries.into_iter().find(|entry| entry["type"] == "compaction").unwrap();
    let summary = compacted["summary"].as_str().unwrap();
    assert!(summary.contains("1. first: the value is 7919") && summary.ends_with("Count the apples."), "{summary}");
    // The model read from the provider's cache all but the last answer, and nothing was written.
    let tokens = |key: &str| compacted["usage"][key].as_u64().unwrap();
    let last_answer = "and so on ".len() as u64 * 6_000 / 4;
    assert!(tokens("cacheRead") > 2 * last_answer && tokens("cacheWrite") == 0, "{compacted}");
    client.prompt("fourth: what is the value?");
    assert_eq!(client.end(), Some(0));
    // The file has the whole conversation, and the next process begins with the summary.
    let kept = fs::read_to_string(house.file()).unwrap();
    assert!(kept.contains("One. and so on") && !kept.contains("the apples]"), "the order is not in the file");
    house.is_clean();
}

/// A key of a vendor that looks real. It is put together here, so that no scanner takes it for one.
fn planted(number: usize) -> String {
    format!("sk-ant-api03-{}-{number:04}AA", "Qz7bT3mK9xR2vL5nW8cJ4hD6fG1sP0yE".repeat(3).get(..87).unwrap())
}

#[test]
fn a_secret_in_a_message_reaches_neither_the_model_nor_the_file() {
    let script = Script::default().lane("use", [say("Done.")]);
    for masks in [true, false] {
        let setting = format!("mask_prompts = {masks}");
        let house = House::with(Api::Anthropic, script.clone(), &setting);
        let mut client = Client::start(&house, &[]);
        let (mut kept, mut told) = (0, 0);
        for number in 0..20 {
            let secret = planted(number);
            let lines = client.prompt(&format!("use {secret} for request {number}"));
            told += lines.iter().filter(|line| line["type"] == "secrets_masked" && line["count"] == 1).count();
            kept += usize::from(fs::read_to_string(house.file()).unwrap().contains(&secret));
        }
        assert_eq!((kept, told), if masks { (0, 20) } else { (20, 0) });
        let file = fs::read_to_string(house.file()).unwrap();
        assert_eq!(file.contains("use [redacted:"), masks, "the rest of the message stays");
        assert_eq!(client.end(), Some(0));
    }
}
