//! Differences of older versions. The files come from other projects (`fixtures/foreign`).

use std::collections::BTreeMap;

use super::*;

pub(super) fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign/claude").join(name);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn assistant(uuid: &str, id: &str, content: &str, stop: &str, output: u64) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","timestamp":"2026-11-20T04:39:01.000Z","sessionId":"{OWN}","version":"2.1.96","message":{{"id":"{id}","model":"m","content":[{{"type":"text","text":"{content}"}}],"stop_reason":{stop},"usage":{{"input_tokens":3,"output_tokens":{output}}}}}}}"#
    ) + "\n"
}

/// The tokens of each message according to its last report: input, output, cache read, cache write.
fn spent(out: &Decoded) -> BTreeMap<String, [u64; 4]> {
    let usage = out.events.iter().filter_map(|e| match &e.payload {
        Payload::UsageReported(u) => Some((
            u.message_id.clone().unwrap_or_default(),
            [u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens],
        )),
        _ => None,
    });
    usage.collect()
}

#[test]
fn message_usage_is_taken_from_its_last_line() {
    let out = decode(&transcript(OWN), &fixture("growing-usage.jsonl"));
    let mut sum = [0; 4];
    for tokens in spent(&out).into_values() {
        sum = std::array::from_fn(|i| sum[i] + tokens[i]);
    }
    assert_eq!(sum, [19, 310, 108_816, 15_274]);
}

#[test]
fn usage_is_reported_again_when_it_grew() {
    let lines = [
        assistant("1", "a", "one", "null", 2),
        assistant("2", "a", "two", "null", 2),
        assistant("3", "a", "three", "\"end_turn\"", 90),
        assistant("4", "a", "less", "\"end_turn\"", 7),
    ];
    for restart in [false, true] {
        let out = in_reads(&transcript(OWN), lines.concat().as_bytes(), &[0, 1, 2], restart);
        let reports: Vec<_> = out
            .events
            .iter()
            .filter_map(|e| match &e.payload {
                Payload::UsageReported(u) => Some((e.identity, u.output_tokens)),
                _ => None,
            })
            .collect();
        assert_eq!(reports.iter().map(|r| r.1).collect::<Vec<_>>(), [2, 90]);
        assert_eq!(reports[0].0, reports[1].0, "one response, one identity");
    }
}

/// The strength of each likely end of a turn.
fn may_end(lines: &[String]) -> Vec<String> {
    let out = decode(&transcript(OWN), lines.concat().as_bytes());
    let ends = out.events.iter().filter_map(|e| match &e.payload {
        Payload::Signal(Signal { claim: Claim::TurnEnded { .. }, holds_from, strength, .. }) => {
            assert_eq!(*holds_from, e.created_at.map(|at| at.plus_ms(30_000)));
            Some(format!("{strength}"))
        }
        _ => None,
    });
    ends.collect()
}

#[test]
fn a_text_without_a_stop_reason_is_a_possible_turn_end() {
    let long = "a".repeat(60);
    // The output tokens show whether the message was complete when the line was written.
    assert_eq!(may_end(&[assistant("1", "a", &long, "null", 1)]), ["low"]);
    assert_eq!(may_end(&[assistant("1", "a", &long, "null", 20)]), ["medium"]);
    assert_eq!(may_end(&[assistant("1", "a", &long, "\"end_turn\"", 20)]), [""; 0]);
    let newer = assistant("1", "a", &long, "null", 20).replace("2.1.96", "2.1.104");
    assert_eq!(may_end(&[newer]), [""; 0]);
    let aborted = assistant("1", "a", &long, "null", 20)
        .replace("\"type\":\"assistant\"", "\"type\":\"assistant\",\"isAbortedMidStream\":true");
    assert_eq!(may_end(&[aborted]), [""; 0]);
    let calls = assistant("1", "a", "x", "null", 20).replace(
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"Bash","input":{}}"#,
    );
    assert_eq!(may_end(&[calls]), [""; 0]);
    // If most messages have a stop reason, one without it is not at its end.
    let said = |n: &str| assistant(n, n, "x", "\"tool_use\"", 5);
    assert_eq!(may_end(&[said("1"), said("2"), assistant("3", "3", &long, "null", 1)]), [""; 0]);
    let unsaid = |n: &str| assistant(n, n, "x", "null", 5);
    assert_eq!(may_end(&[said("1"), unsaid("2"), unsaid("3"), unsaid("4")]).len(), 2);
}

/// The session, time and content of each event, each shortened.
fn told(out: &Decoded) -> Vec<String> {
    let cut = |text: &str, from: usize, chars: usize| text.chars().skip(from).take(chars).collect::<String>();
    let at = |event: &NewEvent| event.created_at.map(|at| cut(&at.to_string(), 14, 5)).unwrap_or_else(|| "-".into());
    let counts = |e: &&NewEvent| !matches!(e.payload, Payload::UsageReported(_) | Payload::Signal(_));
    let line = |e: &NewEvent| format!("{} {} {}", cut(&e.provider_session_id, 0, 4), at(e), cut(&show(e), 0, 40));
    out.events.iter().filter(counts).map(line).collect()
}

pub(super) const RESUMED: &str = "789e105f-ae33-486d-9271-0696266f072d";

#[test]
fn records_repeated_by_a_resumed_session_belong_to_the_original() {
    let lines = fixture(&format!("resumed/{RESUMED}.jsonl"));
    let expected = [
        "789e 21:00 session.started unknown /Users/kirilldub",
        "789e - session.forked from 93a9705e-bc6a-406d-8",
        "93a9 21:00 user.prompt human \"say lol\"",
        // The copy's own time is the time of the copying.
        "93a9 21:00 assistant.message msg_011VYEWKkPNPRmKxAJ",
        "789e 32:45 user.prompt human \"run ls tool \"",
        "789e 32:49 assistant.message msg_01Rk679XgEWuu3q6RK",
        "789e 32:49 tool.call toolu_017qi6cZcBasF4SX1qvFjE2b",
        "789e 32:49 tool.result toolu_017qi6cZcBasF4SX1qvFjE",
        "789e 32:51 assistant.message msg_01PVZaiBNQaUBQ9KqH",
    ];
    for (cuts, restart) in [(&[][..], false), (&[1][..], true), (&[0, 1, 2, 3, 4, 5][..], true)] {
        let out = in_reads(&transcript(RESUMED), &lines, cuts, restart);
        let (titles, rest): (Vec<_>, Vec<_>) = told(&out).into_iter().partition(|event| event.contains("title"));
        assert_eq!(rest, expected, "cut behind {cuts:?}");
        assert_eq!(titles, ["789e - annotation title: Casual Chat: Simple Gr"], "cut behind {cuts:?}");
    }
    // A file that was only renamed has no copies.
    let renamed = String::from_utf8(lines.clone()).unwrap().replace("93a9705e-bc6a-406d-8dce-8acc014dedbd", RESUMED);
    let elsewhere = in_reads(&transcript("backup of it"), renamed.as_bytes(), &[3], true);
    assert!(elsewhere.events.iter().skip(1).all(|e| *e.provider_session_id == *RESUMED), "{:?}", told(&elsewhere));
    let other = "00000000-0000-4000-8000-000000000000";
    let under_another_id = decode(&transcript(other), renamed.as_bytes());
    assert!(under_another_id.events.iter().all(|e| *e.provider_session_id == *other));
}

#[test]
fn inline_sub_agent_lines_become_a_session_of_their_own() {
    let (path, lines) = (transcript("a4e5b271-6948-4581-893b-4595c9ec41ea"), fixture("inline-sidechain.jsonl"));
    let expected = [
        "a4e5 02:59 session.started unknown /Users/steve/Dev",
        "a4e5 02:59 user.prompt human \"Show me a sample of u",
        "a4e5 03:02 assistant.message msg_01RVVmQ4TCqYPZZknH",
        "a4e5 03:05 assistant.message msg_01RVVmQ4TCqYPZZknH",
        "a4e5 03:05 tool.call toolu_01EmKA8FJ7B2Ah9seGxK1Wct",
        "7e73 03:05 session.started subagent /Users/steve/De",
        "7e73 03:05 user.prompt agent \"Search the web for in",
        "7e73 03:07 assistant.message msg_01GHtjVrgRYhNbHtpz",
        "7e73 03:07 assistant.message msg_01GHtjVrgRYhNbHtpz",
        "7e73 03:07 tool.call toolu_01NeNNHZD5QYiBQCRYTUwhME",
        "7e73 03:38 tool.result toolu_01NeNNHZD5QYiBQCRYTUwh",
        "7e73 03:41 assistant.message msg_01HXw84yHVnkmNw7Xv",
        "7e73 03:42 assistant.message msg_01HXw84yHVnkmNw7Xv",
        "7e73 03:42 tool.call toolu_01St6YuC4MdxA9A9NXuBDKVY",
        "7e73 04:03 tool.result toolu_01St6YuC4MdxA9A9NXuBDK",
        "7e73 04:17 assistant.message msg_01UA9puBKTRgBTWQBB",
        "a4e5 04:17 tool.result toolu_01EmKA8FJ7B2Ah9seGxK1W",
        "a4e5 04:20 assistant.message msg_01LPPXpoLXddEXTnUp",
    ];
    let whole = decode(&path, &lines);
    assert_eq!(told(&whole), expected);
    for cut in 0..expected.len() {
        assert_eq!(in_reads(&path, &lines, &[cut], true).events, whole.events, "cut behind {cut}");
    }
    let Payload::SessionStarted(started) =
        &whole.events.iter().find(|e| e.provider_session_id.starts_with("7e73")).unwrap().payload
    else {
        panic!("a sub-agent starts")
    };
    assert_eq!(started.parent_provider_session_id.as_deref(), Some("a4e5b271-6948-4581-893b-4595c9ec41ea"));
}

/// A line of a sub-agent.
fn side(uuid: &str, after: Option<&str>, text: &str) -> String {
    let after = after.map_or("null".into(), |uuid| format!("\"{uuid}\""));
    format!(
        r#"{{"parentUuid":{after},"isSidechain":true,"sessionId":"{OWN}","cwd":"/p","version":"2.0.60","type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"{uuid}","timestamp":"2025-12-01T00:47:19.293Z"}}"#
    ) + "\n"
}

#[test]
fn concurrent_inline_sub_agents_are_separated() {
    let lines = [
        side("a1", None, "one"),
        side("b1", None, "two"),
        side("a2", Some("a1"), "more of one"),
        side("b2", Some("b1"), "more of two"),
        side("a3", Some("a1"), "beside it"),
        side("x", Some("unknown"), "the last at work"),
    ];
    let out = decode(&transcript(OWN), lines.concat().as_bytes());
    let whose: Vec<String> = out
        .events
        .iter()
        .filter(|e| matches!(e.payload, Payload::UserPrompt(_)))
        .map(|e| format!("{} {}", e.provider_session_id, e.text.as_deref().unwrap_or_default()))
        .collect();
    let expected = ["a1 one", "b1 two", "a1 more of one", "b1 more of two", "a1 beside it", "a1 the last at work"];
    assert_eq!(whose, expected);
    assert!(out.events.iter().all(|e| *e.provider_session_id != *OWN), "nothing is the session's own");
}

#[test]
fn sub_agent_and_parent_ids_are_read_from_the_file_path() {
    let check = |path: &str, lines: &str, expected: [&str; 2]| {
        for restart in [false, true] {
            let out = in_reads(path, lines.as_bytes(), &[0], restart);
            let Payload::SessionStarted(started) = &out.events[0].payload else { panic!("{:?}", out.events[0]) };
            let parent = started.parent_provider_session_id.as_deref().unwrap_or("-");
            assert_eq!([&out.events[0].provider_session_id, parent], expected, "{path}");
            assert!(out.events.iter().all(|e| *e.provider_session_id == *expected[0]), "{path}");
        }
    };
    let lines = side("a1", None, "Warmup") + &side("a2", Some("a1"), "more");
    check(&format!("/h/.claude/projects/-p/{OWN}/subagents/agent-a7.jsonl"), &lines, ["a7", OWN]);
    check(&format!("/h/.claude/projects/-p/{OWN}/subagents/workflows/wf_1/agent-a7.jsonl"), &lines, ["a7", OWN]);
    check("/h/.claude/projects/-p/agent-a7.jsonl", &lines, ["a7", OWN]);
    // The file of a session may also have such a name.
    let own = lines.replace("true", "false");
    check("/h/.claude/projects/-p/agent-a7.jsonl", &own, [OWN, "-"]);
}

#[test]
fn a_call_skipped_after_a_sibling_error_is_cancelled() {
    let result = |content: &str| {
        format!(
            r#"{{"type":"user","uuid":"1","timestamp":"2026-11-20T04:39:01.000Z","sessionId":"{OWN}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"{content}"}}]}}}}"#
        )
    };
    let outcome = |content: &str| {
        let out = decode(&transcript(OWN), result(content).as_bytes());
        out.events.iter().find_map(|e| match &e.payload {
            Payload::ToolResult(result) => Some(result.outcome.to_string()),
            _ => None,
        })
    };
    assert_eq!(outcome("<tool_use_error>Sibling tool call errored</tool_use_error>").as_deref(), Some("cancelled"));
    assert_eq!(outcome("<tool_use_error>File does not exist.</tool_use_error>").as_deref(), Some("error"));
    // Texts of 2.0.60 and 2.1.104 after a refusal.
    let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file \
                   edit, the new_string was NOT written to the file).";
    assert_eq!(outcome(refused).as_deref(), Some("denied"));
}

#[test]
fn each_line_without_a_message_id_reports_its_own_usage() {
    let lines = [assistant("1", "", "one", "null", 2), assistant("2", "", "two", "null", 5)].concat();
    let out = decode(&transcript(OWN), lines.replace(r#""id":"","#, "").as_bytes());
    let counts = out.events.iter().filter_map(|e| match &e.payload {
        Payload::UsageReported(u) => Some((u.message_id.clone(), u.output_tokens)),
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [(None, 2), (None, 5)]);
}

#[test]
fn a_stop_hook_summary_ends_a_turn_without_a_stop_reason() {
    let hook = format!(
        r#"{{"type":"system","subtype":"stop_hook_summary","uuid":"9","timestamp":"2026-11-20T04:39:02.000Z","sessionId":"{OWN}"}}"#
    ) + "\n";
    let ends = |lines: &[String]| {
        let out = decode(&transcript(OWN), lines.concat().as_bytes());
        let words = |e: &NewEvent| match &e.payload {
            Payload::Signal(signal) => signal.words.clone(),
            _ => None,
        };
        out.events.iter().filter_map(words).collect::<Vec<_>>()
    };
    let text = assistant("1", "a", "done", "null", 1);
    assert_eq!(
        ends(&[text.clone(), hook.clone(), hook.clone()]),
        ["a text, and nothing after it", "stop_hook_summary"]
    );
    let said = assistant("1", "a", "done", "\"end_turn\"", 1);
    assert_eq!(ends(&[said, hook]), [""; 0]);
}

/// The outcome of the call and the last end of the turn in a file of `fixtures/stopped/claude`.
fn stopped(name: &str) -> (Option<ToolOutcome>, Option<TurnOutcome>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stopped/claude").join(name);
    let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    let read = |restart| {
        let out = in_reads(&transcript(OWN), &bytes, &(0..lines).collect::<Vec<_>>(), restart);
        let call = out.events.iter().find_map(|e| match &e.payload {
            Payload::ToolResult(result) => Some(result.outcome),
            _ => None,
        });
        let end = out.events.iter().rev().find_map(|e| match &e.payload {
            Payload::Signal(Signal { claim: Claim::TurnEnded { outcome, .. }, .. }) => Some(*outcome),
            _ => None,
        });
        (call, end)
    };
    assert_eq!(read(false), read(true), "{name}");
    read(false)
}

#[test]
fn refusing_a_command_is_a_denial_but_stopping_a_running_one_is_not() {
    for version in ["1.0.100", "2.0.60", "2.1.55", "2.1.90"] {
        let refused = (Some(ToolOutcome::Denied), Some(TurnOutcome::Denied));
        assert_eq!(stopped(&format!("{version}-refused.jsonl")), refused, "{version}");
        let command = (Some(ToolOutcome::Error), Some(TurnOutcome::Interrupted));
        assert_eq!(stopped(&format!("{version}-command.jsonl")), command, "{version}");
    }
    // The result alone is ambiguous; the end of the turn is not.
    assert_eq!(stopped("2.1.200-refused.jsonl"), (Some(ToolOutcome::Cancelled), Some(TurnOutcome::Denied)));
    assert_eq!(stopped("2.1.200-command.jsonl"), (Some(ToolOutcome::Cancelled), Some(TurnOutcome::Interrupted)));
}

#[test]
fn an_aborted_partial_message_leaves_the_turn_to_end_as_interrupted() {
    assert_eq!(stopped("2.1.200-answer.jsonl"), (None, Some(TurnOutcome::Interrupted)));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stopped/claude/2.1.200-answer.jsonl");
    let out = decode(&transcript(OWN), &fs::read(path).unwrap());
    let stops: Vec<_> = out
        .events
        .iter()
        .filter_map(|e| match &e.payload {
            Payload::AssistantMessage(message) => Some(message.stop),
            _ => None,
        })
        .collect();
    assert_eq!(stops, [Some(Stop::Aborted)]);
}

#[test]
fn usage_includes_cache_writes_thinking_tokens_and_cost() {
    let line = format!(
        r#"{{"type":"assistant","uuid":"u","timestamp":"2026-11-20T04:39:01.000Z","sessionId":"{OWN}","version":"1.0.3","costUSD":0.0125,"message":{{"id":"m1","model":"m","content":[{{"type":"text","text":"ok"}}],"stop_reason":"end_turn","usage":{{"input_tokens":3,"output_tokens":9,"cache_creation_input_tokens":8,"cache_creation":{{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":5}},"output_tokens_details":{{"thinking_tokens":4}}}}}}}}"#
    ) + "\n";
    let out = decode(&transcript(OWN), line.as_bytes());
    let usage = out.events.iter().find_map(|event| match &event.payload {
        Payload::UsageReported(usage) => Some(usage.clone()),
        _ => None,
    });
    let usage = usage.unwrap();
    assert_eq!((usage.cache_write_tokens, usage.cache_write_hour_tokens), (8, 5));
    assert_eq!((usage.output_tokens, usage.thinking_tokens), (9, 4));
    assert_eq!(usage.cost_nano_usd, Some(12_500_000));
}
