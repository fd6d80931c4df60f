//! `capture resume`: the right command for each agent, in the right directory, and runs that a reboot cut off.

use std::fs;

use serde_json::Value;
use tests::{
    eventually,
    program::Machine,
    recording::Recording,
    terminal_user::end_all,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// A minimal Claude: it prints its second argument and registers its session; when resumed, it prints its arguments.
pub(super) const CLAUDE: &str = r#"
case "$*" in *--resume*) echo "args: $*"; pwd; exit 0;; esac
echo "$2"
start=$(cut -d' ' -f22 /proc/$$/stat)
entry="$HOME/.claude/sessions/$$.json"
printf '{"pid":%s,"sessionId":"%s","cwd":"%s","startedAt":1795149430665,"procStart":"%s","version":"2.1.328",' \
    "$$" "$1" "$PWD" "$start" > "$entry.new"
printf '"kind":"interactive","status":"busy","updatedAt":1795149430665,"statusUpdatedAt":1795149430665}' >> "$entry.new"
mv "$entry.new" "$entry"
read -r end
exit 0
"#;

/// Asserts that the program ends with this code; returns its output on both streams.
#[track_caller]
fn says(machine: &Machine, arguments: &[&str], code: i32) -> String {
    let output = machine.command(arguments).current_dir(machine.project()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

/// Ends the processes of the machine when the test ends.
pub(super) struct Runs<'a>(pub(super) &'a Machine);

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        end_all(&self.0.data());
    }
}

#[test]
fn runs_interrupted_by_a_reboot_are_offered_for_resuming() {
    let machine = Machine::new(PROGRAM);
    let _runs = Runs(&machine);
    machine.configure("autostart = false\n");
    machine.agent_script(events::Provider::Claude, CLAUDE);
    let mut server = machine.serve();
    assert!(says(&machine, &["resume", "--last"], 4).contains("no run was interrupted by a reboot or a crash"));
    let cwd = machine.project();
    let begin = |server: &tests::program::Server, n: u64, asks: &str| {
        let id = session(n);
        let path = machine.claude(&id);
        append(&path, &prompt(&id, &uuid(n, 1), cwd.to_str().unwrap(), asks));
        append(&path, &answer(&id, &uuid(n, 2), cwd.to_str().unwrap(), "one moment"));
        let started = says(&machine, &["run", "--detach", "--json", "--", "claude", &id], 0);
        let run = serde_json::from_str::<Value>(&started).unwrap()["run"].as_str().unwrap().to_owned();
        eventually("the run hosts the session", || (server.session(&id)["run_id"] == *run).then_some(()));
        (id, run)
    };
    let (first, _) = begin(&server, 1, "mend the roof");
    assert!(
        says(&machine, &["resume", "--last"], 4).contains("no run was interrupted by a reboot or a crash"),
        "it \
                                                               runs"
    );
    assert!(says(&machine, &["resume", &first], 5).contains("is running"));
    // Simulates a reboot: no process ends cleanly.
    server.kill();
    end_all(&machine.data());
    server = machine.serve();
    eventually("its process is gone", || server.session(&first)["pid"].is_null().then_some(()));
    let command = |id: &str| format!("claude --resume {id} --model claude-opus-5-5");
    let text = says(&machine, &["resume", "--last", "--print"], 0);
    assert_eq!(text, format!("cd {} && {}\n", cwd.display(), command(&first)));
    let text = says(&machine, &["resume", "--last"], 0);
    assert!(text.contains(&format!("args: --resume {first} --model claude-opus-5-5")), "the only one: {text}");
    // Both are listed with their prompts. A session whose agent exited normally, or that was resumed, is not.
    let (second, _) = begin(&server, 2, "paint the door");
    let (fourth, _) = begin(&server, 4, "mend the fence");
    let (third, run) = begin(&server, 3, "sweep the yard");
    says(&machine, &["send", &run, "--keys", "enter"], 0);
    // Lists show the end slightly before it is committed.
    eventually("its end is committed", || {
        let events = server.events(&third);
        let is_clean = |event: &Value| event["kind"] == "status.changed" && event["data"]["reason"] == "clean";
        events.iter().any(is_clean).then_some(())
    });
    server.kill();
    end_all(&machine.data());
    server = machine.serve();
    eventually("its process is gone", || server.session(&second)["pid"].is_null().then_some(()));
    let text = says(&machine, &["resume", "--last"], 0);
    assert_eq!(text.lines().count(), 2, "{text}");
    for (id, asks) in [(&second, "door"), (&fourth, "fence")] {
        let line = text.lines().find(|line| line.contains(&command(id))).unwrap_or_else(|| panic!("{id}: {text}"));
        assert!(line.contains("proj") && line.contains(asks), "{line}");
    }
    let json: Value = serde_json::from_str(&says(&machine, &["resume", "--last", "--json"], 0)).unwrap();
    let offered: Vec<&Value> = json["sessions"].as_array().unwrap().iter().map(|offer| &offer["command"][2]).collect();
    assert!(offered.len() == 2 && offered.iter().any(|id| **id == *fourth), "{json:#}");
    let text = says(&machine, &["resume", &second], 0);
    assert!(text.contains(&format!("args: --resume {second} --model claude-opus-5-5")), "{text}");
    assert!(text.contains(cwd.to_str().unwrap()), "{text}");
}

#[test]
fn a_restarted_run_resumes_its_session() {
    let machine = Machine::new(PROGRAM);
    let _runs = Runs(&machine);
    machine.configure("autostart = false\n");
    machine.agent_script(events::Provider::Claude, CLAUDE);
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project());
    let path = machine.claude(&id);
    append(&path, &prompt(&id, &uuid(1, 1), cwd.to_str().unwrap(), "mend the roof"));
    append(&path, &answer(&id, &uuid(1, 2), cwd.to_str().unwrap(), "one moment"));
    let start = || {
        let started = says(&machine, &["run", "--detach", "--json", "--name", "roof", "--", "claude", &id], 0);
        let run = serde_json::from_str::<Value>(&started).unwrap()["run"].as_str().unwrap().to_owned();
        eventually("the run hosts the session", || (server.session(&id)["run_id"] == *run).then_some(()));
    };
    start();
    let text = says(&machine, &["restart", "roof"], 0);
    let line = format!("run roof has ended; resuming it with `claude --resume {id} --model claude-opus-5-5` in ");
    assert!(text.replace("\n  ", " ").contains(&line), "{text}");
    // Restarted by its session id, without resuming.
    start();
    let text = says(&machine, &["restart", &id, "--fresh"], 0);
    assert!(text.replace("\n  ", " ").contains(&format!("run roof has ended; starting `claude {id}` in ")), "{text}");
    // A run that cannot be started again is not stopped.
    let gone = machine.project().join("gone");
    fs::create_dir(&gone).unwrap();
    let started =
        machine.command(&["run", "--detach", "--name", "gone", "--", "sleep", "9999"]).current_dir(&gone).output();
    assert!(started.unwrap().status.success());
    fs::remove_dir(&gone).unwrap();
    assert!(
        says(&machine, &["restart", "gone"], 4).contains("run gone was not stopped: its directory no longer exists")
    );
    assert!(says(&machine, &["runs"], 0).contains("gone"));
}

#[test]
fn resume_reports_a_changed_branch_and_fails_if_the_directory_is_gone() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, cwd) = (session(1), machine.project().join("repo"));
    fs::create_dir_all(cwd.join(".git")).unwrap();
    let path = machine.claude(&id);
    append(&path, &prompt(&id, &uuid(1, 1), cwd.to_str().unwrap(), "go"));
    server.caught_up(&id, &path);
    let head = |branch: &str| fs::write(cwd.join(".git/HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    head("main");
    assert!(!says(&machine, &["resume", &id, "--print"], 0).contains("branch"));
    head("feature/x");
    let text = says(&machine, &["resume", &id, "--print"], 0);
    assert!(text.contains("is on branch feature/x; the session worked on main"), "{text}");
    let json: Value = serde_json::from_str(&says(&machine, &["resume", &id, "--json"], 0)).unwrap();
    assert_eq!((json["cwd"].as_str(), json["command"][0].as_str()), (cwd.to_str(), Some("claude")));
    fs::remove_dir_all(&cwd).unwrap();
    assert!(says(&machine, &["resume", &id, "--print"], 4).contains("no longer exists"));
}

#[test]
fn each_agent_resumes_with_its_own_command() {
    let table = [
        ("claude/S01-hello", "claude --resume ID --model claude-opus-5-5"),
        ("codex/S01-hello", "codex resume ID --model gpt-6-sol"),
        ("opencode/S01-hello", "opencode -s ID"),
        ("pi/S01-hello", "pi --session ID"),
        ("pi/O02-omp-tools", "omp --session ID"),
        ("qwen/S03-shell-approve", "qwen --resume ID"),
        ("gemini/S01-hello", ""),
    ];
    super::providers::assert_rows_of_read_agents(&table.map(|(name, _)| name));
    for (name, command) in table {
        let machine = Machine::new(PROGRAM);
        Recording::load(name).lay_down(&machine.home(), &machine.project());
        let server = machine.serve();
        let found = eventually(name, || {
            let page = server.client.json("/api/v1/sessions?active=all")?;
            page["sessions"].as_array()?.iter().find(|s| s["turns"].as_u64() > Some(0) && !s["cwd"].is_null()).cloned()
        });
        let id = found["provider_session_id"].as_str().unwrap();
        if command.is_empty() {
            let text = says(&machine, &["resume", id, "--print"], 5);
            assert!(text.contains("deletes the file of a session") && text.contains("capture handoff"), "{text}");
            continue;
        }
        let text = says(&machine, &["resume", id, "--print"], 0);
        let expected = format!("cd {} && {}", found["cwd"].as_str().unwrap(), command.replace("ID", id));
        assert!(text.starts_with(&expected), "{name}: {text}, not {expected}");
    }
}
