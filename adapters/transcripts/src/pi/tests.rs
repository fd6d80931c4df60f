//! The meaning of each kind of line, tested on short lines; whole files are in [`recordings`].

use std::{fmt::Write as _, sync::Arc};

use events::{Claim, NewEvent, Payload, Provider, Repeat, Timestamp};

use super::*;
use tailer::decode::{Decoded, Decoder, Record, feed};

mod recordings;

const PATH: &str = "/h/.pi/agent/sessions/--w--/2026-11-20T04-39-18-871Z_s1.jsonl";
const HEADER: &str = r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-11-20T04:39:18.871Z","cwd":"/w"}"#;

/// Events in short form: the session if it is not `s1`, kind, relevant data, text.
fn short(event: &NewEvent) -> String {
    let mut line = String::new();
    if &*event.provider_session_id != "s1" {
        let _ = write!(line, "[{}] ", event.provider_session_id);
    }
    let kind = event.payload.kind();
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let _ = match &event.payload {
        Payload::SessionStarted(s) => write!(line, "{kind} {} {}", s.how, or_none(&s.cwd)),
        Payload::UserPrompt(p) => write!(line, "{kind} {} +{}", p.origin, p.attachments),
        Payload::AssistantMessage(m) => write!(
            line,
            "{kind} {} stop={} calls={} thinking={}",
            or_none(&m.model),
            m.stop.map_or("-", events::Stop::as_str),
            m.tool_calls,
            or_none(&m.thinking)
        ),
        Payload::ToolCall(c) => write!(line, "{kind} {} {} {} `{}`", c.call_id, c.name, c.tool, or_none(&c.title)),
        Payload::ToolResult(r) => write!(line, "{kind} {} {} {:?}", r.call_id, r.outcome, r.exit_code),
        Payload::UsageReported(u) => {
            write!(line, "{kind} {}+{}>{}", u.input_tokens, u.cache_read_tokens, u.output_tokens)
        }
        Payload::Error(e) => {
            write!(line, "{kind} {} {} ends={} retrying={}", e.class, or_none(&e.code), e.ends_turn, e.retrying)
        }
        Payload::ContextCompacted(c) => write!(line, "{kind} {:?}", c.tokens_before),
        Payload::SessionForked(f) => write!(line, "{kind} {} {}", f.from, or_none(&f.at)),
        Payload::Annotation(a) => write!(line, "{kind} {} {}", a.topic, a.value),
        Payload::Signal(s) => match &s.claim {
            Claim::State { state, reason } => {
                write!(line, "{kind} {state} {} {}", reason.map_or("-", events::Reason::as_str), s.strength)
            }
            Claim::TurnEnded { outcome, .. } => write!(line, "{kind} ended {outcome} {}", s.strength),
            Claim::ProcessAlive { .. } | Claim::ProcessGone { .. } | Claim::Withdrawn => write!(line, "{kind} ?"),
        },
        Payload::Unrecognized(u) => write!(line, "{kind} {}", u.raw_kind),
        _ => write!(line, "{kind}"),
    };
    if let Some(text) = &event.text {
        let _ = write!(line, " | {}", text.replace('\n', "⏎"));
    }
    line
}

/// Passes the lines of `bytes`, which begin at `offset` of the file, to a decoder.
fn give(decoder: &mut dyn Decoder, bytes: &[u8], mut offset: u64, out: &mut Decoded) {
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let record = Record { bytes: line.trim_ascii_end(), offset, observed_at: Timestamp::from_millisecond(1) };
        feed(decoder, record, out);
        offset += line.len() as u64;
    }
    decoder.pause(out);
}

fn decode(path: &str, text: &str) -> Decoded {
    let mut out = Decoded::new(Provider::Pi, Arc::from(path), 1);
    give(&mut PiDecoder::new(Provider::Pi, path, None), text.as_bytes(), 0, &mut out);
    out
}

/// Builds lines: `id parent type {fields}` is an entry 10 s after the header, plus one second per line; `-` means no
/// parent. Any other text is a line as it is.
fn whole_lines(script: &[&str]) -> String {
    let mut text = String::new();
    for (number, line) in script.iter().enumerate() {
        let parts: Vec<&str> = line.splitn(4, ' ').collect();
        let _ = match parts[..] {
            [id, parent, kind, fields] if !line.starts_with(['{', '[']) && fields.starts_with('{') => {
                let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
                let comma = if fields == "{}" { "" } else { "," };
                writeln!(
                    text,
                    r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2026-11-20T04:39:{:02}.000Z"{comma}{}"#,
                    28 + number,
                    &fields[1..]
                )
            }
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

fn seen(script: &[&str]) -> Vec<String> {
    decode(PATH, &format!("{HEADER}\n{}", whole_lines(script))).events.iter().skip(1).map(short).collect()
}

#[track_caller]
fn check(script: &[&str], expected: &[&str]) {
    assert_eq!(seen(script), expected);
}

fn user(text: &str) -> String {
    format!(r#"{{"message":{{"role":"user","content":"{text}"}}}}"#)
}

fn answer(parts: &str, more: &str) -> String {
    format!(r#"{{"message":{{"role":"assistant","content":[{parts}],"model":"m",{more}}}}}"#)
}

#[test]
fn session_files_are_recognized_by_path() {
    let is = |path: &str| recognize(Path::new(path));
    assert!(is("sessions/--home-dev-proj--/2026-11-20T04-39-18-871Z_019aa0f2.jsonl"));
    for other in [
        "sessions/x.jsonl",
        "sessions/--p--/x.json",
        "sessions/--p--/.x.jsonl",
        "sessions/--p--/.jsonl",
        "sessions/--p--/x/y.jsonl",
        "settings/--p--/x.jsonl",
        "sessions/../x.jsonl",
        "/sessions/--p--/x.jsonl",
        "",
    ] {
        assert!(!is(other), "{other}");
    }
}

#[test]
fn a_header_starts_a_session_once() {
    let of = |text: &str| decode(PATH, text).events.iter().map(short).collect::<Vec<_>>();
    assert_eq!(of(&format!("{HEADER}\n{HEADER}\n")), ["session.started new /w"]);
    let other = HEADER.replace("\"s1\"", "\"s9\"");
    let seen = of(&format!("{HEADER}\n{other}\n"));
    assert_eq!((seen.len(), seen[1].starts_with("unrecognized session |")), (2, true));
    // A session without a header is named after its file.
    let bare = decode(PATH, "{\"type\":\"session_info\",\"id\":\"a\",\"name\":\"n\"}\n");
    assert_eq!(bare.events.iter().map(short).collect::<Vec<_>>(), ["annotation title n"]);
}

#[test]
fn a_title_slot_before_the_header_is_decoded() {
    let slot = r#"{"type":"title","v":1,"title":"Fix it","updatedAt":"2026-11-20T04:39:18.871Z","pad":"   "}"#;
    let out = decode(PATH, &format!("{slot}\n{HEADER}\n"));
    assert_eq!(out.events.iter().map(short).collect::<Vec<_>>(), ["session.started new /w", "annotation title Fix it"]);
    // The slot is rewritten in place, and the file is read again from its start.
    let again = decode(PATH, &format!("{}\n{HEADER}\n", slot.replace("Fix it", "Fixed!")));
    assert_eq!(out.events[0].identity, again.events[0].identity);
    assert_ne!(out.events[1].identity, again.events[1].identity);
}

#[test]
fn prompts_messages_and_tool_calls_are_decoded() {
    let call = answer(
        r#"{"type":"thinking","thinking":"hm"},{"type":"text","text":"look"},{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls\n-l"}}"#,
        r#""stopReason":"toolUse","usage":{"input":10,"output":5,"cacheRead":2,"cacheWrite":1}"#,
    );
    let result = r#"{"message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"x\n\nCommand exited with code 3"}],"isError":true}}"#;
    check(
        &[
            &format!("a - message {}", user("go")),
            &format!("b a message {call}"),
            &format!("c b message {result}"),
            &format!("d c message {}", user("wait")),
            &format!("e d message {}", answer(r#"{"type":"text","text":"ok"}"#, r#""stopReason":"stop""#)),
            &format!("f e message {}", user("next")),
        ],
        &[
            "user.prompt human +0 | go",
            "assistant.message m stop=tool_use calls=1 thinking=hm | look",
            "tool.call c1 bash execute `ls -l` | {\"command\":\"ls\\n-l\"}",
            "usage.reported 10+2>5",
            "tool.result c1 error Some(3) | x⏎⏎Command exited with code 3",
            "user.prompt steering +0 | wait",
            "assistant.message m stop=end_turn calls=0 thinking=- | ok",
            "user.prompt human +0 | next",
        ],
    );
}

#[test]
fn a_todo_call_is_titled_with_its_progress() {
    let title = |arguments: &str| {
        let call = format!(r#"{{"type":"toolCall","id":"c1","name":"todo","arguments":{arguments}}}"#);
        let line = format!("b a message {}", answer(&call, r#""stopReason":"toolUse""#));
        let lines = seen(&[&format!("a - message {}", user("go")), &line]);
        let call = lines.iter().find(|line| line.starts_with("tool.call")).unwrap();
        call.split(" | ").next().unwrap().to_owned()
    };
    let items = r#"{"items":[{"text":"Read","state":"done"},{"text":"Write","state":"in_progress"}]}"#;
    assert_eq!(title(items), "tool.call c1 todo other `1 of 2 done, now: Write`");
    assert_eq!(title(r#"{"items":[{"text":"Read","state":"pending"}]}"#), "tool.call c1 todo other `0 of 1 done`");
    for unusual in [r#"{"items":[]}"#, r#"{"items":7}"#, r#"{"items":[3]}"#, "{}", "7"] {
        assert!(title(unusual).starts_with("tool.call c1 todo other `-`"), "{}", title(unusual));
    }
}

#[test]
fn stop_reasons_of_answers_are_decoded() {
    let said = |more: &str| {
        let line = format!("b a message {}", answer(r#"{"type":"text","text":"t"}"#, more));
        seen(&[&format!("a - message {}", user("go")), &line]).split_off(2)
    };
    assert_eq!(said(r#""stopReason":"stop""#), [""; 0]);
    assert_eq!(said(r#""stopReason":"aborted""#), ["signal ended interrupted high"]);
    assert_eq!(said(r#""stopReason":"length""#), ["signal ended completed medium"]);
    assert_eq!(
        said(r#""stopReason":"error","errorMessage":"401 invalid x-api-key""#),
        ["error auth 401 ends=true retrying=false | 401 invalid x-api-key"]
    );
    assert_eq!(
        said(r#""stopReason":"error","errorMessage":"Connection error.""#),
        ["error network - ends=false retrying=true | Connection error."]
    );
}

#[test]
fn the_fourth_consecutive_retryable_error_ends_the_turn() {
    let error = answer("", r#""stopReason":"error","errorMessage":"529 overloaded_error""#);
    let mut script = vec![format!("a - message {}", user("go"))];
    script.extend(["b a", "c b", "d c", "e d"].map(|ids| format!("{ids} message {error}")));
    let lines: Vec<&str> = script.iter().map(String::as_str).collect();
    let ends: Vec<bool> =
        seen(&lines).iter().filter(|l| l.starts_with("error")).map(|l| l.contains("ends=true")).collect();
    assert_eq!(ends, [false, false, false, true]);
}

#[test]
fn rewinds_are_reported_as_forks_within_the_session() {
    let prompt = |ids: &str, text: &str| format!("{ids} message {}", user(text));
    check(
        &[
            &prompt("a -", "1"),
            &prompt("b a", "2"),
            &prompt("c a", "3"),
            "d c label {\"targetId\":\"a\",\"label\":\"here\"}",
            "e d label {\"targetId\":\"a\"}",
            &prompt("f -", "4"),
            "g b branch_summary {\"fromId\":\"f\",\"summary\":\"S\"}",
        ],
        &[
            "user.prompt human +0 | 1",
            "user.prompt human +0 | 2",
            "session.forked s1 a",
            "user.prompt human +0 | 3",
            "annotation note label on a: here",
            "annotation note label off a",
            "session.forked s1 -",
            "user.prompt human +0 | 4",
            "session.forked s1 b",
            "annotation notice summary of the branch that was left | S",
        ],
    );
}

#[test]
fn a_capture_leaf_note_is_a_rewind_but_not_an_entry() {
    let prompt = |ids: &str, text: &str| format!("{ids} message {}", user(text));
    let moved = r#"{"customType":"capture.leaf","data":{"leafId":"a"}}"#;
    let kept = r#"{"customType":"capture.leaf","data":{"leafId":"d"}}"#;
    check(
        &[
            &prompt("a -", "1"),
            &prompt("b a", "2"),
            &format!("c a custom {moved}"),
            &prompt("d a", "3"),
            &format!("e d custom {kept}"),
            &prompt("f d", "4"),
            &format!("g f custom {}", kept.replace("\"d\"", "\"f\"")),
            // pi continues after the note itself.
            &prompt("h g", "5"),
        ],
        &[
            "user.prompt human +0 | 1",
            "user.prompt human +0 | 2",
            "session.forked s1 a",
            "user.prompt human +0 | 3",
            "user.prompt human +0 | 4",
            "user.prompt human +0 | 5",
        ],
    );
}

#[test]
fn a_capture_task_note_ends_an_unanswered_turn() {
    let ended = |outcome: &str| format!(r#"{{"customType":"capture.task","data":{{"outcome":"{outcome}","ms":3}}}}"#);
    check(
        &[
            &format!("a - message {}", user("1")),
            &format!("b a custom {}", ended("aborted")),
            &format!("c b custom {}", ended("failed")),
            &format!("d c custom {}", ended("done")),
            &format!("e d custom {}", ended("rounds")),
        ],
        &[
            "user.prompt human +0 | 1",
            r#"annotation notice capture.task | {"outcome":"aborted","ms":3}"#,
            "signal ended interrupted high",
            r#"annotation notice capture.task | {"outcome":"failed","ms":3}"#,
            "signal ended failed high",
            r#"annotation notice capture.task | {"outcome":"done","ms":3}"#,
            r#"annotation notice capture.task | {"outcome":"rounds","ms":3}"#,
            "signal ended failed high",
        ],
    );
}

#[test]
fn an_entry_after_a_damaged_line_is_not_a_rewind() {
    let first = format!("a - message {}", user("1"));
    let last = format!("c b message {}", user("3"));
    let damaged = r#"{"type":"message","id":"b","parentId":"a","mess"#;
    let seen = seen(&[&first, damaged, &last]);
    assert!(seen.iter().all(|line| !line.starts_with("session.forked")), "{seen:?}");
    assert!(seen.iter().any(|line| line.starts_with("unrecognized damaged")), "{seen:?}");
}

#[test]
fn version_1_entries_without_ids_are_decoded() {
    let header = HEADER.replace("\"version\":3,", "");
    let line = r#"{"type":"message","timestamp":"2026-11-20T04:39:20.000Z","message":{"role":"user","content":"hi"}}"#;
    let compaction = r#"{"type":"compaction","timestamp":"2026-11-20T04:39:21.000Z","summary":"S","tokensBefore":50,"firstKeptEntryIndex":1}"#;
    let out = decode(PATH, &format!("{header}\n{line}\n{compaction}\n{line}\n"));
    let seen: Vec<String> = out.events.iter().skip(1).map(short).collect();
    assert_eq!(seen, ["user.prompt human +0 | hi", "context.compacted Some(50) | S", "user.prompt human +0 | hi"]);
    assert!(out.events.iter().skip(1).all(|e| e.repeat == Repeat::Next));
}

#[test]
fn entries_other_than_messages_become_annotations() {
    check(
        &[
            r#"a - model_change {"provider":"p","modelId":"m1"}"#,
            r#"b a model_change {"model":"p/m2","role":"default"}"#,
            r#"c b model_change {"model":"p/m3","role":"smol"}"#,
            r#"d c thinking_level_change {"thinkingLevel":"high"}"#,
            r#"e d session_info {"name":"N"}"#,
            r#"f e context_edit {"targetId":"a","replacement":null}"#,
            r#"g f usage {"kind":"cache_warm","model":"m","usage":{"input":1,"output":2}}"#,
            r#"h g custom_message {"customType":"ext","content":[{"type":"text","text":"T"},{"type":"image","data":"","mimeType":"image/png"}],"display":false}"#,
            r#"i h custom {"customType":"ext","data":{"x":1}}"#,
            r#"j i mode_change {"mode":"plan"}"#,
            r#"k j message {"message":{"role":"bashExecution","command":"ls","output":"x"}}"#,
            r#"l k message {"message":{"role":"hookMessage","customType":"h","content":"T"}}"#,
        ],
        &[
            "annotation model m1",
            "annotation model m2",
            "annotation notice model for smol: m3",
            "annotation notice thinking level: high",
            "annotation title N",
            "annotation notice left out of the context: a",
            "usage.reported 1+0>2",
            "annotation notice ext | T",
            "annotation notice ext | {\"x\":1}",
            "annotation permission_mode plan",
            "annotation command !ls | x",
            "annotation notice h | T",
        ],
    );
}

#[test]
fn unknown_entries_are_kept_as_unrecognized() {
    let seen = seen(&[
        "a - new_thing {\"x\":1}",
        "b a message {\"message\":{\"role\":\"oracle\"}}",
        "c b message {}",
        "null",
        "[1]",
        "{\"id\":7,\"type\":3}",
    ]);
    let kinds: Vec<&str> = seen.iter().map(|l| l.split(" |").next().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "unrecognized new_thing",
            "unrecognized message/oracle",
            "unrecognized message without a message",
            "unrecognized damaged",
            "unrecognized damaged",
            "unrecognized ",
        ]
    );
}

#[test]
fn copied_entries_of_a_fork_belong_to_their_original_session() {
    let path = "/h/.pi/agent/sessions/--w--/2026-11-20T05-00-00-000Z_s2.jsonl";
    let header = format!(
        r#"{{"type":"session","version":3,"id":"s2","timestamp":"2026-11-20T05:00:00.000Z","cwd":"/w","parentSession":"{PATH}"}}"#
    );
    let old = whole_lines(&[&format!("a - message {}", user("1")), r#"z a label {"targetId":"a","label":"L"}"#]);
    // Written before the parent began: an ancestor's entry, which the ancestor's own file contains.
    let older = r#"{"type":"message","id":"0","parentId":null,"timestamp":"2026-11-19T00:00:00.000Z","message":{"role":"user","content":"0"}}"#;
    let own = r#"{"type":"message","id":"n","parentId":"a","timestamp":"2026-11-20T05:00:09.000Z","message":{"role":"user","content":"2"}}"#;
    let fork = decode(path, &format!("{header}\n{older}\n{old}{own}\n"));
    assert_eq!(
        fork.events.iter().map(short).collect::<Vec<_>>(),
        [
            "[s2] session.started fork /w",
            "[s2] session.forked s1 -",
            "user.prompt human +0 | 1",
            "[s2] session.forked s2 a",
            "[s2] user.prompt human +0 | 2",
        ]
    );
    let parent = decode(PATH, &format!("{HEADER}\n{old}"));
    assert_eq!(fork.events[2].identity, parent.events[1].identity);
}

#[test]
fn the_cost_of_a_message_is_reported_unless_its_price_is_unknown() {
    let cost = |cost: &str| {
        let usage = format!(r#""stopReason":"stop","usage":{{"input":10,"output":5,"cost":{cost}}}"#);
        let line = format!("a - message {}", answer(r#"{"type":"text","text":"ok"}"#, &usage));
        let out = decode(PATH, &format!("{HEADER}\n{}", whole_lines(&[&line])));
        out.events.iter().find_map(|event| match &event.payload {
            Payload::UsageReported(usage) => Some(usage.cost_nano_usd),
            _ => None,
        })
    };
    assert_eq!(cost(r#"{"input":0.001,"total":0.0035}"#), Some(Some(3_500_000)));
    assert_eq!(cost(r#"{"total":1},"costUnknown":true"#), Some(None));
    for unknown in [r#"{"total":0}"#, r#"{"total":"much"}"#, r#"{"total":-1}"#, "null", "7"] {
        assert_eq!(cost(unknown), Some(None), "{unknown}");
    }
}
