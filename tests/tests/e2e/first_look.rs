//! Agents that were running before the server started: the rows and findings that the first commands show.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime},
};

use events::Timestamp;
use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    program::{Machine, Server},
    transcript::{session, uuid},
    within,
};

use super::PROGRAM;

/// How long ago the agents wrote their last line: longer than anything that counts as recent.
const AGO_MS: i64 = 40 * 60 * 1000;

/// A process that passes for an agent. Dropping the value ends the process.
pub(super) struct RunningAgent(Child);

impl RunningAgent {
    fn start(machine: &Machine, agent: &str, cwd: &Path) -> Self {
        Self::with_open_file(machine, agent, cwd, Path::new("/dev/null"))
    }

    /// An agent that keeps a file open.
    fn with_open_file(machine: &Machine, agent: &str, cwd: &Path, file: &Path) -> Self {
        fs::create_dir_all(cwd).unwrap();
        // The same script for all agents: each shell reads it when it starts.
        let mut shell = machine.agents_shell(agent, "exec 3<\"$OPEN_FILE\"; read end_of_input");
        let agent = Self(shell.env("OPEN_FILE", file).current_dir(cwd).stdin(Stdio::piped()).spawn().unwrap());
        // The script is rewritten for the next agent, so this one must have read it first.
        let opened = format!("/proc/{}/fd/3", agent.0.id());
        eventually("the agent runs", || fs::read_link(&opened).ok().filter(|open| open == file));
        agent
    }
}

impl RunningAgent {
    /// An agent started with `word` as its first argument.
    fn with_word(machine: &Machine, agent: &str, word: &str, cwd: &Path, file: &Path) -> Self {
        fs::create_dir_all(cwd).unwrap();
        // The word is the path of the script that passes for the agent.
        fs::write(cwd.join(word), "exec 3<\"$OPEN_FILE\"; read end_of_input").unwrap();
        let plain = machine.agents_shell(agent, "");
        let mut shell = Command::new(plain.get_program());
        shell.arg(word).env_clear().current_dir(cwd).stdin(Stdio::piped());
        shell.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("OPEN_FILE", file);
        let agent = Self(shell.spawn().unwrap());
        let opened = format!("/proc/{}/fd/3", agent.0.id());
        eventually("the agent runs", || fs::read_link(&opened).ok().filter(|open| open == file));
        agent
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[expect(clippy::disallowed_methods, reason = "the agents wrote some time before now, whenever that is")]
fn ago(ms: i64) -> Timestamp {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_millisecond(i64::try_from(now.as_millis()).unwrap() - ms)
}

/// Writes a file and sets its modification time to the agent's last message.
fn written(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(ago(AGO_MS).as_millisecond().unsigned_abs());
    fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

/// A session of Claude with this last record and this status in Claude's registry, and its process.
fn claude(machine: &Machine, n: u64, title: &str, last: Option<&Value>, status: &Value) -> (String, RunningAgent) {
    let (id, cwd) = (session(n), machine.home().join("work").join(n.to_string()));
    let agent = RunningAgent::start(machine, "claude", &cwd);
    let line = |record: u64, rest: &Value| {
        let mut line = json!({"uuid": uuid(n, record), "timestamp": ago(AGO_MS + 10_000 - 10_000 * record as i64).to_string(),
            "parentUuid": null, "isSidechain": false, "cwd": cwd, "sessionId": id, "version": "2.1.328", "gitBranch": "main"});
        line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        // Tokens are counted once per message id, so two sessions must not share an id.
        if let Some(id) = line["message"].get_mut("id") {
            *id = format!("msg_{n}").into();
        }
        format!("{line}\n")
    };
    let mut text = line(0, &json!({"type": "user", "message": {"role": "user", "content": title}}));
    text.extend(last.map(|last| line(1, last)));
    written(&machine.claude(&id), &text);
    let start_ticks = processes::start_ticks(agent.0.id()).unwrap().to_string();
    let at = ago(AGO_MS).as_millisecond();
    let mut entry = json!({"pid": agent.0.id(), "sessionId": id, "cwd": cwd, "startedAt": at - 60_000,
        "procStart": start_ticks, "version": "2.1.328", "kind": "interactive", "name": "p-cb", "nameSource": "derived",
        "updatedAt": at, "statusUpdatedAt": at});
    entry.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
    let registry = machine.home().join(format!(".claude/sessions/{}.json", agent.0.id()));
    written(&registry, &entry.to_string());
    (id, agent)
}

/// A message of the model, in Claude's format.
fn said(stop: &str, content: &Value) -> Value {
    json!({"type": "assistant", "requestId": "r", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-opus-5-5", "content": [content], "stop_reason": stop,
        "usage": {"input_tokens": 10, "output_tokens": 42}}})
}

/// A session of Codex that finished or whose key was rejected, and its process.
fn codex(machine: &Machine, id: &str, error: Option<&str>) -> RunningAgent {
    let cwd = machine.home().join("work").join(id);
    let at = |seconds: i64| ago(AGO_MS + 10_000 - 1_000 * seconds).to_string();
    let error = error.map(|status| {
        json!({"message": format!("unexpected status {status} Unauthorized"),
            "codex_error_info": {"http_connection_failed": {"http_status_code": status.parse::<u16>().unwrap()}}})
    });
    let lines = [
        json!({"timestamp": at(0), "type": "session_meta", "payload": {"id": id, "timestamp": at(0), "cwd": cwd,
            "originator": "codex-tui", "cli_version": "0.169.0", "source": "cli", "model_provider": "openai"}}),
        json!({"timestamp": at(1), "type": "event_msg", "payload": {"type": "task_started", "turn_id": "t1"}}),
        json!({"timestamp": at(2), "type": "event_msg", "payload": {"type": "user_message", "message": "Sort the imports"}}),
        json!({"timestamp": at(3), "type": "event_msg", "payload": {"type": "task_complete", "turn_id": "t1",
            "last_agent_message": if error.is_none() { json!("They are sorted.") } else { Value::Null }, "error": error}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let rollout = machine.home().join(format!(".codex/sessions/2026/11/20/rollout-2026-11-20T04-42-30-{id}.jsonl"));
    written(&rollout, &text);
    RunningAgent::with_open_file(machine, "codex", &cwd, &rollout)
}

const REJECTED: &str = "01a1f743-6024-7cc0-9a8f-a6c2af147fea";
const FINISHED: &str = "01a1f743-6024-7cc0-9a8f-a6c2af147feb";
pub(super) const ENDED: &str = "01a1f743-6024-7cc0-9a8f-a6c2af147fec";

/// Agents that wait for the user, one that is done, and the transcript of one that has ended.
pub(super) fn waiting_agents(machine: &Machine) -> Vec<RunningAgent> {
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make clean"}});
    let asks = json!({"status": "waiting", "waitingFor": "permission prompt"});
    let question = json!({"status": "waiting", "waitingFor": "input needed"});
    let mut login = said("stop_sequence", &json!({"type": "text", "text": "Invalid API key · Please run /login"}));
    login
        .as_object_mut()
        .unwrap()
        .extend(json!({"isApiErrorMessage": true, "error": "authentication_failed"}).as_object().unwrap().clone());
    let done = said("end_turn", &json!({"type": "text", "text": "done"}));
    let idle = json!({"status": "idle"});
    drop(codex(machine, ENDED, Some("401")));
    vec![
        claude(machine, 1, "Clean the build", Some(&said("tool_use", &call)), &asks).1,
        claude(machine, 2, "Choose a color", None, &question).1,
        claude(machine, 3, "Fix the login", Some(&login), &idle).1,
        claude(machine, 4, "Add a title", Some(&done), &idle).1,
        codex(machine, REJECTED, Some("401")),
        codex(machine, FINISHED, None),
    ]
}

fn open_findings(server: &Server) -> Vec<(String, String)> {
    let open = server.client.json("/api/v1/findings").unwrap();
    let mut found: Vec<(String, String)> = open["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            let id = finding["session_id"].as_str().unwrap();
            let session = server.client.json(&format!("/api/v1/sessions/{id}")).unwrap();
            let title = session["title"].as_str().unwrap_or_default().to_owned();
            (title, finding["kind"].as_str().unwrap().to_owned())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn only_current_findings_are_raised_when_the_server_starts() {
    let machine = Machine::new(PROGRAM);
    let agents = waiting_agents(&machine);
    let server = machine.serve();
    let expected = [
        ("Choose a color", "question"),
        ("Clean the build", "approval"),
        ("Fix the login", "auth"),
        ("Sort the imports", "auth"),
    ];
    let expected: Vec<(String, String)> = expected.map(|(title, kind)| (title.to_owned(), kind.to_owned())).into();
    let with_backlog = |found: &[(String, String)]| -> Vec<(String, String)> {
        found.iter().filter(|(_, kind)| kind != "approval_backlog").cloned().collect()
    };
    let raised = within(PATIENCE, || (with_backlog(&open_findings(&server)) == expected).then_some(()));
    assert!(raised.is_some(), "{:#?}", open_findings(&server));
    // After a restart no finding is reported twice, and none that ended while the server was down.
    let first = server.client.json("/api/v1/findings?state=all").unwrap();
    assert!(server.stop().success());
    let server = machine.serve();
    assert_eq!(with_backlog(&open_findings(&server)), expected);
    drop(agents);
    eventually("all findings are over", || with_backlog(&open_findings(&server)).is_empty().then_some(()));
    let all = server.client.json("/api/v1/findings?state=all").unwrap();
    let raised = |all: &Value| all["findings"].as_array().unwrap().iter().filter(|f| f["kind"] != "crash").count();
    assert_eq!(raised(&all), raised(&first), "{all:#}");
}

#[test]
fn a_session_is_listed_with_its_reason_until_its_process_ends() {
    let machine = Machine::new(PROGRAM);
    let agents = waiting_agents(&machine);
    let server = machine.serve();
    let row = |id: &str| {
        let listed = server.client.json("/api/v1/sessions?active=true").unwrap();
        let rows = listed["sessions"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["provider_session_id"] == id).map(|row| {
            let status = &row["status"];
            format!("{} {}", status["state"].as_str().unwrap(), status["reason"].as_str().unwrap())
        })
    };
    eventually("the rejected key is the reason", || (row(REJECTED).as_deref() == Some("waiting auth")).then_some(()));
    eventually("the finished one has a row", || (row(FINISHED).as_deref() == Some("idle quiet")).then_some(()));
    assert_eq!(row(&session(3)).as_deref(), Some("waiting auth"));
    assert_eq!(row(&session(4)).as_deref(), Some("waiting turn_complete"));
    assert_eq!(row(ENDED), None, "its process is gone");
    let rows = || {
        let listed = server.client.json("/api/v1/sessions?active=true").unwrap();
        listed["sessions"].as_array().unwrap().clone()
    };
    let each_has_one = within(PATIENCE, || (rows().len() == 6).then_some(()));
    assert!(each_has_one.is_some(), "{:#?}", rows());
    drop(agents);
    eventually("they are gone with their processes", || {
        [REJECTED, FINISHED].iter().all(|id| row(id).is_none()).then_some(())
    });
}

#[test]
fn the_first_ps_lists_all_sessions_or_reports_that_reading_continues() {
    let machine = Machine::new(PROGRAM);
    let _agents = waiting_agents(&machine);
    let output = machine.command(&["ps", "--json"]).output().unwrap();
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut rows: Vec<String> = page["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let status = &row["status"];
            format!("{} {}", row["title"].as_str().unwrap_or("-"), status["reason"].as_str().unwrap())
        })
        .collect();
    rows.sort();
    let words = String::from_utf8(output.stderr).unwrap();
    let expected = [
        "Add a title turn_complete",
        "Choose a color question",
        "Clean the build tool",
        "Fix the login auth",
        "Sort the imports auth",
        "Sort the imports quiet",
    ];
    // On a busy machine the server may still be reading, and says so.
    assert!(rows == expected || words.contains("reading"), "{rows:#?}\n{words}");
    let stopped = machine.command(&["serve", "--stop"]).output().unwrap();
    assert!(stopped.status.success());
}

/// The rows of `capture ps`: the agent's session id and the process of each session.
fn listed(server: &Server) -> Vec<(String, Option<u64>)> {
    let listed = server.client.json("/api/v1/sessions?active=true").unwrap();
    let row = |row: &Value| (row["provider_session_id"].as_str().unwrap().to_owned(), row["pid"].as_u64());
    listed["sessions"].as_array().unwrap().iter().map(row).collect()
}

/// Waits until these are the rows, and until they remain unchanged while processes are scanned.
#[track_caller]
fn stays_listed(server: &Server, expected: &[(&str, u32)]) {
    let expected: Vec<_> = expected.iter().map(|(id, pid)| ((*id).to_owned(), Some(u64::from(*pid)))).collect();
    let reached = within(PATIENCE, || (listed(server) == expected).then_some(()));
    assert!(reached.is_some(), "{:?} and not {expected:?}", listed(server));
    let changed = within(Duration::from_secs(5), || (listed(server) != expected).then(|| listed(server)));
    assert_eq!(changed, None, "instead of {expected:?}");
}

#[test]
fn a_resumed_session_is_listed_once_also_after_a_server_restart() {
    let machine = Machine::new(PROGRAM);
    drop(codex(&machine, FINISHED, None));
    let server = machine.serve();
    let _known = server.session(FINISHED);
    stays_listed(&server, &[]);
    // The session is resumed while no server runs: the agent writes nothing until the first prompt.
    assert!(server.stop().success());
    let again = codex(&machine, FINISHED, None);
    let server = machine.serve();
    stays_listed(&server, &[(FINISHED, again.0.id())]);
    assert!(server.stop().success());
    let server = machine.serve();
    stays_listed(&server, &[(FINISHED, again.0.id())]);
    // The session is resumed while a server runs, after its earlier process has ended.
    drop(again);
    stays_listed(&server, &[]);
    let again = codex(&machine, FINISHED, None);
    stays_listed(&server, &[(FINISHED, again.0.id())]);
}

#[test]
fn a_session_held_by_a_codex_daemon_is_listed_while_a_client_runs() {
    let machine = Machine::new(PROGRAM);
    drop(codex(&machine, FINISHED, None));
    let cwd = machine.home().join("work").join(FINISHED);
    let rollout = format!(".codex/sessions/2026/11/20/rollout-2026-11-20T04-42-30-{FINISHED}.jsonl");
    let rollout = machine.home().join(rollout);
    let daemon = RunningAgent::with_word(&machine, "codex", "app-server", &machine.home().join("daemon"), &rollout);
    let server = machine.serve();
    eventually("the daemon is known", || (server.session(FINISHED)["pid"] == daemon.0.id()).then_some(()));
    stays_listed(&server, &[]);
    let user = RunningAgent::with_word(&machine, "codex", "resume", &cwd, Path::new("/dev/null"));
    stays_listed(&server, &[(FINISHED, daemon.0.id())]);
    assert!(server.stop().success());
    let server = machine.serve();
    stays_listed(&server, &[(FINISHED, daemon.0.id())]);
    drop(user);
    stays_listed(&server, &[]);
}
