//! `capture explain` at a past time, and the reports on sources that should deliver events.

use std::{
    io::Write,
    process::{Output, Stdio},
};

use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, Server},
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

fn said(machine: &Machine, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = machine.command(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn reaches(server: &Server, session: &str, state: &str) {
    eventually(&format!("it is {state}"), || (server.session(session)["status"]["state"] == state).then_some(()));
}

#[test]
fn explain_at_a_past_time_shows_the_status_of_that_time() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap().to_owned());
    append(&path, &prompt(&id, &uuid(1, 1), &cwd, "go"));
    reaches(&server, &id, "running");
    append(&path, &answer(&id, &uuid(1, 2), &cwd, "done"));
    reaches(&server, &id, "waiting");

    let change = eventually("the change is stored", || {
        let history = server.client.json(&format!("/api/v1/sessions/{id}/status/history"))?;
        history.as_array()?.iter().find(|c| c["to"] == "running").cloned()
    });
    let at = change["at"].as_str().unwrap();
    let (code, out, err) = said(&machine, &["explain", &id, "--at", at, "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let then: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(then["moment"]["status"]["state"], "running", "{out}");
    assert_eq!(then["moment"]["at"], *at);
    assert_eq!(then["moment"]["account"]["rule"], "alone");
    assert_eq!(then["history"].as_array().unwrap().last().unwrap()["to"], "running", "nothing of what came later");
    assert_eq!(then["session"]["status"]["state"], "waiting", "the session as it is now");

    let (code, out, err) = said(&machine, &["explain", &id]);
    assert_eq!(code, Some(0), "{err}");
    for part in [
        "waiting",
        "decided: it is the only claim",
        "evidence for this state\n  transcript  high    decides",
        "last changes",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
    let (code, out, err) = said(&machine, &["explain", &id, "--at", at]);
    assert!(code == Some(0) && out.starts_with("at ") && out.contains("running thinking"), "{out}{err}");

    let (code, _, err) = said(&machine, &["explain", &id, "--at", "-2h"]);
    assert!(
        code == Some(4) && err.contains("capture first saw session") && err.contains("after the requested time"),
        "{err}"
    );
    for bad in ["soon", "2126-01-01T00:00:00Z"] {
        let (code, _, err) = said(&machine, &["explain", &id, "--at", bad]);
        assert!(code == Some(2) && err.contains("--at"), "{bad}: {err}");
    }
}

#[test]
fn hook_calls_are_reported_by_status_doctor_and_metrics() {
    let machine = Machine::new(PROGRAM);
    machine.newest_agents();
    let (code, _, err) = said(&machine, &["hooks", "install", "--yes", "--agent", "claude"]);
    assert_eq!(code, Some(0), "{err}");
    let (_, out, _) = said(&machine, &["hooks", "status"]);
    assert!(out.contains("no server is running"), "{out}");
    let server = machine.serve();
    let (_, out, _) = said(&machine, &["hooks", "status"]);
    assert!(out.contains("no hook call since the server started"), "{out}");

    let call = json!({"session_id": session(1), "hook_event_name": "UserPromptSubmit", "cwd": machine.project(),
        "transcript_path": machine.claude(&session(1)), "prompt": "go"});
    let mut hook = machine.command(&["hook", "claude"]).stdin(Stdio::piped()).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    let row = eventually("the call is seen", || {
        let health = server.client.json("/api/v1/health/sources")?;
        let row = health["sources"].as_array()?.iter().find(|s| s["name"] == "claude hooks")?.clone();
        row["last_event_at"].is_string().then_some(row)
    });
    assert_eq!((&row["active"], &row["detail"]), (&true.into(), &"installed, 1 calls".into()));

    let (code, out, err) = said(&machine, &["doctor"]);
    assert_eq!(code, Some(0), "{out}{err}");
    for row in ["✓ hooks ", "✓ claude hooks ", "· codex hooks ", "✓ runs "] {
        assert!(out.contains(row), "{row}:\n{out}");
    }
    let (_, out, _) = said(&machine, &["hooks", "status"]);
    assert!(out.contains("last hook call "), "{out}");
    let (_, out, _) = said(&machine, &["hooks", "status", "--json"]);
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status["agents"][0]["last_seen"], row["last_event_at"]);

    let aside = machine.data().join("spool/01K7A2B3C4D5E6F7G8H9J0K1M2.bad");
    std::fs::write(aside, "{}").unwrap();
    let (code, out, _) = said(&machine, &["doctor"]);
    assert!(code == Some(1) && out.contains("✗ hooks ") && out.contains("set aside"), "{out}");
    let metrics = String::from_utf8(server.client.get("/metrics").unwrap().body).unwrap();
    for line in ["capture_source_trouble{source=\"hooks\"} 1", "capture_hook_deliveries_total{provider=\"claude\"} 1"] {
        assert!(metrics.lines().any(|l| l == line), "{line}");
    }
}
