//! The events of all sessions in order of time: `GET /api/v1/events` and `capture log`.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use serde_json::Value;
use tests::{
    eventually,
    program::{Machine, Server},
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// A line of Claude's with the result of a failed tool.
fn failed_tool(name: &str, id: &str, cwd: &str, minute: u32) -> String {
    let line = serde_json::json!({
        "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": cwd, "sessionId": name,
        "version": "2.1.300", "type": "user", "uuid": id, "timestamp": format!("2026-11-01T10:{minute:02}:00.000Z"),
        "message": { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "make: *** No rule" }
        ]},
    });
    format!("{line}\n")
}

/// A prompt in this minute.
fn asked(name: &str, id: &str, cwd: &str, text: &str, minute: u32) -> String {
    let line = prompt(name, id, cwd, text);
    let mut line: Value = serde_json::from_str(&line).unwrap();
    line["timestamp"] = format!("2026-11-01T10:{minute:02}:00.000Z").into();
    format!("{line}\n")
}

/// Two sessions that worked alternately, each in its own directory.
fn two_sessions(machine: &Machine) -> (Server, [String; 2]) {
    let names = [session(1), session(2)];
    for (index, name) in names.iter().enumerate() {
        let cwd = format!("/work/part-{index}/src");
        let (writer, path) = (index as u64 + 1, machine.claude(name));
        for round in 0..3 {
            let minute = round * 10 + index as u32;
            let id = uuid(writer, u64::from(round));
            append(&path, &asked(name, &id, &cwd, &format!("prompt {minute}"), minute));
        }
        append(&path, &failed_tool(name, &uuid(writer, 9), &cwd, 40 + index as u32));
    }
    let server = machine.serve();
    for name in &names {
        server.caught_up(name, &machine.claude(name));
    }
    (server, names)
}

fn texts(page: &Value) -> Vec<&str> {
    let events = page["events"].as_array().unwrap().iter();
    events.filter(|event| event["kind"] == "user.prompt").map(|event| event["text"].as_str().unwrap()).collect()
}

#[test]
fn events_of_all_sessions_are_listed_by_time_in_pages() {
    let machine = Machine::new(PROGRAM);
    let (server, names) = two_sessions(&machine);
    let ask = |query: &str| server.client.json(&format!("/api/v1/events?{query}")).unwrap();
    let expected = ["prompt 21", "prompt 20", "prompt 11", "prompt 10", "prompt 1", "prompt 0"];
    assert_eq!(texts(&ask("")), expected, "the newest first, over both sessions");
    assert_eq!(texts(&ask("kind=user.prompt")), expected);
    // In pages of two, with every event once.
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ask(&format!("kind=user.prompt&limit=2{cursor}"));
        paged.extend(texts(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, expected);
    // Filters.
    assert_eq!(texts(&ask(&format!("session={}", names[1]))), ["prompt 21", "prompt 11", "prompt 1"]);
    assert_eq!(texts(&ask("cwd=/work/part-0")), ["prompt 20", "prompt 10", "prompt 0"]);
    assert_eq!(texts(&ask("cwd=/work/part")), [""; 0], "a directory, not the beginning of a name");
    assert_eq!(
        texts(&ask("since=2026-11-01T10:01:00Z&until=2026-11-01T10:20:00Z")),
        ["prompt 11", "prompt 10", "prompt 1"]
    );
    assert_eq!(texts(&ask("agent=codex")), [""; 0]);
    let failures = ask("failures=true");
    let kinds: Vec<&Value> = failures["events"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, ["tool.result", "tool.result"]);
    let sessions = failures["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    assert!(
        sessions.iter().all(|session| session["provider"] == "claude" && session["cwd"].is_string()),
        "{sessions:?}"
    );
    // Kinds that are not on the list, and cursors of other lists, are refused with their name.
    let refused = server.client.get("/api/v1/events?kind=tool.call").unwrap();
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("kind: ") && refused.text().contains("/sessions/{id}/events"),
        "{}",
        refused.text()
    );
    let refused = server.client.get("/api/v1/events?cursor=7").unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("cursor: "), "{}", refused.text());
}

#[test]
fn log_ends_with_the_newest_event_and_follow_prints_later_ones() {
    let machine = Machine::new(PROGRAM);
    let (server, names) = two_sessions(&machine);
    let output = machine.command(&["log", "--kind", "user.prompt", "--limit", "3"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ends: Vec<&str> = text.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    assert_eq!(ends.len(), 3, "{text}");
    for (line, prompt) in text.lines().zip(["prompt 11", "prompt 20", "prompt 21"]) {
        assert!(line.ends_with(prompt) && line.contains("claude"), "{text}");
    }
    let mut follower = machine
        .command(&["log", "--follow", "--limit", "1", "--cwd", "/work/part-1", "--kind", "user.prompt"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("prompt 21"));
    for (index, name) in names.iter().enumerate() {
        let cwd = format!("/work/part-{index}/src");
        append(&machine.claude(name), &prompt(name, &uuid(index as u64 + 1, 20), &cwd, &format!("later {index}")));
    }
    assert!(lines.next().unwrap().unwrap().ends_with("later 1"), "only of the directory");
    follower.kill().unwrap();
    follower.wait().unwrap();
    drop(server);
}

/// Lines of Claude's with an edit of a file and its result.
fn edited(name: &str, writer: u64, number: u64, cwd: &str, file: &str) -> String {
    let line = |id: u64, kind: &str, message: Value| {
        let line = serde_json::json!({
            "parentUuid": null, "isSidechain": false, "type": kind, "message": message, "uuid": uuid(writer, id),
            "timestamp": "2026-11-20T04:37:13.189Z", "cwd": cwd, "sessionId": name, "version": "2.1.328",
        });
        format!("{line}\n")
    };
    let call = format!("toolu_{writer}_{number}");
    let input = serde_json::json!({ "file_path": file, "old_string": "a", "new_string": "b" });
    let calls = serde_json::json!({
        "id": format!("msg_{writer}_{number}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
        "content": [{ "type": "tool_use", "id": call, "name": "Edit", "input": input }], "stop_reason": "tool_use",
        "usage": { "input_tokens": 10, "output_tokens": 42 },
    });
    let result = serde_json::json!({
        "role": "user", "content": [{ "type": "tool_result", "tool_use_id": call, "content": "The file was updated." }],
    });
    line(number, "assistant", calls) + &line(number + 1, "user", result)
}

#[test]
fn two_sessions_editing_the_same_file_raise_a_finding() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let cwd = machine.project().to_str().unwrap().to_owned();
    let file = format!("{cwd}/src/main.rs");
    let names = [session(1), session(2)];
    for (writer, name) in (1..).zip(&names) {
        append(&machine.claude(name), &prompt(name, &uuid(writer, 1), &cwd, "make it work"));
        append(&machine.claude(name), &edited(name, writer, 2, &cwd, &file));
        server.caught_up(name, &machine.claude(name));
    }
    let finding = eventually("the finding", || {
        let page = server.client.json("/api/v1/findings?kind=shared_files")?;
        page["findings"].as_array()?.first().cloned()
    });
    let second = server.session(&names[1]);
    assert_eq!((&finding["session_id"], &finding["severity"]), (&second["id"], &"warning".into()));
    assert_eq!(finding["what"], format!("two sessions edit the same file: {file}"));
    assert_eq!(finding["evidence"].as_array().unwrap().len(), 2);
    let run = |words: &[&str]| {
        let output = machine.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["findings", "--kind", "shared_files"]).contains("two sessions edit the same file"));
    assert!(run(&["next"]).contains("two sessions edit the same file"));
    assert!(run(&["log", "--kind", "finding"]).contains("two sessions edit the same file"));
    append(&machine.claude(&names[0]), &answer(&names[0], &uuid(1, 9), &cwd, "Done."));
    eventually("it is over", || {
        let page = server.client.json("/api/v1/findings?kind=shared_files&state=resolved")?;
        page["findings"].as_array()?.first().cloned()
    });
}
