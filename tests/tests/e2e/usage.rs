//! `capture usage`: tokens and costs equal those the scripted models reported, counting each call once.

use std::fs;

use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, Server},
    recording::Recording,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// Input, output, cache read and cache write tokens of each call of the scripted model in Claude's recordings.
const CALL: [u64; 4] = [10, 42, 5_000, 120];
/// The cost of such a call as Claude reports it, billionths of a US dollar.
const CALL_NANO_USD: f64 = 2_480_000.0;

/// Asserts that `capture usage` ends with this code; returns its output.
#[track_caller]
fn usage(machine: &Machine, arguments: &[&str], code: i32) -> String {
    let arguments: Vec<&str> = ["usage"].iter().chain(arguments).copied().collect();
    let output = machine.command(&arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

/// The usage of all times, as JSON.
#[track_caller]
fn report(machine: &Machine, arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["--since", "2000-01-01", "--json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&usage(machine, &all, 0)).unwrap()
}

fn tokens(sums: &Value) -> [u64; 4] {
    ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]
        .map(|kind| sums[kind].as_u64().unwrap())
}

/// The lines, with single spaces between words.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// A home directory with these recordings, and its server.
fn recorded(names: &[&str]) -> (Machine, Server) {
    let machine = Machine::new(PROGRAM);
    for name in names {
        Recording::load(name).lay_down(&machine.home(), &machine.project());
    }
    let server = machine.serve();
    (machine, server)
}

/// Waits until the total calls and tokens have these values.
#[track_caller]
fn reaches(machine: &Machine, what: &str, calls: u64, sums: [u64; 4]) -> Value {
    let mut last = Value::Null;
    let reached = tests::within(std::time::Duration::from_secs(30), || {
        last = report(machine, &["--by", "session"]);
        let total = &last["total"];
        (tokens(total) == sums && total["calls"] == calls).then_some(())
    });
    assert!(reached.is_some(), "{what}: expected {calls} calls and {sums:?}: {last:#}");
    last
}

#[test]
fn usage_of_claude_equals_the_calls_of_its_model() {
    // Sub-agents; calls without a line in the transcript (compaction, a title); resumed sessions, forks and copies.
    for (name, calls) in [
        ("claude/S03-bash-approve", 2),
        ("claude/S12-subagent", 6),
        ("claude/S13-compact", 8),
        ("claude/S14-resume-fork", 7),
        ("claude/S18-plan", 4),
    ] {
        let (machine, _server) = recorded(&[name]);
        let all = reaches(&machine, name, calls, CALL.map(|tokens| tokens * calls));
        let expected = CALL_NANO_USD * calls as f64 / 1e9;
        // The account of a fork in a separate process covers less than the history it repeats, so the computed prices
        // count.
        let costs =
            if name == "claude/S14-resume-fork" { &["cost_usd"][..] } else { &["cost_usd", "reported_cost_usd"][..] };
        for cost in costs {
            let cost = all["total"][cost].as_f64().unwrap();
            assert!((cost - expected).abs() < 1e-7, "{name}: {cost}, not {expected}");
        }
        for by in ["day", "project", "model", "agent"] {
            assert_eq!(report(&machine, &["--by", by])["total"], all["total"], "{name} by {by}");
        }
    }
    // The transcript has one output token of the interrupted answer, the account eight.
    let (machine, _server) = recorded(&["claude/S09-interrupt"]);
    reaches(&machine, "claude/S09-interrupt", 2, [20, 50, 10_000, 240]);
}

#[test]
fn usage_of_sub_agents_is_counted_once_in_session_and_total() {
    let (machine, _server) = recorded(&["claude/S12-subagent"]);
    let all = reaches(&machine, "claude/S12-subagent", 6, CALL.map(|tokens| tokens * 6));
    let rows = all["usage"].as_array().unwrap();
    let parent = rows.iter().find(|row| row["subagents"].is_object()).unwrap();
    let children: Vec<&Value> = rows.iter().filter(|row| row["parent_session_id"] == parent["session_id"]).collect();
    let sum = |rows: &[&Value]| {
        rows.iter().map(|row| tokens(row)).fold([0; 4], |sum, row| std::array::from_fn(|kind| sum[kind] + row[kind]))
    };
    assert!(!children.is_empty());
    assert_eq!(tokens(&parent["subagents"]), sum(&children));
    assert_eq!(sum(&rows.iter().collect::<Vec<_>>()), tokens(&all["total"]));
    // In the table the session is one line with its total.
    let text = lines(&usage(&machine, &["--by", "session", "--since", "2000-01-01"], 0));
    let (row, total) = (&text[3], &text[4]);
    assert!(total.starts_with("total 6 60 252 30.0k 720 97 % $0.01"), "{text:#?}");
    assert!(row.ends_with(total.strip_prefix("total ").unwrap()), "{text:#?}");
    // The report of the session includes its sub-agents.
    let id = parent["session_id"].as_str().unwrap();
    assert_eq!(report(&machine, &["--session", id])["total"]["calls"], 6);
}

#[test]
fn usage_of_codex_and_opencode_equals_the_usage_their_models_reported() {
    for (name, calls, sums) in
        [("codex/S14-resume-fork", 4, [3_760, 240, 800, 0]), ("opencode/S03-shell-approve", 3, [600, 120, 3_000, 0])]
    {
        let (machine, _server) = recorded(&[name]);
        reaches(&machine, name, calls, sums);
    }
}

/// A line of an answer by a model, with its usage.
fn answered(id: &str, uuid: &str, at: &str, model: &str, output_tokens: u64) -> String {
    let message = json!({"id": format!("msg_{uuid}"), "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 1_000_000, "output_tokens": output_tokens}});
    let line = json!({"parentUuid": null, "isSidechain": false, "message": message, "requestId": "r", "type": "assistant",
        "uuid": uuid, "timestamp": at, "cwd": "/p/app", "sessionId": id, "version": "2.1.328"});
    format!("{line}\n")
}

#[test]
fn a_usage_report_names_its_period_and_unpriced_models() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let text = usage(&machine, &["--since", "2026-11-01", "--until", "2026-11-07"], 0);
    assert!(text.starts_with("no usage from 2026-11-01 00:00:00 until 2026-11-08 00:00:00"), "{text}");
    assert!(usage(&machine, &["--quality", "--since", "2026-11-01"], 0).starts_with("no turns ended since 2026-11-01"));
    let id = session(1);
    let path = machine.claude(&id);
    append(&path, &prompt(&id, &uuid(1, 1), "/p/app", "do it"));
    append(&path, &answered(&id, &uuid(1, 2), "2026-11-02T12:00:00.000Z", "claude-opus-5-5", 1_000_000));
    append(&path, &answered(&id, &uuid(1, 3), "2026-11-03T12:00:00.000Z", "house-model", 1_000_000));
    server.caught_up(&id, &path);
    let text = lines(&usage(&machine, &["--since", "2026-11-01", "--until", "2026-11-07"], 0));
    assert_eq!(text[0], "from 2026-11-01 00:00:00 until 2026-11-08 00:00:00");
    assert_eq!(text[2], "DAY CALLS INPUT OUTPUT CACHE READ CACHE WRITE CACHED COST");
    assert_eq!(text[3], "2026-11-02 1 1.0M 1.0M 0 0 0 % $24.00");
    assert_eq!(text[4], "2026-11-03 1 1.0M 1.0M 0 0 0 % ?");
    assert_eq!(text[5], "total 2 2.0M 2.0M 0 0 0 % $24.00 + ?");
    assert!(text[6].contains("the price is unknown: house-model"), "{text:#?}");
    for (by, rows) in [
        ("project", &["/p/app 2 "][..]),
        ("model", &["claude-opus-5-5 1 ", "house-model 1 "][..]),
        ("agent", &["claude 2 "][..]),
        ("session", &[" 2 2.0M "][..]),
    ] {
        let text = lines(&usage(&machine, &["--by", by, "--since", "2026-11-01"], 0));
        assert!(text[0].starts_with("since 2026-11-01"), "{text:#?}");
        for (row, line) in rows.iter().zip(&text[3..]) {
            assert!(line.contains(row), "{row}: {text:#?}");
        }
        assert!(text[3 + rows.len()].starts_with("total 2 "), "{text:#?}");
    }
    let json = report(&machine, &["--by", "model", "--until", "2026-11-02"]);
    assert_eq!((json["total"]["calls"].as_u64(), json["unpriced_models"].as_array().unwrap().len()), (Some(1), 0));
    assert_eq!(json["until"].as_str().unwrap().get(..10), Some("2026-11-03"));
    assert_eq!(json["since"].as_str().unwrap().get(..10), Some("2000-01-01"));
    assert_eq!(usage(&machine, &["--agent", "codex", "--since", "2026-11-01"], 0).lines().count(), 1, "none of Codex");
    assert!(usage(&machine, &["--since", "soon"], 2).contains("--since"));

    // The user's own prices, then a mistake in them.
    let prices = machine.home().parent().unwrap().join("config/capture/prices.toml");
    fs::create_dir_all(prices.parent().unwrap()).unwrap();
    fs::write(&prices, "[[model]]\nname = \"house-model\"\n[[model.price]]\ninput = 1\noutput = 2\n").unwrap();
    let priced = report(&machine, &[]);
    assert_eq!(
        (priced["total"]["cost_usd"].as_f64(), priced["total"]["unpriced_calls"].as_u64()),
        (Some(27.0), Some(0))
    );
    fs::write(&prices, "[[model]]\nname = \"house-model\"\n[[model.price]]\ninput = 1\noutput = \"a lot\"\n").unwrap();
    let text = usage(&machine, &[], 5);
    assert!(text.contains("prices.toml: line 5: ") && text.contains("retry"), "{text}");
}

#[test]
fn the_quality_report_counts_turns_calls_failures_and_test_fixes() {
    let (machine, server) = recorded(&["claude/S15-edit-write"]);
    let id = session(1);
    let path = machine.claude(&id);
    append(&path, &prompt(&id, &uuid(1, 1), "/p/app", "fix it"));
    let call = |n: u64, name: &str, input: &Value| {
        let message = json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [{"type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": input}],
            "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}});
        let line = json!({"parentUuid": null, "isSidechain": false, "message": message, "type": "assistant",
            "uuid": uuid(1, 10 * n), "timestamp": "2026-11-20T04:37:13.000Z", "cwd": "/p/app", "sessionId": id});
        let result = json!({"role": "user", "content": [{"tool_use_id": format!("toolu_{n}"), "type": "tool_result",
            "content": "out", "is_error": name == "Bash" && n < 3}]});
        let result = json!({"parentUuid": null, "isSidechain": false, "message": result, "type": "user",
            "uuid": uuid(1, 10 * n + 1), "timestamp": "2026-11-20T04:37:13.500Z", "cwd": "/p/app", "sessionId": id});
        append(&path, &format!("{line}\n{result}\n"));
    };
    let test = json!({"command": "cargo test"});
    call(1, "Bash", &test);
    call(2, "Edit", &json!({"file_path": "/p/app/a.rs", "old_string": "a", "new_string": "b"}));
    call(3, "Bash", &test);
    append(&path, &answer(&id, &uuid(1, 90), "/p/app", "fixed"));
    server.caught_up(&id, &path);
    let quality: Value = eventually("the end of the turn", || {
        let text = usage(&machine, &["--quality", "--json", "--since", "2000-01-01", "--session", &id], 0);
        let report: Value = serde_json::from_str(&text).unwrap();
        (report["sessions"].as_array()?.len() == 1).then_some(report)
    });
    let total = &quality["total"];
    let figures =
        ["turns", "completed_turns", "tool_calls", "failed_calls", "test_fix_loops"].map(|f| total[f].as_u64());
    assert_eq!(figures, [1, 1, 3, 1, 1].map(Some), "{quality:#}");
    assert_eq!(quality["since"].as_str().unwrap().get(..10), Some("2000-01-01"));
    let text = usage(&machine, &["--quality", "--since", "2000-01-01"], 0);
    let text = lines(&text);
    assert!(text[0].starts_with("since 2000-01-01"), "{text:#?}");
    assert_eq!(text[2], "SESSION TURNS DONE CALLS FAILED TEST FIXES ACTIVE WAITING IDLE");
    assert!(text.iter().any(|line| line.contains(" 1 1 3 1 1 ")), "{text:#?}");
}

#[test]
fn agent_cache_shows_the_hit_rate_of_an_observed_session() {
    let (machine, _server) = recorded(&["claude/S03-bash-approve"]);
    let report = reaches(&machine, "S03", 2, CALL.map(|tokens| 2 * tokens));
    let session = report["usage"][0]["session_id"].as_str().unwrap();
    let shown = machine.command(&["agent", "cache", session]).output().unwrap();
    let [input, _, read, written] = CALL.map(|tokens| u32::try_from(tokens).map(f64::from).unwrap());
    let rate = read / (input + read + written) * 100.0;
    let expected = format!("{rate:.1} % of the input was read from the cache, in 2 calls.");
    assert!(String::from_utf8_lossy(&shown.stdout).starts_with(&expected), "{shown:?}");
    let json = machine.command(&["agent", "cache", session, "--json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let told = json["total"]["cache_hit_rate"].as_f64().unwrap();
    assert!((told * 100.0 - rate).abs() < 1e-9, "{told} {rate}");
    let unknown = machine.command(&["agent", "cache", "nothing-like-it"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(4), "{unknown:?}");
}
