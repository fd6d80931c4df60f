//! Removed data is gone permanently: from every file in the data directory and from everything clients see.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, Server, a_moment},
    recording::Recording,
    transcript::{answer, append, prompt, session, uuid},
};

use super::{
    PROGRAM,
    approvals::call,
    resume::{CLAUDE, Runs},
};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Assembled at run time so that no log of the test contains the whole word.
fn planted() -> String {
    ["plantedz", "xqword"].concat()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found
}

/// The files below a directory that contain this word.
fn holds(directory: &Path, word: &str) -> Vec<PathBuf> {
    let has = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    };
    files(directory).into_iter().filter(has).collect()
}

#[track_caller]
fn gone(machine: &Machine, words: &[&str]) {
    for word in words {
        assert_eq!(holds(&machine.data(), word), Vec::<PathBuf>::new(), "{word}");
    }
}

/// Asserts that the program ends with this code; returns its output.
#[track_caller]
fn says(machine: &Machine, arguments: &[&str], code: i32) -> String {
    let output = machine.command(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

#[track_caller]
fn has(text: &str, words: &[&str]) {
    assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
}

/// Writes a session of a few turns with this word in its prompts and answers, short and long.
fn write(machine: &Machine, n: u64, word: &str) -> (String, PathBuf) {
    let (id, cwd) = (session(n), machine.project());
    let (path, cwd) = (machine.claude(&id), cwd.to_str().unwrap());
    for turn in 0..4 {
        let long = format!("{word} {}", "some text that is long ".repeat(if turn % 2 == 0 { 200 } else { 1 }));
        append(&path, &prompt(&id, &uuid(n, 4 * turn), cwd, &format!("{word} asks {turn} {long}")));
        append(&path, &answer(&id, &uuid(n, 4 * turn + 1), cwd, &format!("{long} {word} answers {turn}")));
    }
    (id, path)
}

fn known(server: &Server, id: &str) -> bool {
    server.client.get(&format!("/api/v1/sessions/{id}")).is_ok_and(|answer| answer.status == 200)
}

fn finds(server: &Server, word: &str, matches: u64) {
    eventually(word, || {
        let page = server.client.json(&format!("/api/v1/search?q={word}"))?;
        (page["matches"].as_u64()? >= matches).then_some(())
    });
}

/// Waits until the server has processed everything written so far: it lists a session written later.
fn looked(machine: &Machine, server: &Server, n: u64) {
    let (id, path) = write(machine, n, "innocent");
    server.caught_up(&id, &path);
}

#[test]
fn no_trace_of_a_forgotten_session_remains() {
    let machine = Machine::new(PROGRAM);
    let word = planted();
    let server = machine.serve();
    let (id, path) = write(&machine, 1, &word);
    let (other, other_path) = write(&machine, 2, "innocent");
    // The request of a hook, its decision, and labels.
    let command = json!({"command": format!("echo {word}")});
    let hook = json!({
        "session_id": id, "cwd": machine.project(), "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": command
    });
    let asked = call(&machine, "claude", "30", &hook);
    let approval = eventually("an approval", || {
        let page = server.client.json("/api/v1/approvals?state=pending")?;
        page["approvals"][0]["id"].as_str().map(str::to_owned)
    });
    says(&machine, &["deny", &approval, "--message", &format!("no {word}")], 0);
    drop(asked.said());
    says(&machine, &["label", &id, &format!("about={word}")], 0);
    server.caught_up(&id, &path);
    server.caught_up(&other, &other_path);
    finds(&server, &word, 4);
    // One backup in the data directory, and one elsewhere.
    let elsewhere = machine.home().join("kept.db");
    for file in [machine.data().join("own.db"), elsewhere.clone()] {
        says(&machine, &["backup", file.to_str().unwrap()], 0);
    }
    // A finding for the long wait may appear at any time, so findings are left out.
    let events = |session: &str| {
        let all = server.events(session).into_iter();
        all.filter(|event| event["kind"] != "finding").collect::<Vec<_>>()
    };
    let before = events(&other);
    let own_id = server.session(&id)["id"].as_str().unwrap().to_owned();
    assert!(!holds(&machine.data(), &word).is_empty());

    let text = says(&machine, &["forget", &id, "--dry-run"], 0);
    has(&text, &["would remove 1 session", "own.db", "a backup that still contains this data", "kept.db"]);
    has(&says(&machine, &["forget", &id], 5), &["--yes"]);
    assert!(known(&server, &id));
    has(&says(&machine, &["forget", &id, "--yes"], 0), &["removed 1 session"]);

    gone(&machine, &[&word, &id, &own_id, &approval]);
    assert!(elsewhere.exists());
    assert!(!known(&server, &id) && !known(&server, &own_id));
    assert_eq!(events(&other), before, "the other session is as it was");
    has(&says(&machine, &["audit", "verify"], 0), &["intact"]);
    has(&says(&machine, &["audit", "show"], 0), &["forgot"]);

    // Nothing is read again: not after an append, from a copy, after a restart or into a new database.
    append(&path, &prompt(&id, &uuid(1, 90), "/", &format!("{word} again")));
    looked(&machine, &server, 3);
    fs::copy(&path, machine.claude(&session(77))).unwrap();
    looked(&machine, &server, 6);
    gone(&machine, &[&word]);
    assert!(!known(&server, &id));
    server.stop();
    let server = machine.serve();
    append(&path, &prompt(&id, &uuid(1, 91), "/", &format!("{word} once more")));
    looked(&machine, &server, 4);
    gone(&machine, &[&word]);
    assert!(!known(&server, &id) && known(&server, &other));
    server.stop();
    for file in ["capture.db", "capture.db-wal", "capture.db-shm"] {
        fs::remove_file(machine.data().join(file)).ok();
    }
    // Without the database a copy under another name is a new session.
    fs::remove_file(machine.claude(&session(77))).unwrap();
    let server = machine.serve();
    server.caught_up(&other, &other_path);
    looked(&machine, &server, 5);
    gone(&machine, &[&word]);
    assert!(!known(&server, &id));
}

#[test]
fn a_forgotten_session_is_erased_even_if_the_server_is_killed() {
    let machine = Machine::new(PROGRAM);
    let word = planted();
    let (keep, keep_path) = write(&machine, 500, "innocent");
    let mut server = machine.serve();
    server.caught_up(&keep, &keep_path);
    for round in 0..6_u64 {
        let (id, path) = write(&machine, round + 1, &word);
        server.caught_up(&id, &path);
        let answer = server.client.send("DELETE", &format!("/api/v1/sessions/{id}"), None, PATIENCE).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        a_moment(round * 15);
        server.kill();
        server = machine.serve();
        assert!(!known(&server, &id), "round {round}");
        eventually("it is erased", || {
            let status = server.client.json("/api/v1/retention")?;
            (status["erasing"] == 0).then_some(())
        });
        gone(&machine, &[&word, &id]);
    }
    assert!(known(&server, &keep));
    has(&says(&machine, &["audit", "verify"], 0), &["intact"]);
}

#[test]
fn forgetting_a_session_also_forgets_its_sub_agents() {
    let machine = Machine::new(PROGRAM);
    Recording::load("claude/S12-subagent").lay_down(&machine.home(), &machine.project());
    let server = machine.serve();
    let (parent, children) = eventually("the sub-agents", || {
        let page = server.client.json("/api/v1/sessions?active=all")?;
        let sessions = page["sessions"].as_array()?;
        let child = |session: &&Value| session["parent_session_id"].is_string();
        let children: Vec<Value> = sessions.iter().filter(child).cloned().collect();
        let id = &children.first()?["parent_session_id"];
        let parent = sessions.iter().find(|session| session["id"] == *id)?.clone();
        // All of them are read.
        let done = |session: &Value| session["turns"].as_u64() > Some(0);
        (done(&parent) && children.iter().all(done)).then_some((parent, children))
    });
    let ids = |session: &Value| ["id", "provider_session_id"].map(|id| session[id].as_str().unwrap().to_owned());
    let text = says(&machine, &["forget", &ids(&parent)[0], "--dry-run"], 0);
    has(&text, &[&format!("would remove {} sessions", 1 + children.len())]);
    has(&says(&machine, &["forget", &ids(&parent)[0], "--yes"], 0), &["removed"]);
    for session in children.iter().chain([&parent]) {
        for id in ids(session) {
            assert!(!known(&server, &id), "{id}");
            gone(&machine, &[&id]);
        }
    }
    // A sub-agent started later is removed as well.
    let folder = machine.home().join(".claude/projects");
    let of_parent =
        files(&folder).into_iter().find(|file| file.file_stem().is_some_and(|n| *n == *ids(&parent)[1])).unwrap();
    let late = of_parent.with_extension("").join("subagents/agent-a99.jsonl");
    let line = prompt(&ids(&parent)[1], &uuid(9, 1), "/p", "help me lately");
    fs::write(&late, line.replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"a99\"")).unwrap();
    looked(&machine, &server, 6);
    assert!(!known(&server, "a99"));
    gone(&machine, &["help me lately"]);
}

#[test]
fn forgetting_a_session_deletes_its_recording() {
    let machine = Machine::new(PROGRAM);
    let _runs = Runs(&machine);
    machine.configure("autostart = false\n");
    machine.agent_script(events::Provider::Claude, CLAUDE);
    let server = machine.serve();
    let word = planted();
    let started = |n: u64, shows: &str| {
        let (id, path) = write(&machine, n, shows);
        server.caught_up(&id, &path);
        let text = says(&machine, &["run", "--detach", "--json", "--record", "--", "claude", &id, shows], 0);
        let run = serde_json::from_str::<Value>(&text).unwrap()["run"].as_str().unwrap().to_owned();
        eventually("the run hosts the session", || (server.session(&id)["run_id"] == *run).then_some(()));
        eventually("its recording", || {
            let recording = machine.data().join(format!("recordings/{run}.cast"));
            fs::read_to_string(recording).ok()?.contains(shows).then_some(())
        });
        says(&machine, &["send", &run, "--keys", "enter"], 0);
        eventually("its end", || (server.session(&id)["status"]["state"] == "exited").then_some(()));
        (id, run)
    };
    let (id, run) = started(1, &word);
    let (_, other) = started(2, "innocent");
    has(&says(&machine, &["forget", &id, "--dry-run"], 0), &[&format!("recordings/{run}.cast")]);
    has(&says(&machine, &["forget", &id, "--yes"], 0), &["removed "]);
    // The host of the run removes its own files when it ends.
    eventually("nothing is left", || {
        [&word, &id].iter().all(|word| holds(&machine.data(), word).is_empty()).then_some(())
    });
    assert!(!machine.data().join(format!("recordings/{run}.cast")).exists());
    assert!(machine.data().join(format!("recordings/{other}.cast")).exists(), "the other one's stays");
}

#[test]
fn large_texts_survive_their_transcript_if_configured() {
    for keeps in [false, true] {
        let machine = Machine::new(PROGRAM);
        machine.configure(&format!("[retention]\nkeep_large_texts = {keeps}\n"));
        let (id, path) = (session(1), machine.claude(&session(1)));
        let large = "a line of a large text\n".repeat(20_000);
        append(&path, &prompt(&id, &uuid(1, 1), "/p", "tell me all"));
        append(&path, &answer(&id, &uuid(1, 2), "/p", &format!("{large}{}", planted())));
        let server = machine.serve();
        server.caught_up(&id, &path);
        fs::remove_file(&path).unwrap();
        looked(&machine, &server, 2);
        let text = says(&machine, &["export", &id, "--format", "md"], 0);
        assert_eq!(text.matches("a line of a large text").count() >= 20_000, keeps, "{}", text.len());
        has(&says(&machine, &["forget", &id, "--yes"], 0), &["removed 1 session"]);
        gone(&machine, &["a line of a large text", &planted()]);
    }
}

#[test]
fn a_stream_snapshot_omits_a_deleted_session() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, path) = write(&machine, 1, "word");
    server.caught_up(&id, &path);
    let mut events = server.client.events("/api/v1/stream", None).unwrap();
    let mut snapshot = || loop {
        let event = events.next(PATIENCE).unwrap();
        if event.name == "snapshot" {
            return event.data.to_string();
        }
    };
    assert!(snapshot().contains(&id));
    let answer = server.client.send("DELETE", &format!("/api/v1/sessions/{id}"), None, PATIENCE).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!snapshot().contains(&id));
}

#[test]
fn pruned_sessions_are_not_read_again() {
    let machine = Machine::new(PROGRAM);
    let (old, old_path) = write(&machine, 1, "ancient");
    let server = machine.serve();
    server.caught_up(&old, &old_path);
    has(&says(&machine, &["prune"], 2), &["--older-than"]);
    for nothing in [["--older-than", "9999d"], ["--project", "/elsewhere"], ["--larger-than", "1TB"]] {
        has(&says(&machine, &["prune", nothing[0], nothing[1], "--yes"], 0), &["removed 0 sessions"]);
    }
    // The timestamps in the lines are old.
    has(&says(&machine, &["prune", "--older-than", "1h", "--dry-run"], 0), &["would remove 1 session"]);
    assert!(known(&server, &old));
    has(&says(&machine, &["prune", "--older-than", "1h", "--yes"], 0), &["removed 1 session"]);
    assert!(!known(&server, &old));
    server.stop();
    let server = machine.serve();
    append(&old_path, &prompt(&old, &uuid(1, 95), "/", "still ancient"));
    looked(&machine, &server, 2);
    assert!(!known(&server, &old));
    assert_eq!(holds(&machine.data(), "still ancient"), Vec::<PathBuf>::new());
}

#[test]
fn restoring_a_backup_restores_sessions_and_the_search_index() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (first, path) = write(&machine, 1, "zanzibar");
    server.caught_up(&first, &path);
    let file = machine.home().join("kept.db");
    let file = file.to_str().unwrap();
    has(&says(&machine, &["backup", file], 0), &["1 session"]);
    has(&says(&machine, &["backup", file], 1), &["kept.db", "--force"]);
    has(&says(&machine, &["restore", file, "--yes"], 5), &["serve --stop"]);
    server.stop();
    // The agent deletes its own file after a while.
    fs::remove_file(&path).unwrap();
    fs::remove_file(machine.data().join("capture.db")).unwrap();
    has(&says(&machine, &["restore", file, "--yes"], 0), &["restored 1 session"]);
    let server = machine.serve();
    assert!(known(&server, &first));
    finds(&server, "zanzibar", 8);
    has(&says(&machine, &["audit", "verify"], 0), &["intact"]);
}

/// The backup does not contain the exit, and no server saw the process end.
#[test]
fn a_session_newer_than_the_restored_backup_is_read_as_exited() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (first, path) = write(&machine, 1, "zanzibar");
    server.caught_up(&first, &path);
    let file = machine.home().join("kept.db");
    let file = file.to_str().unwrap();
    says(&machine, &["backup", file], 0);
    server.stop();
    let (id, cwd) = (session(2), machine.project());
    let path = machine.claude(&id);
    for line in
        [prompt(&id, &uuid(2, 0), cwd.to_str().unwrap(), "go"), answer(&id, &uuid(2, 1), cwd.to_str().unwrap(), "done")]
    {
        let mut line: Value = serde_json::from_str(&line).unwrap();
        line["entrypoint"] = "sdk-cli".into();
        line["timestamp"] = "2026-01-05T10:00:00.000Z".into();
        append(&path, &format!("{line}\n"));
    }
    says(&machine, &["restore", file, "--yes"], 0);
    let server = machine.serve();
    server.caught_up(&id, &path);
    eventually("it has exited", || {
        let session = server.client.json(&format!("/api/v1/sessions/{id}"))?;
        (session["status"]["state"] == "exited" && session["status"]["reason"] == "clean").then_some(())
    });
}

#[test]
fn a_session_outlives_its_transcript() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (id, path) = write(&machine, 1, "zanzibar");
    server.caught_up(&id, &path);
    has(&says(&machine, &["show", &id, "--all"], 0), &["zanzibar answers 3"]);
    fs::remove_file(&path).unwrap();
    looked(&machine, &server, 2);
    server.stop();
    let server = machine.serve();
    looked(&machine, &server, 3);
    has(&says(&machine, &["show", &id, "--all"], 0), &["zanzibar answers 3"]);
    let text = says(&machine, &["export", &id, "--format", "md"], 0);
    assert!(text.matches("some text that is long").count() >= 200 * 4, "{}", text.len());
    finds(&server, "zanzibar", 8);
}

#[test]
fn resume_runs_the_agents_command_in_the_sessions_directory() {
    let machine = Machine::new(PROGRAM);
    machine.agent_script(events::Provider::Claude, "#!/bin/sh\necho \"args: $*\"\npwd\n");
    let server = machine.serve();
    let (id, path) = write(&machine, 1, "word");
    server.caught_up(&id, &path);
    let cwd = machine.project();
    let text = says(&machine, &["resume", &id, "--print"], 0);
    assert_eq!(text, format!("cd {} && claude --resume {id} --model claude-opus-5-5\n", cwd.display()));
    let text = says(&machine, &["resume", &id], 0);
    has(&text, &[&format!("args: --resume {id} --model claude-opus-5-5"), cwd.to_str().unwrap()]);
    has(&says(&machine, &["resume", "nobody"], 4), &["no session"]);
}

/// Another program locks the database, so that writes wait.
struct Held(Option<store::Writer>);

impl Held {
    fn hold(machine: &Machine) -> Self {
        // The same database through another directory, whose lock is free.
        let beside = machine.home().join("beside");
        fs::create_dir_all(&beside).unwrap();
        let link = beside.join("capture.db");
        if !link.exists() {
            std::os::unix::fs::symlink(machine.data().join("capture.db"), link).unwrap();
        }
        let mut writer = store::Writer::open(&beside).unwrap();
        writer.begin().unwrap();
        Self(Some(writer))
    }

    /// Releases the database, and waits until the server has written again.
    fn release(mut self, machine: &Machine, server: &Server, n: u64) {
        let mut writer = self.0.take().unwrap();
        writer.rollback();
        drop(writer);
        looked(machine, server, n);
        looked(machine, server, n + 1);
    }
}

#[test]
fn a_removal_reported_as_failed_is_not_executed_later() {
    let machine = Machine::new(PROGRAM);
    // A session written while the server runs counts as active, whatever its timestamps.
    let (id, path) = write(&machine, 1, "ancient");
    let server = machine.serve();
    server.caught_up(&id, &path);
    let own_id = server.session(&id)["id"].as_str().unwrap().to_owned();
    let prune = json!({"older_than_s": 3_600}).to_string();
    let held = Held::hold(&machine);
    let nothing = "nothing was removed";
    has(&says(&machine, &["prune", "--older-than", "1h", "--yes"], 1), &[nothing]);
    has(&says(&machine, &["forget", &id, "--yes"], 1), &[nothing]);
    for (method, route, body) in [
        ("DELETE", format!("/api/v1/sessions/{id}"), None),
        ("POST", "/api/v1/retention/prune".to_owned(), Some(prune.as_str())),
    ] {
        let answer = server.client.send(method, &route, body, PATIENCE).unwrap();
        assert_eq!(answer.status, 503, "{}", answer.text());
        has(&answer.text(), &[nothing]);
    }
    // The client disconnects before it gets an answer.
    for (method, route, body) in [
        ("DELETE", format!("/api/v1/sessions/{own_id}"), None),
        ("POST", "/api/v1/retention/prune".to_owned(), Some(prune.as_str())),
    ] {
        assert!(server.client.send(method, &route, body, Duration::from_millis(300)).is_err());
    }
    held.release(&machine, &server, 10);
    assert!(known(&server, &id), "it failed, and is not done later");
    server.stop();
    let server = machine.serve();
    looked(&machine, &server, 12);
    assert!(known(&server, &id), "nor after a restart");
    // A repeated request succeeds, and so does one that waits for a short time.
    let held = Held::hold(&machine);
    let waiting = machine.command(&["forget", &id, "--yes"]).spawn().unwrap();
    a_moment(500);
    held.release(&machine, &server, 14);
    let ended = waiting.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(!known(&server, &id));
    gone(&machine, &[&id]);
}

#[test]
fn a_partially_indexed_session_is_removed_from_the_index() {
    let machine = Machine::new(PROGRAM);
    let mut server = machine.serve();
    let (keep, keep_path) = write(&machine, 500, "innocent");
    server.caught_up(&keep, &keep_path);
    for round in 0..4_u64 {
        let id = session(round + 1);
        let word = |n: u64| format!("plantedr{round}n{n:05}");
        let lines: String = (0..3_000)
            .map(|n| prompt(&id, &uuid(round + 1, n), "/p", &format!("{} plantedplan alpha", word(n))))
            .collect();
        append(&machine.claude(&id), &lines);
        eventually("it is read", || known(&server, &id).then_some(()));
        a_moment(round * 100);
        if round % 2 == 0 {
            has(&says(&machine, &["forget", &id, "--yes"], 0), &["removed 1 session"]);
        } else {
            let answer = server.client.send("DELETE", &format!("/api/v1/sessions/{id}"), None, PATIENCE).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            let page = server.client.json("/api/v1/search?q=plantedplan").unwrap();
            assert_eq!(page["matches"], 0, "round {round}: at once");
            server.kill();
            server = machine.serve();
            eventually("it is erased", || (server.client.json("/api/v1/retention")?["erasing"] == 0).then_some(()));
        }
        // Later sessions advance the index.
        looked(&machine, &server, 600 + round);
        finds(&server, "innocent", 8 * (round + 2));
        for q in ["plantedplan".to_owned(), word(0), word(1_500), word(2_999), "%22plantedplan%20alpha%22".to_owned()] {
            let page = server.client.json(&format!("/api/v1/search?q={q}")).unwrap();
            assert_eq!(
                (&page["matches"], page["hits"].as_array().unwrap().len()),
                (&json!(0), 0),
                "round {round}: {q}"
            );
        }
        gone(&machine, &["plantedplan", &word(0), &word(2_999), &id]);
    }
}

#[test]
fn forget_accepts_any_id_of_a_pruned_session() {
    let machine = Machine::new(PROGRAM);
    // A session written while the server runs counts as active, whatever its timestamps.
    let written: Vec<_> = (1..=4).map(|n| write(&machine, n, &planted())).collect();
    let mut server = machine.serve();
    let mut pruned = Vec::new();
    for (id, path) in &written {
        server.caught_up(id, path);
        pruned.push((id.clone(), server.session(id)["id"].as_str().unwrap().to_owned()));
    }
    has(&says(&machine, &["prune", "--older-than", "1h", "--yes"], 0), &["removed 4 sessions"]);
    let elsewhere = says(&machine, &["forget", "nobody", "--yes"], 4);
    has(&elsewhere, &["no session"]);
    for (n, (id, own_id)) in pruned.iter().enumerate() {
        if n == 2 {
            server.stop();
            server = machine.serve();
        }
        let given = [id.as_str(), own_id, &own_id[own_id.len() - 8..], id][n];
        assert!(!holds(&machine.data(), id).is_empty(), "prune leaves where its file was read up to");
        has(&says(&machine, &["forget", given, "--dry-run"], 0), &["would remove 1 session", "pruned before"]);
        assert!(!holds(&machine.data(), id).is_empty(), "a dry run has no effect");
        if n == 3 {
            let answer = server.client.send("DELETE", &format!("/api/v1/sessions/{given}"), None, PATIENCE).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            eventually("it is erased", || (server.client.json("/api/v1/retention")?["erasing"] == 0).then_some(()));
        } else {
            has(&says(&machine, &["forget", given, "--yes"], 0), &["removed 1 session"]);
        }
        gone(&machine, &[id, own_id]);
        has(&says(&machine, &["forget", given, "--yes"], 4), &["no session"]);
    }
    gone(&machine, &[&planted()]);
    has(&says(&machine, &["audit", "verify"], 0), &["intact"]);
    append(&machine.claude(&pruned[0].0), &prompt(&pruned[0].0, &uuid(1, 90), "/", &format!("{} again", planted())));
    looked(&machine, &server, 20);
    gone(&machine, &[&planted(), &pruned[0].0]);
}
