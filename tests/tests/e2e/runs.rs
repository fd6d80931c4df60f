//! Runs as the server reports them: a scripted agent in a terminal of a host, its status over HTTP, input to it, and
//! its end.

use std::fs;

use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    http::Client,
    program::{Machine, Server},
    terminal_user::end_all,
    transcript::session,
};

use super::PROGRAM;

/// An agent that reports its state like some real agents (OSC 7501), asks for permission once, and ends with 3 if it
/// was granted.
const AGENT: &str = r#"
say() { printf '\033]7501;state=%s:app=scripted\033\\' "$1"; }
say idle; echo ready
read -r prompt; say working; echo "working on $prompt"
read -r go; say blocked:kind=permission; echo 'May I? (y/n)'
read -r answer; say working; echo "answer $answer"
read -r end; exit 3
"#;

struct RunsMachine {
    machine: Machine,
    server: Option<Server>,
}

impl RunsMachine {
    fn new() -> Self {
        let machine = Machine::new(PROGRAM);
        machine.configure("autostart = false\n");
        fs::write(machine.project().join("agent.sh"), AGENT).unwrap();
        let server = Some(machine.serve());
        Self { machine, server }
    }

    fn client(&self) -> &Client {
        &self.server.as_ref().unwrap().client
    }

    /// Starts the agent in an unattended terminal.
    fn start(&self, more: &[&str]) -> Value {
        let agent = self.machine.project().join("agent.sh");
        let words = [&["run", "--detach", "--json"], more, &["--", "sh", agent.to_str().unwrap()]].concat();
        let output = self.machine.command(&words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn run(&self, name: &str) -> Option<Value> {
        self.client().json(&format!("/api/v1/runs/{name}"))
    }

    fn session(&self, run: &str) -> Value {
        let id = eventually("the run has a session", || self.run(run)?["session_id"].as_str().map(str::to_owned));
        eventually("the session", || self.client().json(&format!("/api/v1/sessions/{id}")))
    }

    /// Waits until the session of a run is in a state.
    #[track_caller]
    fn until(&self, run: &str, state: &str) -> Value {
        eventually(state, || Some(self.session(run)).filter(|s| s["status"]["state"] == state))
    }

    fn input(&self, run: &str, body: &Value) -> (u16, Value) {
        let path = format!("/api/v1/runs/{run}/input");
        let answer = self.client().send("POST", &path, Some(&body.to_string()), PATIENCE).unwrap();
        (answer.status, answer.json())
    }
}

impl Drop for RunsMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

/// Asks its terminal whether it supports status reports, and writes the answers to the file `answer`. Then, each time
/// the test has created a step's file, it reports its status or that of a child, and prints a confirmation.
const REPORTER: &str = r#"
step() { until [ -e "$1" ]; do sleep 0.05; done; printf '\033]7501;%s\033\\said %s\n' "$2" "$1"; }
stty raw -echo; printf '\033]7501;?\033\\\033[c'; IFS= read -r -d c answer; stty sane
printf '%s' "$answer" > answer
step answer state=blocked:app=pi:kind=permission
step child state=working:id=wf/1:app=wf
step cleared state=clear:id=wf/1
step signin kind=auth:app=pi:state=blocked
read -r end
"#;

#[test]
fn status_reports_of_a_program_determine_its_session_status() {
    let here = RunsMachine::new();
    let project = here.machine.project();
    fs::write(project.join("agent.sh"), REPORTER).unwrap();
    let words = ["run", "--detach", "--name", "mine", "--", "bash", "agent.sh"];
    assert!(here.machine.command(&words).current_dir(&project).output().unwrap().status.success());
    here.until("mine", "waiting_approval");
    let answer = fs::read_to_string(project.join("answer")).unwrap();
    assert_eq!(
        answer, "\u{1b}]7501;?\u{1b}\\\u{1b}[?62;22",
        "the answer comes before that of a terminal that knows nothing of it"
    );
    let asks = json!("state=blocked:app=pi:kind=permission");
    for step in ["child", "cleared"] {
        fs::write(project.join(step), "").unwrap();
        // Output is read in order: text printed after a report is visible only once the report was read.
        let said = json!(format!("said {step}"));
        let screen = eventually("the step is done", || {
            let screen = here.client().json("/api/v1/runs/mine/screen")?;
            screen["lines"].as_array()?.contains(&said).then_some(screen)
        });
        assert_eq!(screen["agent_state"], asks);
        here.until("mine", "waiting_approval");
    }
    fs::write(project.join("signin"), "").unwrap();
    let signs_in = here.until("mine", "waiting");
    assert_eq!(signs_in["status"]["reason"], "auth");
}

#[test]
fn a_run_is_observed_from_start_to_exit_and_accepts_input() {
    let here = RunsMachine::new();
    let started = here.start(&["--name", "mine"]);
    let waiting = here.until("mine", "waiting");
    assert_eq!((&waiting["run_id"], &waiting["pid"]), (&started["run"], &started["pid"]));
    assert_eq!(here.input("mine", &json!({ "text": "the task", "submit": true })).0, 200);
    here.until("mine", "running");
    assert_eq!(here.input("mine", &json!({ "keys": ["enter"] })).0, 200);
    let asks = here.until("mine", "waiting_approval");
    assert_eq!(asks["pending_approvals"].as_array().unwrap().len(), 1);
    let screen = here.client().json("/api/v1/runs/mine/screen").unwrap();
    let lines: Vec<&str> = screen["lines"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(lines.contains(&"working on the task") && lines.contains(&"May I? (y/n)"), "{lines:?}");
    // The command line also finds the run by its session.
    let shown = here.machine.command(&["screen", asks["id"].as_str().unwrap()]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(out.contains("May I? (y/n)"), "{out}{err}");
    let part = started["run"].as_str().unwrap();
    let ends =
        [&part[part.len() - 3..], &part[..part.len() - 1]].map(|given| here.run(given).map(|run| run["id"].clone()));
    assert_eq!(ends, [Some(started["run"].clone()), Some(started["run"].clone())]);
    // Text could answer the dialog by accident.
    let (status, refused) = here.input("mine", &json!({ "text": "more", "submit": true }));
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{refused}");
    assert_eq!(here.input("mine", &json!({ "keys": ["nonsense"] })).0, 409);
    assert_eq!(here.input("mine", &json!({ "keys": ["y", "enter"] })).0, 200);
    here.until("mine", "running");
    // A text would wait for the prompt, so a key is sent.
    assert_eq!(here.input("mine", &json!({ "keys": ["enter"] })).0, 200);
    // The server may notice the end of the process before the host reports the exit code.
    let gone = eventually("the session failed", || {
        let gone = here.until("mine", "exited");
        (gone["status"]["reason"] == "failed").then_some(gone)
    });
    assert_eq!(here.run("mine").unwrap()["exit_code"], 3);
    assert_eq!(here.input("mine", &json!({ "text": "x" })).0, 409, "the run is gone");
    let asked = here.machine.command(&["explain", gone["id"].as_str().unwrap()]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&asked.stdout), String::from_utf8_lossy(&asked.stderr));
    assert!(out.contains("exited"), "{out}{err}");
}

#[test]
fn text_is_not_typed_into_a_dialog_known_only_from_a_hook() {
    let here = RunsMachine::new();
    let id = session(1);
    let asked = json!({
        "session_id": id, "cwd": here.machine.project(), "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "rm -r build"},
    });
    let payload = here.machine.project().join("asked.json");
    fs::write(&payload, asked.to_string()).unwrap();
    // No rule matches this screen.
    let script = format!(
        "echo 'May I? (y/n)'; '{PROGRAM}' hook claude < '{}'; read -r answer; echo \"answer $answer\"; read -r end",
        payload.display()
    );
    let words = ["run", "--detach", "--json", "--name", "mine", "--", "sh", "-c", &script];
    let started = here.machine.command(&words).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    let run: Value = serde_json::from_slice(&started.stdout).unwrap();
    let asks = eventually("the session asks", || {
        let asks = here.client().json(&format!("/api/v1/sessions/{id}"))?;
        (asks["status"]["state"] == "waiting_approval").then_some(asks)
    });
    assert_eq!(asks["run_id"], run["run"], "{asks}");
    let (status, refused) = here.input("mine", &json!({ "text": "y\n" }));
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{refused}");
    assert_eq!(here.input("mine", &json!({ "text": "n\n", "force": true })).0, 200);
    let screen = || here.client().json("/api/v1/runs/mine/screen").unwrap()["lines"].to_string();
    eventually("what was forced is typed", || screen().contains("answer n").then_some(()));
}

#[test]
fn a_run_survives_server_restarts_without_lost_or_duplicate_events() {
    let mut here = RunsMachine::new();
    here.start(&["--name", "mine"]);
    let session = here.until("mine", "waiting")["id"].as_str().unwrap().to_owned();
    let agent = here.run("mine").unwrap();
    let claims = |here: &RunsMachine| -> Vec<String> {
        let events = here.server.as_ref().unwrap().events(&session);
        let said = events.iter().filter(|e| e["source"] == "pty" && e["data"]["state"].is_string());
        said.map(|e| e["data"]["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(here.input("mine", &json!({ "text": "a\n" })).0, 200);
    here.until("mine", "running");
    let before = claims(&here);
    for end_well in [false, true] {
        let server = here.server.take().unwrap();
        if end_well {
            assert!(tests::program::ended_well(server.stop()));
        } else {
            server.kill();
        }
        here.server = Some(here.machine.serve());
        eventually("the host registers again", || here.run("mine").filter(|run| run["state"] == "running"));
        assert_eq!(here.run("mine").unwrap()["pid"], agent["pid"]);
        assert_eq!(here.session("mine")["id"], session.as_str(), "the same session");
    }
    assert_eq!(here.until("mine", "running")["status"]["state"], "running");
    // Events while no server runs are reported afterwards, once.
    here.server.take().unwrap().kill();
    let attach = here.machine.command(&["send", "mine", "--keys", "enter"]).output().unwrap();
    assert_eq!(attach.status.code(), Some(4), "no server, no input");
    here.server = Some(here.machine.serve());
    eventually("the host is there", || here.run("mine").filter(|run| run["state"] == "running"));
    assert_eq!(here.input("mine", &json!({ "keys": ["enter"] })).0, 200);
    here.until("mine", "waiting_approval");
    let mut expected = before;
    expected.push("waiting_approval".into());
    assert_eq!(claims(&here), expected);
}

/// A restarted server lists the earlier runs with its first answer.
#[test]
fn runs_are_known_as_soon_as_a_restarted_server_answers() {
    let mut here = RunsMachine::new();
    here.start(&["--name", "mine"]);
    here.until("mine", "waiting");
    for command in [&["runs"][..], &["show", "mine"], &["screen", "mine"], &["send", "mine", "--keys", "up"]] {
        assert!(tests::program::ended_well(here.server.take().unwrap().stop()));
        here.server = Some(here.machine.serve());
        let output = here.machine.command(command).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{command:?}: {out}{err}");
        assert!(command != ["runs"] || out.contains("mine"), "{out}{err}");
    }
}

#[test]
fn record_without_a_terminal_warns_that_no_recording_is_made() {
    let here = RunsMachine::new();
    let output = here.machine.command(&["run", "--record", "--", "true"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.contains("nothing is recorded, because standard output"), "{err}");
}

#[test]
fn a_name_belongs_to_one_active_run() {
    let here = RunsMachine::new();
    let first = here.start(&["--name", "mine"]);
    let again = |more: &[&str]| {
        let words = [&["run", "--name", "mine"], more, &["--", "true"]].concat();
        let output = here.machine.command(&words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let taken = format!("capture: the name `mine` is used by run {}\n", first["run"].as_str().unwrap());
    assert_eq!(again(&["--detach"]), (Some(5), taken.clone()));
    assert_eq!(again(&[]), (Some(5), taken), "also without a terminal");
    here.start(&["--name", "yours"]);
    end_all(&here.machine.data());
    eventually("the name is free", || (again(&["--detach"]).0 == Some(0)).then_some(()));
}

impl RunsMachine {
    /// The output of a command on both streams, and its exit code.
    fn says(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.machine.command(arguments).current_dir(self.machine.project()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    }

    /// Starts a shell script in an unattended terminal.
    fn start_script(&self, name: &str, script: &str) -> String {
        let words = ["run", "--detach", "--json", "--name", name, "--", "sh", "-c", script];
        let output = self.machine.command(&words).current_dir(self.machine.project()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let started: Value = serde_json::from_slice(&output.stdout).unwrap();
        started["run"].as_str().unwrap().to_owned()
    }

    fn until_screen_shows(&self, run: &str, text: &str) {
        eventually(text, || {
            let screen = self.client().json(&format!("/api/v1/runs/{run}/screen"))?;
            screen["lines"].as_array()?.iter().any(|line| line.as_str() == Some(text)).then_some(())
        });
    }
}

#[test]
fn a_run_is_renamed_restarted_and_stopped() {
    let here = RunsMachine::new();
    let script = "trap 'exit 7' HUP; pwd; echo ready; while :; do sleep 9999 & wait; done";
    let first = here.start_script("api", script);
    let other = here.start_script("web", script);
    here.until_screen_shows(&first, "ready");
    // A name belongs to one run and is known at once.
    let taken = format!("capture: the name `web` is used by run {other}\n");
    assert_eq!(here.says(&["rename", "api", "web"]), (Some(5), taken));
    assert_eq!(here.says(&["rename", "api", " "]).0, Some(2));
    assert_eq!(here.says(&["rename", "api", "server"]), (Some(0), "run api is now server\n".to_owned()));
    assert_eq!(here.run("server").unwrap()["id"], first.as_str());
    assert_eq!(here.run("api"), None);
    assert!(here.says(&["runs"]).1.contains("server"));
    // The same command line, in the same directory, under the same name.
    let (code, text) = here.says(&["restart", "server"]);
    assert!(code == Some(0) && text.contains("run server has ended; starting `sh -c"), "{text}");
    let second = here.run("server").unwrap();
    assert_ne!(second["id"], first.as_str());
    assert_eq!((&second["state"], &second["command"][2]), (&json!("running"), &json!(script)));
    here.until_screen_shows("server", here.machine.project().to_str().unwrap());
    let ended = here.run(&first).unwrap();
    assert_eq!((&ended["state"], &ended["exit_code"]), (&json!("exited"), &json!(7)), "asked politely");
    // After a stop the name is free.
    here.until_screen_shows("server", "ready");
    assert_eq!(here.says(&["stop", "server"]), (Some(0), "run server ended (exit code 7)\n".to_owned()));
    let (code, text) = here.says(&["stop", "server"]);
    assert!(code == Some(4) && text.contains(&format!("active runs: {other} (web)")), "{text}");
    assert!(here.run(second["id"].as_str().unwrap()).unwrap()["state"] == "exited");
}

#[test]
fn stop_now_kills_a_program_that_ignores_signals() {
    let here = RunsMachine::new();
    let run = here.start_script("deaf", "trap '' HUP TERM INT; echo ready; while :; do sleep 9999 & wait; done");
    here.until_screen_shows(&run, "ready");
    assert_eq!(here.says(&["stop", "deaf", "--now"]), (Some(0), "run deaf ended (signal 9)\n".to_owned()));
}

#[test]
fn an_agent_cannot_stop_restart_or_rename_a_run() {
    let here = RunsMachine::new();
    let run = here.start_script("api", "echo ready; while :; do sleep 9999 & wait; done");
    here.until_screen_shows(&run, "ready");
    for line in ["stop api", "stop api --now", "restart api", "rename api mine"] {
        let output = here.machine.agents_shell("claude", &format!("capture {line}")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(5) && text.contains("is not allowed from this process"), "{line}: {text}");
    }
    assert_eq!(here.run("api").unwrap()["state"], "running");
}

#[test]
fn a_process_posing_as_a_run_host_is_rejected() {
    use std::io::{BufRead, BufReader, Write};
    let here = RunsMachine::new();
    let mut stream = std::os::unix::net::UnixStream::connect(here.machine.data().join("capture.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "GET /api/v1/host HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: capture-host/1\r\n\r\n";
    let hello = json!({
        "type": "hello", "run": "01M7W5P13SHYH76PYZWVYG82F2", "command": ["x"], "provider": "claude", "cwd": "/",
        "pid": 1, "start_ticks": 1, "host_pid": 1, "started_at": "2026-11-20T09:47:56.927Z", "terminal": true
    });
    stream.write_all(format!("{head}{hello}\n").as_bytes()).unwrap();
    let lines: Vec<String> = BufReader::new(stream).lines().map_while(Result::ok).collect();
    assert!(lines[0].contains("101"), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("ack")), "who claims to be another process is turned away");
    assert_eq!(here.client().json("/api/v1/runs").unwrap()["runs"], json!([]));
}

/// Commands find a run by its name as soon as the command that started it has returned.
#[test]
fn a_detached_run_can_be_used_by_name_as_soon_as_its_command_returns() {
    let here = RunsMachine::new();
    for n in 0..5 {
        let name = format!("run{n}");
        here.start(&["--name", &name]);
        for command in [&["show", &name][..], &["wait", &name, "--timeout", "20"], &["queue", &name, "later"]] {
            let output = here.machine.command(command).output().unwrap();
            assert!(output.status.success(), "{command:?}: {output:?}");
        }
    }
}
