//! The meaning of each kind of record, tested on short records, and the recordings read in any pieces.

use std::{fmt::Write as _, fs, path::Path, sync::Arc};

use events::{Claim, NewEvent, Payload, Provider, Repeat, Timestamp};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use tailer::decode::{Decoded, Decoder, Record, feed};

const PATH: &str = "/home/a/.qwen/projects/-w/chats/s1.jsonl";

/// Events in short form: kind, relevant data, text.
fn short(event: &NewEvent) -> String {
    let kind = event.payload.kind();
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let mut line = match &event.payload {
        Payload::SessionStarted(s) => {
            format!("{kind} {} {} {}", s.how, or_none(&s.cwd), or_none(&s.cli_version))
        }
        Payload::UserPrompt(p) => format!("{kind} {} +{}", p.origin, p.attachments),
        Payload::AssistantMessage(m) => {
            let stop = m.stop.map_or("-", events::Stop::as_str);
            format!("{kind} {} stop={stop} calls={} thinking={}", or_none(&m.model), m.tool_calls, or_none(&m.thinking))
        }
        Payload::ToolCall(c) => {
            let may_ask = if c.may_ask { " may ask" } else { "" };
            format!("{kind} {} {} {} `{}`{may_ask}", c.call_id, c.name, c.tool, or_none(&c.title))
        }
        Payload::ToolResult(r) => format!("{kind} {} {} {:?}", r.call_id, r.outcome, r.exit_code),
        Payload::UsageReported(u) => {
            format!("{kind} {}+{}>{}", u.input_tokens, u.cache_read_tokens, u.output_tokens)
        }
        Payload::Error(e) => {
            format!("{kind} {} {} ends={} retrying={}", e.class, or_none(&e.code), e.ends_turn, e.retrying)
        }
        Payload::ContextCompacted(c) => format!("{kind} {:?} {:?}", c.tokens_before, c.tokens_after),
        Payload::SessionForked(f) => format!("{kind} {} {}", f.from, or_none(&f.at)),
        Payload::Annotation(a) => format!("{kind} {} {}", a.topic, a.value),
        Payload::Signal(s) => match &s.claim {
            Claim::TurnEnded { outcome, .. } => format!("{kind} ended {outcome} {}", s.strength),
            other => format!("{kind} {other:?}"),
        },
        Payload::Unrecognized(u) => format!("{kind} {}", u.raw_kind),
        _ => kind.to_string(),
    };
    if let Some(text) = &event.text {
        let _ = write!(line, " | {}", text.replace('\n', "⏎"));
    }
    line
}

/// Passes the records of `bytes`, which begin at `offset` of the file, to a decoder.
fn give(decoder: &mut dyn Decoder, bytes: &[u8], mut offset: u64, out: &mut Decoded) {
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let record = Record { bytes: line.trim_ascii_end(), offset, observed_at: Timestamp::from_millisecond(1) };
        feed(decoder, record, out);
        offset += line.len() as u64;
    }
    decoder.pause(out);
}

fn decode(path: &str, text: &str) -> Decoded {
    let mut out = Decoded::new(Provider::Qwen, Arc::from(path), 1);
    give(&mut QwenDecoder::new(path, None), text.as_bytes(), 0, &mut out);
    out
}

/// A record; `more` has its fields besides those of all records.
fn record(uuid: &str, kind: &str, more: &str) -> String {
    format!(
        r#"{{"uuid":"{uuid}","parentUuid":null,"sessionId":"s1","timestamp":"2026-11-22T14:14:31.052Z","type":"{kind}","cwd":"/w","version":"0.24.4",{more}}}"#
    ) + "\n"
}

/// Checks the events of the records, without the first one, the session's start.
#[track_caller]
fn check(records: &[String], expected: &[&str]) {
    let out = decode(PATH, &records.concat());
    let all: Vec<String> = out.events.iter().map(short).collect();
    assert_eq!(all[0], "session.started new /w 0.24.4");
    assert_eq!(all[1..], *expected);
}

fn system(subtype: &str, payload: &str) -> String {
    record(subtype, "system", &format!(r#""subtype":"{subtype}","systemPayload":{payload}"#))
}

fn telemetry(event: &str) -> String {
    system("ui_telemetry", &format!(r#"{{"uiEvent":{event}}}"#))
}

#[test]
fn session_files_are_recognized_by_path() {
    let is = |path: &str| recognize(Path::new(path));
    assert!(is("projects/-w/chats/2dfa4904-8513-48da-8ff7-82751d564f08.jsonl"));
    for other in [
        "projects/-w/chats/2dfa4904.runtime.json",
        "projects/-w/chats/2dfa4904.ledger.jsonl",
        "projects/-w/chats/.jsonl",
        "projects/-w/subagents/s/agent-x.jsonl",
        "projects/-w/meta.json",
        "usage_record.jsonl",
        "../projects/-w/chats/x.jsonl",
    ] {
        assert!(!is(other), "{other}");
    }
}

#[test]
fn prompt_origin_is_derived_from_the_record_subtype() {
    let user = |subtype: &str| {
        let subtype = if subtype.is_empty() { String::new() } else { format!(r#""subtype":"{subtype}","#) };
        record("u", "user", &format!(r#"{subtype}"message":{{"role":"user","parts":[{{"text":"Hi"}}]}}"#))
    };
    check(&[user("")], &["user.prompt human +0 | Hi"]);
    check(&[user("mid_turn_user_message")], &["user.prompt steering +0 | Hi"]);
    check(&[user("cron")], &["user.prompt wakeup +0 | Hi"]);
    check(&[user("notification")], &["user.prompt wakeup +0 | Hi"]);
    let shown =
        r#""message":{"parts":[{"text":"@x contents"},{"inlineData":{}}]},"systemPayload":{"displayText":"@x"}"#;
    check(&[record("u", "user", shown)], &["user.prompt human +1 | @x"]);
}

#[test]
fn an_answer_without_usage_or_response_record_is_aborted() {
    let parts = r#""model":"m","message":{"role":"model","parts":[{"text":"Hm.","thought":true},{"text":"Fine."}]}"#;
    let usage = r#","usageMetadata":{"promptTokenCount":1200,"candidatesTokenCount":21,"thoughtsTokenCount":4,"cachedContentTokenCount":200}"#;
    let answer = "assistant.message m stop=end_turn calls=0 thinking=Hm. | Fine.";
    check(&[record("a", "assistant", &format!("{parts}{usage}"))], &[answer, "usage.reported 1000+200>21"]);
    // A server that counts no tokens; the record before reports that the response is complete.
    let responded = telemetry(r#"{"event.name":"qwen-code.api_response"}"#);
    check(&[responded, record("a", "assistant", parts)], &[answer]);
    let cut = "assistant.message m stop=aborted calls=0 thinking=Hm. | Fine.";
    check(&[record("a", "assistant", parts)], &[cut, "signal ended interrupted medium"]);
    // The response of a sub-agent is not evidence about the conversation.
    let helper = telemetry(r#"{"event.name":"qwen-code.api_response","subagent_name":"x"}"#);
    check(&[helper, record("a", "assistant", parts)], &[cut, "signal ended interrupted medium"]);
}

#[test]
fn tool_calls_and_results_are_decoded_with_their_outcome() {
    let call = r#""model":"m","message":{"parts":[{"functionCall":{"id":"c1","name":"run_shell_command","args":{"command":"ls"}}}]}"#;
    check(
        &[record("a", "assistant", call)],
        &[
            "assistant.message m stop=tool_use calls=1 thinking=-",
            r#"tool.call c1 run_shell_command execute `ls` may ask | {"command":"ls"}"#,
        ],
    );
    let result = |result: &str, response: &str| {
        let response = format!(r#"{{"functionResponse":{{"id":"c1","name":"x","response":{response}}}}}"#);
        record("r", "tool_result", &format!(r#""message":{{"parts":[{response}]}},"toolCallResult":{result}"#))
    };
    let output = r#"{"output":"done"}"#;
    let ran = r#"{"status":"success","resultDisplay":{"type":"shell_result","exitCode":0}}"#;
    check(&[result(ran, output)], &["tool.result c1 ok Some(0) | done"]);
    let failed = r#"{"status":"success","resultDisplay":{"exitCode":3}}"#;
    check(&[result(failed, output)], &["tool.result c1 error Some(3) | done"]);
    check(&[result(r#"{"status":"error"}"#, r#"{"error":"no file"}"#)], &["tool.result c1 error None | no file"]);
    let blocked = r#"{"status":"error","errorType":"execution_denied","executionStatus":"not_started"}"#;
    check(&[result(blocked, r#"{"error":"no"}"#)], &["tool.result c1 blocked None | no"]);
    let refused = r#"{"status":"cancelled","executionStatus":"not_started"}"#;
    check(&[result(refused, r#"{"error":"no"}"#)], &["tool.result c1 denied None | no", "signal ended denied medium"]);
    let stopped = r#"{"status":"cancelled","executionStatus":"cancelled"}"#;
    let ended = "signal ended interrupted medium";
    check(&[result(stopped, r#"{"error":"x"}"#)], &["tool.result c1 cancelled None | x", ended]);
}

#[test]
fn system_and_error_records_are_decoded() {
    check(&[system("custom_title", r#"{"customTitle":"T"}"#)], &["annotation title T"]);
    check(&[system("session_model", r#"{"modelId":"m","authType":"openai"}"#)], &["annotation model m"]);
    check(&[system("slash_command", r#"{"rawCommand":"/about"}"#)], &["annotation command /about"]);
    let compressed = r#"{"info":{"originalTokenCount":9,"newTokenCount":2}}"#;
    check(&[system("chat_compression", compressed)], &["context.compacted Some(9) Some(2)"]);
    check(&[system("rewind", "{}")], &["session.forked s1 -"]);
    check(&[system("turn_result", r#"{"state":"error"}"#)], &["signal ended failed high"]);
    check(&[system("attribution_snapshot", "{}")], &[]);
    let error = |code: u16, words: &str| {
        telemetry(&format!(r#"{{"event.name":"qwen-code.api_error","error_message":"{words}","status_code":{code}}}"#))
    };
    check(&[error(401, "401 bad key")], &["error auth 401 ends=true retrying=false | 401 bad key"]);
    check(&[error(503, "later")], &["error provider 503 ends=false retrying=true | later"]);
}

#[test]
fn unknown_records_are_kept_as_unrecognized() {
    let out = decode(PATH, &(system("goal_state", "{}") + "{\"type\":7}\n" + &record("x", "news", r#""cwd":"/w""#)));
    let kinds: Vec<_> =
        out.events.iter().filter(|e| matches!(e.payload, Payload::Unrecognized(_))).map(short).collect();
    assert!(kinds[0].starts_with("unrecognized system/goal_state"), "{kinds:?}");
    assert_eq!(kinds.len(), 3, "{kinds:?}");
    // A field of an unexpected type: the record is preserved, and the next one is read.
    let odd = decode(PATH, "{\"type\":\"user\",\"uuid\":7}\n");
    assert_eq!((odd.issues, short(&odd.events[0]).as_str()), (0, "unrecognized user | {\"type\":\"user\",\"uuid\":7}"));
}

#[test]
fn a_changed_working_directory_is_reported_once() {
    let first = record("a", "system", r#""subtype":"at_command""#);
    let moved = first.replace("/w", "/v").replace(r#""uuid":"a""#, r#""uuid":"b""#);
    let out = decode(PATH, &(first.clone() + &moved + &moved));
    let all: Vec<_> = out.events.iter().map(short).collect();
    assert_eq!(all, ["session.started new /w 0.24.4", "session.started unknown /v 0.24.4"]);
}

/// The final chat file of a recording.
fn recorded(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings/qwen").join(name);
    let timeline = fs::read_to_string(dir.join("timeline.jsonl")).unwrap();
    let ops = timeline.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    ops.filter(|op| op["op"] == "append").map(|op| op["data"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn recordings_yield_their_expected_events() {
    let told = |name: &str| {
        let out = decode(PATH, &recorded(name));
        assert_eq!(out.issues, 0);
        let wanted = |e: &&NewEvent| !matches!(e.payload, Payload::UsageReported(_) | Payload::SessionStarted(_));
        out.events.iter().filter(wanted).map(short).collect::<Vec<_>>()
    };
    let model = "assistant.message qwen3-coder-plus";
    assert_eq!(
        told("S03-shell-approve"),
        [
            "user.prompt human +0 | Say hello",
            &format!("{model} stop=end_turn calls=0 thinking=Thinking of it. | Fine. "),
            "user.prompt human +0 | RUN it",
            &format!("{model} stop=tool_use calls=1 thinking=Thinking of it. | I will run it. "),
            "tool.call call_4 run_shell_command execute `echo hello > made.txt && cat made.txt` may ask | \
             {\"command\":\"echo hello > made.txt && cat made.txt\",\"description\":\"Write and show a file\",\
             \"is_background\":false}",
            &format!(
                "tool.result call_4 ok Some(0) | Command: echo hello > made.txt && cat made.txt⏎Directory: (root)⏎Output: \
                 hello⏎Error: (none)⏎Exit Code: 0⏎Signal: (none)⏎Process Group PGID: {}",
                group("S03-shell-approve")
            ),
            &format!(
                "{model} stop=end_turn calls=0 thinking=Thinking of it. | Done: Command: echo hello > made.txt && cat \
                 made.txt⏎Directory: (r "
            ),
            "user.prompt human +0 | FAIL now",
            &format!("{model} stop=tool_use calls=1 thinking=Thinking of it."),
            "tool.call call_8 run_shell_command execute `exit 3` may ask | \
             {\"command\":\"exit 3\",\"description\":\"Fail\",\"is_background\":false}",
            "tool.result call_8 denied None | [Operation Cancelled] Reason: User did not allow tool call",
            "signal ended denied medium",
        ]
    );
    let other = told("S09-interrupt-and-error");
    assert_eq!(other[0], "user.prompt human +0 | SLOW");
    assert!(other[1].starts_with(&format!("{model} stop=aborted")), "{}", other[1]);
    assert_eq!(
        other[2..],
        [
            "signal ended interrupted medium",
            "user.prompt human +0 | ERROR",
            "error auth 401 ends=true retrying=false | 401 bad key"
        ]
    );
}

/// The process group of the command in the recording.
fn group(name: &str) -> String {
    let text = recorded(name);
    let rest = text.split("Process Group PGID: ").nth(1).unwrap();
    rest.chars().take_while(char::is_ascii_digit).collect()
}

proptest! {
    /// Reads and restarts may end after any record: the events are the same.
    #[test]
    fn restarts_after_any_records_give_the_same_events(cuts in prop::collection::vec(0_usize..40, 0..4)) {
        for name in ["S03-shell-approve", "S09-interrupt-and-error"] {
            let text = recorded(name);
            let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
            let mut cuts: Vec<usize> = cuts.iter().filter_map(|cut| ends.get(*cut).copied()).collect();
            cuts.push(text.len());
            cuts.sort_unstable();
            let mut out = Decoded::new(Provider::Qwen, Arc::from(PATH), 1);
            let (mut from, mut state) = (0, None::<String>);
            for cut in cuts {
                let mut decoder = QwenDecoder::new(PATH, state.as_deref());
                give(&mut decoder, &text.as_bytes()[from..cut], from as u64, &mut out);
                (from, state) = (cut, decoder.state());
            }
            prop_assert_eq!(&out.events, &decode(PATH, &text).events);
            prop_assert!(out.events.iter().all(|event| event.repeat == Repeat::Unique));
        }
    }

    /// No change of one byte causes a panic.
    #[test]
    fn damaged_records_never_panic(at in 0_usize..20_000, byte: u8) {
        let mut bytes = recorded("S09-interrupt-and-error").into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let mut out = Decoded::new(Provider::Qwen, Arc::from(PATH), 1);
        give(&mut QwenDecoder::new(PATH, None), &bytes, 0, &mut out);
        let length = bytes.len() as u64;
        for event in &out.events {
            if let events::Origin::File { offset, length: of, .. } = &event.origin {
                prop_assert!(offset + of <= length + 1);
            }
        }
    }
}
