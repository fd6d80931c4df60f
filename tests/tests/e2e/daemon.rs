//! The daemon of Codex as a source of the real program: a scripted daemon reports what its threads do, disconnects,
//! reconnects and misbehaves. In every case it receives only messages a passive client would send.

use serde_json::{Value, json};
use tests::{
    daemon::{Daemon, Manner},
    eventually,
    program::{Machine, Server},
    transcript::{append, codex_head},
};
use tungstenite::Message;

use super::PROGRAM;

const THREAD: &str = "01a1f74e-8593-71e1-8e02-71959782e222";
const TITLE: &str = "01a1f74e-8c60-7de3-86fc-5c269b53ce5c";

fn active() -> Value {
    json!({"type": "active", "activeFlags": []})
}

fn asks() -> Value {
    json!({"type": "active", "activeFlags": ["waitingOnApproval"]})
}

fn idle() -> Value {
    json!({"type": "idle"})
}

/// A machine whose Codex has one session.
fn machine() -> Machine {
    let machine = Machine::new(PROGRAM);
    write_rollout(&machine, THREAD);
    machine
}

fn write_rollout(machine: &Machine, thread: &str) {
    let rollout = machine.home().join(format!(".codex/sessions/2026/11/20/rollout-2026-11-20T04-38-54-{thread}.jsonl"));
    append(&rollout, &codex_head(thread, machine.project().to_str().unwrap()));
}

fn daemon(machine: &Machine, manner: Manner) -> Daemon {
    Daemon::start(&machine.home().join(".codex"), manner)
}

#[track_caller]
fn until(server: &Server, state: &str) -> Value {
    eventually(state, || {
        let session = server.client.json(&format!("/api/v1/sessions/{THREAD}"))?;
        (session["status"]["state"] == state).then_some(session)
    })
}

/// Waits until the state no longer comes from the daemon.
#[track_caller]
fn until_withdrawn(server: &Server) {
    eventually("nothing of the daemon's is believed any more", || {
        let session = server.client.json(&format!("/api/v1/sessions/{THREAD}"))?;
        let evidence = session["status"]["evidence"].as_array()?.iter().any(|e| e["source"] == "protocol");
        (!evidence && session["status"]["state"] != "waiting_approval").then_some(())
    });
}

fn row(server: &Server) -> Option<Value> {
    let sources = server.client.json("/api/v1/health/sources")?;
    sources["sources"].as_array()?.iter().find(|source| source["name"] == "codex daemon").cloned()
}

/// Asserts that the daemon received only messages of a passive client.
#[track_caller]
fn only_looked_on(daemon: &Daemon) {
    let heard = daemon.heard();
    for message in &heard {
        let method = message["method"].as_str().unwrap_or_else(|| panic!("an answer: {message}"));
        assert!(matches!(method, "initialize" | "initialized" | "thread/loaded/list" | "thread/read"), "{message}");
    }
    let inits = heard.iter().filter(|message| message["method"] == "initialize").count();
    assert!(inits <= daemon.connections() as usize);
}

#[test]
fn states_reported_by_the_codex_daemon_end_when_it_disconnects() {
    let machine = machine();
    let server = machine.serve();
    let _known = server.session(THREAD);
    assert_eq!(row(&server), None);
    let first = daemon(&machine, Manner::Plain);
    first.has(THREAD, &active());
    let running = until(&server, "running");
    let claim = running["status"]["evidence"].as_array().unwrap().iter().find(|e| e["source"] == "protocol").cloned();
    assert_eq!(claim.unwrap()["claim"], "daemon: active");
    first.set(TITLE, &active());
    first.set(THREAD, &asks());
    let request = json!({"method": "item/commandExecution/requestApproval", "id": 0, "params": {"threadId": THREAD}});
    first.tell(&request);
    assert_eq!(until(&server, "waiting_approval")["status"]["reason"], "tool");
    first.set(THREAD, &idle());
    until(&server, "waiting");
    let told = row(&server).unwrap();
    assert_eq!((&told["active"], &told["errors"]), (&json!(true), &json!(0)), "{told}");
    // The daemon's own sessions are not listed.
    assert_eq!(server.client.get(&format!("/api/v1/sessions/{TITLE}")).unwrap().status, 404);
    first.set(THREAD, &asks());
    until(&server, "waiting_approval");
    only_looked_on(&first);
    drop(first);
    until_withdrawn(&server);
    // A second daemon, with a thread whose transcript appears later.
    let second = daemon(&machine, Manner::Plain);
    second.has(THREAD, &asks());
    until(&server, "waiting_approval");
    let late = TITLE.replace("ce5c", "ce5d");
    second.set(&late, &active());
    eventually("the message is taken in", || row(&server)?["detail"].as_str()?.contains("1 connected").then_some(()));
    write_rollout(&machine, &late);
    eventually("the claim is offered again", || {
        (server.client.json(&format!("/api/v1/sessions/{late}"))?["status"]["state"] == "running").then_some(())
    });
    // A state that an earlier daemon reported and this one does not report again ends.
    only_looked_on(&second);
    server.kill();
    drop(second);
    let server = machine.serve();
    until_withdrawn(&server);
}

#[test]
fn invalid_messages_of_the_codex_daemon_are_tolerated() {
    let machine = machine();
    let server = machine.serve();
    let daemon = daemon(&machine, Manner::Plain);
    daemon.has(THREAD, &active());
    until(&server, "running");
    for text in ["nonsense", "{}", "[1]", r#"{"method":"thread/status/changed","params":7}"#] {
        daemon.say(Message::text(text));
    }
    daemon.say(Message::binary(vec![0, 159, 146, 150]));
    daemon.set(THREAD, &json!({"type": "somethingNew"}));
    daemon.set(THREAD, &asks());
    until(&server, "waiting_approval");
    let told = row(&server).unwrap();
    assert_eq!((&told["active"], &told["errors"]), (&json!(true), &json!(3)), "{told}");
    // The message is too long: the server drops the connection and opens another.
    daemon.say(Message::text("x".repeat(9 << 20)));
    eventually("it connects again", || (daemon.connections() == 2).then_some(()));
    daemon.set(THREAD, &idle());
    until(&server, "waiting");
    only_looked_on(&daemon);
}

#[test]
fn a_slow_codex_daemon_is_followed() {
    let machine = machine();
    let server = machine.serve();
    let daemon = daemon(&machine, Manner::Slow);
    daemon.has(THREAD, &active());
    until(&server, "running");
    daemon.set(THREAD, &asks());
    until(&server, "waiting_approval");
    only_looked_on(&daemon);
}

#[test]
fn an_unresponsive_codex_daemon_is_reported_and_retried() {
    for manner in [Manner::Silent, Manner::Mute] {
        let machine = machine();
        let server = machine.serve();
        let quiet = daemon(&machine, manner);
        eventually("it is told", || {
            let row = row(&server)?;
            (row["active"] == false && row["errors"].as_u64()? > 0).then_some(())
        });
        eventually("it is tried again", || (quiet.connections() > 1).then_some(()));
        only_looked_on(&quiet);
        assert!(tests::program::ended_well(server.stop()), "it keeps nobody from ending");
    }
}

#[test]
fn a_codex_daemon_sending_only_notifications_is_followed() {
    let machine = machine();
    let server = machine.serve();
    let daemon = daemon(&machine, Manner::Curt);
    eventually("it connects", || (daemon.heard().len() > 1).then_some(()));
    daemon.set(THREAD, &asks());
    until(&server, "waiting_approval");
    only_looked_on(&daemon);
}

#[test]
fn a_socket_in_a_linked_directory_is_not_connected_to() {
    let machine = machine();
    let elsewhere = machine.project().join("elsewhere");
    let daemon = Daemon::start(&elsewhere, Manner::Plain);
    daemon.has(THREAD, &asks());
    std::os::unix::fs::symlink(elsewhere.join("app-server-control"), machine.home().join(".codex/app-server-control"))
        .unwrap();
    let server = machine.serve();
    let _known = server.session(THREAD);
    eventually("the link is reported", || {
        row(&server)?["trouble"].as_str()?.contains("does not connect").then_some(())
    });
    assert_eq!(daemon.connections(), 0);
}
