use std::{path::Path, sync::Arc};

use events::{Identity, Payload, Provider, Timestamp};
use proptest::prelude::*;
use tailer::decode::{Decoded, Decoder, Record, feed};

use super::*;

const PATH: &str = "/home/dev/.local/share/opencode/opencode.db";

/// The rows of a recording, one per line.
fn recorded(name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings/opencode");
    let timeline = std::fs::read_to_string(fixtures.join(name).join("timeline.jsonl")).unwrap();
    let steps = timeline.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    steps.filter(|step| step["op"] == "append").map(|step| step["data"].as_str().unwrap().to_owned()).collect()
}

fn give(decoder: &mut OpencodeDecoder, lines: &str, first: u64, out: &mut Decoded) {
    for (number, line) in (first..).zip(lines.lines()) {
        let record = Record { bytes: line.as_bytes(), offset: number, observed_at: Timestamp::from_millisecond(1) };
        feed(decoder, record, out);
    }
    decoder.pause(out);
}

fn decode(lines: &str) -> Decoded {
    let mut out = Decoded::new(Provider::Opencode, Arc::from(PATH), 1);
    give(&mut OpencodeDecoder::default(), lines, 1, &mut out);
    out
}

/// A session's events as they are stored: each identity once.
fn stored(name: &str) -> Vec<String> {
    let out = decode(&recorded(name));
    assert_eq!(out.issues, 0);
    let mut known: Vec<Identity> = Vec::new();
    let mut kept = Vec::new();
    for event in &out.events {
        if !known.contains(&event.identity) {
            known.push(event.identity);
            kept.push(short(event));
        }
    }
    kept
}

fn short(event: &events::NewEvent) -> String {
    let said = match &event.payload {
        Payload::SessionStarted(s) => {
            let parent = if s.parent_provider_session_id.is_some() { " below another" } else { "" };
            format!("{} {}{parent}", s.how.as_str(), s.cli_version.as_deref().unwrap_or("-"))
        }
        Payload::AssistantMessage(m) => m.stop.map_or("", |stop| stop.as_str()).to_owned(),
        Payload::ToolCall(c) => {
            let may_ask = if c.may_ask { " may ask" } else { "" };
            format!("{} {} {}{may_ask}", c.tool.as_str(), c.name, c.title.as_deref().unwrap_or("-"))
        }
        Payload::ToolResult(r) => format!("{} {:?}", r.outcome.as_str(), r.exit_code),
        Payload::QuestionAsked(q) => format!("{:?}", q.options),
        Payload::UsageReported(u) => {
            format!("{}+{} of {}", u.input_tokens, u.output_tokens, u.model.as_deref().unwrap_or("-"))
        }
        Payload::Error(e) => format!("{:?} {:?} ends {}", e.class, e.code, e.ends_turn),
        Payload::Signal(s) => format!("{:?}", s.claim),
        Payload::Annotation(note) => return format!("{}: {}", note.topic.as_str(), note.value),
        Payload::UserPrompt(_) => String::new(),
        _ => String::new(),
    };
    let kind = event.payload.kind().as_str();
    let text = event.text.as_deref().filter(|_| kind != "tool.call").map(|text| format!(" {text:?}"));
    format!("{kind} {said}{}", text.unwrap_or_default()).replace("  ", " ").trim_end().to_owned()
}

#[test]
fn the_database_is_recognized_by_path() {
    for ours in ["opencode.db", "opencode-local.db", "opencode-dev.2.db"] {
        assert!(recognize(Path::new(ours)), "{ours}");
    }
    for other in [
        "opencode.db-wal",
        "opencode.db-shm",
        "opencode-local.db-wal",
        "storage/opencode.db",
        "opencode-a/b.db",
        "opencodes.db",
        "auth.json",
        "../opencode.db",
    ] {
        assert!(!recognize(Path::new(other)), "{other}");
    }
}

#[test]
fn approved_and_denied_commands_are_decoded_with_their_outcome() {
    assert_eq!(
        stored("S03-shell-approve"),
        [
            "session.started new 1.18.33",
            "user.prompt \"Run it\"",
            "title: Scripted title",
            "tool.call execute bash sleep 4; echo ok > out.txt may ask",
            "assistant.message \"I run it.\"",
            "tool.result ok Some(0) \"(no output)\"",
            "usage.reported 200+40 of scripted",
            "assistant.message tool_use",
            "assistant.message \"It ran.\"",
            "usage.reported 200+40 of scripted",
            "assistant.message end_turn",
            "user.prompt \"Remove it\"",
            "tool.call execute bash rm -rf build may ask",
            "assistant.message \"Another.\"",
            "tool.result denied None \"The user rejected permission to use this specific tool call.\"",
            "usage.reported 200+40 of scripted",
            "assistant.message tool_use",
            "signal TurnEnded { outcome: Denied, pending_subagents: 0 }",
        ]
    );
}

#[test]
fn usage_copied_into_a_fork_is_counted_once() {
    let lines = recorded("S03-shell-approve");
    let fork: String = lines
        .lines()
        .map(|line| {
            // Everything gets a new id and keeps its time.
            let line = line.replace("ses_", "ses_f").replace("msg_", "msg_f").replace("prt_", "prt_f");
            let mut row: serde_json::Value = serde_json::from_str(&line.replace("evt_", "evt_f")).unwrap();
            if row["type"].as_str().unwrap().starts_with("session.created") {
                let mut data: serde_json::Value = serde_json::from_str(row["data"].as_str().unwrap()).unwrap();
                data["info"]["time"]["created"] = 4_000_000_000_000_i64.into();
                row["data"] = data.to_string().into();
            }
            format!("{row}\n")
        })
        .collect();
    let count = |lines: &str, kind: &str| {
        decode(lines).events.iter().filter(|event| event.payload.kind().as_str() == kind).count()
    };
    let both = format!("{lines}{fork}");
    assert!(count(&lines, "usage.reported") > 0);
    assert_eq!(count(&both, "usage.reported"), count(&lines, "usage.reported"));
    assert_eq!(count(&both, "user.prompt"), 2 * count(&lines, "user.prompt"));
}

#[test]
fn interrupts_and_api_errors_are_decoded() {
    assert_eq!(
        stored("S09-interrupt-and-error"),
        [
            "session.started new 1.18.33",
            "user.prompt \"Talk\"",
            "title: Scripted title",
            "assistant.message \"A long answer that goes \"",
            "signal TurnEnded { outcome: Interrupted, pending_subagents: 0 }",
            "user.prompt \"Fail\"",
            "error Auth Some(\"401\") ends true \"Incorrect API key provided\"",
            "user.prompt \"Fail again\"",
            "error Other Some(\"400\") ends true \"bad request\"",
        ]
    );
}

#[test]
fn a_question_and_its_answer_are_decoded() {
    let stored = stored("S11-question");
    let asked =
        stored.iter().position(|event| event == "question.asked [\"Red\", \"Blue\"] \"Which colour?\"").unwrap();
    assert_eq!(stored[asked - 1], "tool.call question question Which colour?");
    assert!(stored[asked..].iter().any(|event| event.starts_with("question.answered")));
    assert_eq!(stored.last().unwrap(), "assistant.message end_turn");
}

#[test]
fn a_sub_agent_becomes_a_session_with_its_parent() {
    let out = decode(&recorded("S12-subagent"));
    let below: Vec<_> = out
        .events
        .iter()
        .filter_map(|event| match &event.payload {
            Payload::SessionStarted(started) => Some((
                started.how.as_str(),
                started.parent_provider_session_id.clone().unwrap_or_default(),
                started.agent_type.as_deref(),
            )),
            _ => None,
        })
        .collect();
    let parent = out.events[0].provider_session_id.to_string();
    assert_eq!(below, [("new", String::new(), None), ("subagent", parent, Some("general"))]);
}

#[test]
fn edits_name_their_file() {
    let calls: Vec<String> = stored("S15-edit").into_iter().filter(|event| event.starts_with("tool.call")).collect();
    assert_eq!(
        calls,
        [
            "tool.call edit write /home/dev/works/S15-edit/work/project/b.txt may ask",
            "tool.call edit edit /home/dev/works/S15-edit/work/project/b.txt may ask",
            "tool.call read read /etc/hostname",
        ]
    );
}

#[test]
fn unknown_rows_are_kept_as_unrecognized() {
    let row = |kind: &str, data: &str| {
        serde_json::json!({"id": "evt_1", "aggregate_id": "ses_1", "seq": 0, "type": kind, "data": data}).to_string()
    };
    let kinds = |line: &str| decode(line).events.iter().map(|e| e.payload.kind().as_str()).collect::<Vec<_>>();
    assert_eq!(kinds(&row("session.teleported.1", "{}")), ["unrecognized"]);
    assert_eq!(kinds(&row("message.updated.1", "not JSON")), ["unrecognized"]);
    let part = r#"{"part":{"id":"prt_1","messageID":"msg_1","type":"hologram"}}"#;
    assert_eq!(kinds(&row("message.part.updated.1", part)), ["unrecognized"]);
    assert!(kinds(&row("message.removed.1", "{}")).is_empty());
}

#[test]
fn a_step_cost_is_reported_unless_its_price_is_unknown() {
    let cost = |cost: &str| {
        let tokens = r#"{"input":10,"output":5,"reasoning":2,"cache":{"read":3,"write":4}}"#;
        let part = format!(
            r#"{{"part":{{"id":"prt_1","messageID":"msg_1","type":"step-finish","cost":{cost},"tokens":{tokens}}}}}"#
        );
        let row = serde_json::json!({
            "id": "evt_1", "aggregate_id": "ses_1", "seq": 0, "type": "message.part.updated.1", "data": part
        });
        let reported = decode(&row.to_string()).events.into_iter().find_map(|event| match event.payload {
            Payload::UsageReported(usage) => Some(usage),
            _ => None,
        });
        let usage = reported.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.thinking_tokens), (10, 7, 2));
        usage.cost_nano_usd
    };
    assert_eq!(cost("0.0123"), Some(12_300_000));
    // It writes 0 for models with an unknown price; that is not their cost.
    for unknown in ["0", "-1", "1e300"] {
        assert_eq!(cost(unknown), None, "{unknown}");
    }
}

proptest! {
    /// Reads and restarts may end after any row: the events are the same.
    #[test]
    fn a_restart_after_any_row_gives_the_same_events(cut in 0_usize..60) {
        for name in ["S03-shell-approve", "S12-subagent"] {
            let text = recorded(name);
            let at = text.match_indices('\n').nth(cut).map_or(text.len(), |(at, _)| at + 1);
            let mut out = Decoded::new(Provider::Opencode, Arc::from(PATH), 1);
            let mut first = OpencodeDecoder::default();
            give(&mut first, &text[..at], 1, &mut out);
            let mut second = OpencodeDecoder::new(first.state().as_deref());
            give(&mut second, &text[at..], text[..at].lines().count() as u64 + 1, &mut out);
            prop_assert_eq!(&out.events, &decode(&text).events);
        }
    }

    /// No change of one byte causes a panic.
    #[test]
    fn damaged_rows_never_panic(at in 0_usize..20_000, byte in 0_u8..128) {
        let mut bytes = recorded("S09-interrupt-and-error").into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            decode(&text);
        }
    }
}
