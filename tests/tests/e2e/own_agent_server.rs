//! Our own agent with a running server: who decides its calls, what the audit record contains, and the status the agent
//! reports.

use std::{
    fs,
    process::{Child, Stdio},
};

use serde_json::{Value, json};
use tests::{
    eventually,
    models::{
        Api,
        script::{Part, Script, Step, call, hold, say},
    },
    program::Server,
};

use super::{
    approvals::save_policy,
    own_agent::{House, Run, edit, tool},
};

fn bash(command: &str) -> Step {
    call(tool("bash", json!({ "command": command })))
}

/// Starts a prompt without a terminal.
fn start(house: &House, words: &[&str]) -> Child {
    let mut command = house.command(&[&["run"], words].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Run {
    Run::of(child.wait_with_output().unwrap())
}

/// The approval that waits for a decision.
#[track_caller]
fn asked(server: &Server) -> Value {
    eventually("our own agent waits for a decision", || {
        let list = server.client.json("/api/v1/approvals?state=pending")?;
        list["approvals"].as_array()?.iter().find(|a| a["answer"] == "protocol").cloned()
    })
}

#[track_caller]
fn done(house: &House, words: &[&str]) -> String {
    let output = house.machine.command(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The rows of the audit record.
fn record(house: &House) -> Vec<Value> {
    let exported = done(house, &["audit", "export"]);
    exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["row"].clone()).collect()
}

/// The events in the audit record and who decided them, in order.
fn recorded(house: &House) -> Vec<String> {
    let row = |row: &Value| match row["approval"]["by"].as_str() {
        Some(by) if row["what"] == "decided" || row["what"] == "granted" => {
            format!("{} {} by {by}", row["what"].as_str().unwrap(), row["approval"]["state"].as_str().unwrap())
        }
        _ => row["what"].as_str().unwrap().to_owned(),
    };
    record(house).iter().map(row).collect()
}

/// The only session of our own agent.
#[track_caller]
fn session(server: &Server) -> Value {
    eventually("the session is listed", || {
        let list = server.client.json("/api/v1/sessions?provider=capture&active=all")?;
        list["sessions"].as_array()?.first().cloned()
    })
}

/// Waits until the session has this state and reason, reported by this source.
#[track_caller]
fn is_in(server: &Server, state: &str, reason: &str, source: &str) -> Value {
    eventually(&format!("the session is {state} {reason} by {source}"), || {
        let session = session(server);
        let status = &session["status"];
        let evidence = status["evidence"].as_array()?.first()?["source"].as_str()?;
        (status["state"] == state && status["reason"] == reason && evidence == source).then_some(session)
    })
}

const POLICY: &str = "version = 1\n\
    [[rule]]\nname = \"touch\"\ndecision = \"allow\"\ncommand = [\"touch\", \"by-rule\"]\n\
    [[rule]]\nname = \"never\"\ndecision = \"deny\"\ncommand = [\"touch\", \"never\"]\nreason = \"not here\"\n";

#[test]
fn decisions_by_rules_and_by_remote_users_are_recorded() {
    let script = Script::default().lane(
        "work",
        [
            bash("touch by-rule"),
            bash("touch never"),
            bash("touch by-person"),
            call(tool("read", json!({ "path": "notes.txt" }))),
            call(edit()),
            call(tool("ask", json!({ "question": "Which one?", "options": ["left", "right"] }))),
            say("It is done."),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    save_policy(&house.machine, POLICY);
    let server = house.machine.serve();
    let run = start(&house, &["work"]);

    let request = asked(&server);
    let project = house.machine.project();
    assert_eq!(
        (&request["kind"], &request["command"], &request["exact"], &request["cwd"], &request["provider"]),
        (
            &json!("command"),
            &json!("touch by-person"),
            &json!(true),
            &json!(project.to_str().unwrap()),
            &json!("capture")
        ),
        "{request}"
    );
    assert!(project.join("by-rule").exists() && !project.join("by-person").exists());
    // The session itself reports that it waits.
    let waiting = is_in(&server, "waiting_approval", "tool", "runtime");
    assert_eq!(waiting["status"]["activity"], "touch by-person", "{waiting}");
    let id = waiting["id"].as_str().unwrap();
    assert!(done(&house, &["explain", id]).contains("runtime"));
    done(&house, &["approve", request["id"].as_str().unwrap()]);

    let request = asked(&server);
    assert_eq!((&request["kind"], &request["exact"]), (&json!("edit"), &json!(true)), "{request}");
    assert_eq!(request["paths"], json!([project.join("notes.txt").to_str().unwrap()]));
    // The approval is shown as the diff of the edit.
    let shown = done(&house, &["approvals", request["id"].as_str().unwrap()]);
    assert!(shown.contains("-second") && shown.contains("+2nd"), "{shown}");
    done(&house, &["deny", request["id"].as_str().unwrap(), "--message", "Leave the notes alone."]);

    let request = asked(&server);
    assert_eq!(request["kind"], "question", "{request}");
    is_in(&server, "waiting", "question", "runtime");
    let unanswered = house.machine.command(&["approve", request["id"].as_str().unwrap()]).output().unwrap();
    assert!(!unanswered.status.success(), "{unanswered:?}");
    done(&house, &["approve", request["id"].as_str().unwrap(), "--answer", "right"]);

    let run = ended(run);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "It is done.\n"), "{run:?}");
    assert!(project.join("by-person").exists() && !project.join("never").exists());
    assert_eq!(house.notes(), "first line\nsecond line\n");
    let results = house.model.results("work");
    assert!(results[1].contains("not here"), "{results:?}");
    assert!(results[4].contains("Leave the notes alone.") && results[5].contains("right"), "{results:?}");
    let rows = recorded(&house);
    let decided: Vec<&str> = rows.iter().map(String::as_str).filter(|row| row.starts_with("decided")).collect();
    assert_eq!(
        decided,
        [
            "decided allowed by policy",
            "decided denied by policy",
            "decided allowed by person",
            "decided denied by person",
            "decided allowed by person",
            // The read of the file.
            "decided allowed by policy"
        ],
        "{rows:?}"
    );
    assert_eq!(rows.iter().filter(|row| *row == "asked").count(), 3, "{rows:?}");
    assert!(done(&house, &["audit", "verify"]).contains("intact"));
    is_in(&server, "exited", "clean", "process");
    house.is_clean();
}

#[test]
fn the_first_answer_from_the_terminal_or_the_server_decides() {
    let script =
        Script::default().lane("work", [bash("touch elsewhere"), bash("touch here"), bash("touch none"), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let mut user = house.at_terminal("work");
    user.expect("touch elsewhere");
    user.expect("or say what to do instead: ");
    done(&house, &["approve", asked(&server)["id"].as_str().unwrap()]);
    // The unfinished line is ended before anything else is printed.
    assert_eq!(user.expect("allowed, as decided through the server"), "\r\ncapture: ");
    user.expect("touch here");
    // A key meant for the previous question does not answer this one.
    user.expect("This question replaced an earlier one: type the whole word.");
    user.expect("or say what to do instead: ");
    let here = asked(&server)["id"].as_str().unwrap().to_owned();
    user.types("y\n");
    user.expect("or what to do instead: ");
    user.types("yes\n");
    user.expect("touch none");
    user.expect("or say what to do instead: ");
    // A decision made at the terminal can no longer be made through the server.
    let late = house.machine.command(&["deny", &here]).output().unwrap();
    assert!(String::from_utf8_lossy(&late.stderr).contains("already allowed"), "{late:?}");
    user.types("n\n");
    assert_eq!(user.end().1, 0);
    let project = house.machine.project();
    let made = ["elsewhere", "here", "none"].map(|name| project.join(name).exists());
    assert_eq!(made, [true, true, false]);
    // A decision made at the terminal reaches the server after the call ran.
    let decided = eventually("three decisions are recorded", || {
        let rows = recorded(&house);
        let decided: Vec<String> = rows.into_iter().filter(|row| row.starts_with("decided")).collect();
        (decided.len() >= 3).then_some(decided)
    });
    assert_eq!(decided, ["decided allowed by person", "decided allowed by person", "decided denied by person"]);
    house.is_clean();
}

#[test]
fn the_agents_terminal_accepts_session_grants_and_denials_with_a_reason() {
    let script = Script::default().lane(
        "work",
        [bash("make nothing; true"), bash("make nothing; true"), bash("make all"), bash("touch b"), say("Done.")],
    );
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let mut user = house.at_terminal("work");
    user.expect("make nothing; true");
    user.expect("Allow it? [y]es, [s]ession, [r]ule, [n]o, or say what to do instead: ");
    user.types("s\n");
    // The same call is not asked again.
    user.expect("· bash make nothing; true");
    user.expect("· bash make nothing; true");
    user.expect("make all");
    user.expect("or say what to do instead: ");
    user.types("use make clean\n");
    user.expect("touch b");
    user.expect("or say what to do instead: ");
    user.types("Yes\n");
    assert_eq!(user.end().1, 0);
    assert!(house.machine.project().join("b").exists());
    let results = house.model.results("work");
    assert!(results[2].contains("denied by the user: use make clean"), "{results:?}");
    drop(server);
    house.is_clean();
}

#[test]
fn the_agents_terminal_saves_a_rule_only_after_confirmation() {
    let script = Script::default().lane("work", [bash("touch b"), bash("touch c"), bash("touch b"), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let _server = house.machine.serve();
    let policy = house.machine.policy_file();
    let mut user = house.at_terminal("work");
    user.expect("Allow it? [y]es, [s]ession, [r]ule, [n]o, or say what to do instead: ");
    user.types("r\n");
    user.expect("command = [\"touch\", \"b\"]");
    user.expect("Save it, and allow the call? Type yes or no: ");
    user.types("n\n");
    user.expect("Type yes, session, rule, no, or what to do instead: ");
    assert!(!policy.exists(), "a rule that was not agreed to is not saved");
    user.types("rule\n");
    user.expect("Save it, and allow the call? Type yes or no: ");
    user.types("yes\n");
    user.expect("saved in");
    let saved = std::fs::read_to_string(&policy).unwrap();
    assert!(saved.contains("command = [\"touch\", \"b\"]") && saved.contains("decision = \"allow\""), "{saved}");
    // A different command is asked; the same one is not, once the server has read the policy.
    user.expect("touch c");
    user.expect("or say what to do instead: ");
    user.types("n\n");
    user.expect("Done.");
    assert_eq!(user.end().1, 0);
    assert!(house.machine.project().join("b").exists());
}

#[test]
fn allowing_edits_for_the_session_is_audited_as_a_grant() {
    let script = Script::default().lane(
        "work",
        [
            call(tool("read", json!({ "path": "notes.txt" }))),
            call(edit()),
            call(tool("edit", json!({ "path": "notes.txt", "edits": [{ "old": "first", "new": "1st" }] }))),
            say("Done."),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let mut user = house.at_terminal("work");
    user.expect("or say what to do instead: ");
    // A rule for a file can be saved only at the terminal, and the server says so.
    let id = asked(&server)["id"].as_str().unwrap().to_owned();
    let refused = house.machine.command(&["approve", &id, "--scope", "rule", "--yes"]).output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("a rule can be saved only at the agent's terminal (`r`)"), "{refused}");
    user.types("s\n");
    user.expect("Done.");
    assert_eq!(user.end().1, 0);
    assert_eq!(house.notes(), "1st line\n2nd line\n");
    is_in(&server, "exited", "clean", "process");
    let rows = recorded(&house);
    for row in ["decided allowed by person", "granted allowed by person", "decided allowed by grant"] {
        assert!(rows.iter().any(|is| is == row), "{row}: {rows:?}");
    }
    house.is_clean();
}

#[test]
fn ending_a_turn_withdraws_its_question() {
    let script = Script::default()
        .lane("one", [bash("touch made"), say("never")])
        .lane("two", [bash("touch made"), say("never")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let is_withdrawn = |id: &str| {
        let closed = eventually("the request is closed", || {
            let list = server.client.json("/api/v1/approvals")?;
            let all = list["approvals"].as_array()?;
            all.iter().find(|one| one["id"] == *id && one["state"] != "pending").cloned()
        });
        assert_eq!((&closed["state"], &closed["allowed"]), (&json!("withdrawn"), &Value::Null), "{closed}");
    };
    // At the terminal.
    let mut user = house.at_terminal("one");
    user.expect("or say what to do instead: ");
    let id = asked(&server)["id"].as_str().unwrap().to_owned();
    user.types([3]);
    let shown = user.expect("interrupted; ");
    // The terminal may echo the key.
    assert!(shown.trim_start_matches('\u{3}').starts_with("\r\n"), "the open line was not ended: {shown:?}");
    assert_eq!(user.end().1, 130);
    is_withdrawn(&id);
    // Through the server.
    let run = start(&house, &["two"]);
    let id = asked(&server)["id"].as_str().unwrap().to_owned();
    let session =
        server.client.json(&format!("/api/v1/approvals/{id}")).unwrap()["session_id"].as_str().unwrap().to_owned();
    done(&house, &["send", &session, "--interrupt"]);
    ended(run);
    is_withdrawn(&id);
    let log = done(&house, &["log", "--since", "1h"]);
    assert!(log.contains("withdrawn: touch made") && !log.contains("answered in the agent"), "{log}");
    assert!(!log.contains("denied") && !log.contains("denial"), "{log}");
    assert!(!house.machine.project().join("made").exists());
}

#[test]
fn an_automatically_allowed_git_status_runs_no_repository_hooks() {
    let script = Script::default().lane("work", [bash("git status"), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let project = house.machine.project();
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git").args(arguments).current_dir(&project).status().unwrap();
        assert!(done.success());
    };
    git(&["init", "-q"]);
    let (hook, ran) = (project.join(".git/hooks/post-index-change"), project.join("ran"));
    fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", ran.display())).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(project.join("tracked"), "").unwrap();
    git(&["add", "tracked"]);
    fs::remove_file(&ran).unwrap();
    // A new timestamp, which makes `git status` rewrite the index.
    fs::write(project.join("tracked"), "").unwrap();
    let run = house.run(&["work"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let results = house.model.results("work");
    assert!(results[0].contains("tracked"), "it was not a question: {results:?}");
    assert!(!ran.exists(), "a hook of the repository ran");
}

#[test]
fn read_only_commands_run_unasked_and_are_recorded() {
    let script = Script::default().lane("work", [bash("pwd && ls"), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let run = house.run(&["work"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let results = house.model.results("work");
    assert!(results[0].contains(&*house.machine.project().to_string_lossy()), "{results:?}");
    let rows = eventually("the command is recorded", || {
        let rows: Vec<String> = recorded(&house).into_iter().filter(|row| row.starts_with("decided")).collect();
        (!rows.is_empty()).then_some(rows)
    });
    assert_eq!(rows, ["decided allowed by policy"]);
    drop(server);
    // The same without a server.
    let script = Script::default().lane("work", [bash("pwd"), bash("touch made"), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let run = house.run(&["work"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let results = house.model.results("work");
    assert!(results[0].contains(&*house.machine.project().to_string_lossy()), "{results:?}");
    assert!(!house.machine.project().join("made").exists());
}

#[test]
fn a_request_that_times_out_is_not_executed() {
    let script = Script::default().lane("work", [bash("touch made"), say("I could not.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let run = house.run(&["--wait", "1", "work"]);
    assert_eq!((run.code, run.out.as_str()), (Some(6), "I could not.\n"), "{run:?}");
    assert!(!house.machine.project().join("made").exists());
    let results = house.model.results("work");
    assert!(results[0].contains("was not answered in time"), "{results:?}");
    let said = "The agent wants to run a command: touch made; decide with `capture approve ";
    let (_, id) = run.err.split_once(said).unwrap_or_else(|| panic!("{run:?}"));
    let id = id.split('`').next().unwrap();
    assert!(run.err.contains(&format!("` or `capture deny {id}` within 1 s")), "{run:?}");
    let closed = eventually("the request is closed", || {
        let list = server.client.json("/api/v1/approvals")?;
        let all = list["approvals"].as_array()?;
        (all.len() == 1 && all[0]["state"] != "pending").then(|| all[0].clone())
    });
    assert_eq!((&closed["state"], &closed["allowed"]), (&json!("expired"), &Value::Null), "{closed}");
    // The lists show the server's id of the session, which differs from the id in its file.
    let id = session(&server)["id"].as_str().unwrap().to_owned();
    let table = done(&house, &["agent", "cache", &id[id.len() - 8..]]);
    assert!(table.starts_with("REQUEST"), "{table}");
}

#[test]
fn a_run_without_a_server_is_exited_for_the_next_server() {
    for (script, code, how) in
        [(vec![say("Done.")], 0, "clean"), (vec![Step::Fail { status: 401, retry_after: None, times: 9 }], 1, "failed")]
    {
        let house = House::new(Api::Anthropic, Script::default().lane("work", script));
        assert_eq!(house.run(&["work"]).code, Some(code));
        is_in(&house.machine.serve(), "exited", how, "process");
    }
}

#[test]
fn a_request_pending_when_the_server_dies_needs_the_users_answer() {
    // Without a user at a terminal.
    let script = Script::default().lane("work", [bash("touch made"), say("I could not.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let run = start(&house, &["--wait", "3", "work"]);
    asked(&server);
    server.kill();
    let run = ended(run);
    assert_eq!((run.code, run.out.as_str()), (Some(6), "I could not.\n"), "{run:?}");
    assert!(!house.machine.project().join("made").exists());
    assert!(house.model.results("work")[0].contains("was not answered in time"));
    // The next server learns that the request was withdrawn.
    let server = house.machine.serve();
    eventually("the request is closed", || {
        let list = server.client.json("/api/v1/approvals")?;
        let all = list["approvals"].as_array()?;
        (all.len() == 1 && all[0]["state"] != "pending" && all[0]["allowed"] != true).then_some(())
    });

    // With a user at a terminal.
    let script = Script::default().lane("work", [bash("touch made"), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let mut user = house.at_terminal("work");
    user.expect("touch made");
    user.expect("or say what to do instead: ");
    asked(&server);
    server.kill();
    user.types("y\n");
    assert_eq!(user.end().1, 0);
    assert!(house.machine.project().join("made").exists());
}

#[test]
fn an_approval_made_after_a_server_restart_reaches_the_agent() {
    let script = Script::default().lane("work", [bash("touch made"), say("Done.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let run = start(&house, &["work"]);
    let id = asked(&server)["id"].as_str().unwrap().to_owned();
    server.kill();
    let server = house.machine.serve();
    assert_eq!(asked(&server)["id"], id.as_str());
    // After a restart the request must be viewed again before it can be approved.
    eventually("it is allowed", || {
        house.machine.command(&["approve", &id]).output().unwrap().status.success().then_some(())
    });
    let run = ended(run);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "Done.\n"), "{run:?}");
    assert!(house.machine.project().join("made").exists());
}

#[test]
fn accept_edits_mode_and_the_edits_it_allows_are_audited_as_a_grant() {
    let script = Script::default().lane(
        "work",
        [
            call(tool("read", json!({ "path": "notes.txt" }))),
            call(tool("grep", json!({ "pattern": "line" }))),
            call(edit()),
            bash("touch never"),
            say("Done."),
        ],
    );
    let house = House::new(Api::Anthropic, script);
    save_policy(&house.machine, POLICY);
    let server = house.machine.serve();
    let mut user = house.at_terminal("--mode accept-edits work");
    user.expect("Done.");
    assert_eq!(user.end().1, 0);
    assert_eq!(house.notes(), "first line\n2nd line\n");
    is_in(&server, "exited", "clean", "process");
    assert_eq!(
        recorded(&house),
        [
            "granted allowed by person",
            "decided allowed by grant",
            "decided denied by policy",
            "decided allowed by policy"
        ]
    );
    let rows = record(&house);
    // Reads are counted and recorded in one row at the end of the turn.
    assert_eq!((&rows[3]["evidence"]["reads"], &rows[3]["approval"]["subject"]), (&json!(2), &json!("2 reads")));
    assert!(rows[3]["approval"]["rule"].is_string() && rows[3]["evidence"]["since"].is_string(), "{rows:?}");
    assert_eq!(rows[0]["approval"]["subject"], "accept-edits", "{rows:?}");
    assert_eq!(rows[1]["evidence"]["mode"], "accept-edits", "{rows:?}");
    assert_eq!(rows[2]["approval"]["rule"], "never", "{rows:?}");
    assert!(done(&house, &["audit", "show"]).contains("granted by you"));
    // `forget` also removes the session's rows from the record.
    let id = session(&server)["id"].as_str().unwrap().to_owned();
    done(&house, &["forget", &id, "--yes"]);
    assert!(!done(&house, &["audit", "export"]).contains("accept-edits"));
}

#[test]
fn our_own_agent_reports_its_status_to_the_server() {
    let script = Script::default()
        .lane(
            "work",
            [
                Step::Answer(vec![
                    Part::Until("answer".to_owned()),
                    Part::Say("I begin. ".to_owned()),
                    Part::Until("call".to_owned()),
                    Part::Call(tool(
                        "bash",
                        json!({ "command": "touch begun; until test -e go; do sleep 0.02; done" }),
                    )),
                ]),
                hold("It is", "end", " done."),
            ],
        )
        .lane("fail", [Step::Fail { status: 401, retry_after: None, times: 9 }]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let run = start(&house, &["work"]);
    is_in(&server, "running", "thinking", "runtime");
    house.model.tell("answer");
    is_in(&server, "running", "streaming", "runtime");
    house.model.tell("call");
    is_in(&server, "waiting_approval", "tool", "runtime");
    done(&house, &["approve", asked(&server)["id"].as_str().unwrap()]);
    is_in(&server, "running", "tool", "runtime");
    let listed = server.client.json("/api/v1/runs").unwrap();
    assert_eq!(listed["runs"][0]["provider"], "capture", "{listed}");
    assert_eq!(listed["runs"][0]["session_id"], session(&server)["id"], "{listed}");
    fs::write(house.machine.project().join("go"), "").unwrap();
    house.model.tell("end");
    assert_eq!(ended(run).code, Some(0));
    is_in(&server, "exited", "clean", "process");
    // The process may have ended before the server reads the end of the turn in its file.
    let findings = server.client.json("/api/v1/findings").unwrap();
    assert!(!findings.to_string().contains("open_work"), "{findings}");

    let failed = house.run(&["--continue", "fail"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let events = eventually("the failure is told", || {
        let all = server.events(session(&server)["id"].as_str().unwrap());
        all.iter().any(|event| event["source"] == "runtime" && event["data"]["reason"] == "auth").then_some(all)
    });
    // The end of a run reports that its prompt failed, not that the process crashed.
    is_in(&server, "exited", "failed", "process");
    let findings = eventually("the failure is found", || {
        let findings = server.client.json("/api/v1/findings?state=all")?;
        findings.to_string().contains("\"auth\"").then_some(findings)
    });
    assert!(!findings.to_string().contains("\"crash\""), "{findings}");
    assert!(failed.err.contains("the key is from the variable OWN_AGENT"), "{failed:?}");
    // The lists show the server's id; it also works for continuing the session.
    let id = session(&server)["id"].as_str().unwrap().to_owned();
    let again = house.run(&["--session", &id[id.len() - 8..], "fail"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    // The session reported these signals itself; they were not read from its file.
    let said = events.iter().filter(|event| event["source"] == "runtime" && event["kind"] == "signal");
    assert!(said.count() >= 5, "{events:?}");
}

/// A run that works until the model receives `go`, and the id of its session.
fn working(house: &House, server: &Server, words: &[&str]) -> (Child, String) {
    let run = start(house, words);
    eventually("the turn is running", || (session(server)["status"]["state"] == "running").then_some(()));
    (run, session(server)["id"].as_str().unwrap().to_owned())
}

fn until_told(word: &str) -> Step {
    let read = tool("read", json!({ "path": "notes.txt" }));
    Step::Answer(vec![Part::Say("I look.".to_owned()), Part::Until(word.to_owned()), Part::Call(read)])
}

#[test]
fn a_message_sent_during_a_turn_is_added_to_the_turn() {
    let house = House::new(Api::Anthropic, Script::default().lane("work", [until_told("go"), say("Done.")]));
    let server = house.machine.serve();
    let (run, id) = working(&house, &server, &["work"]);
    let told = done(&house, &["send", &id, "work only below src"]);
    assert!(told.contains("the running turn receives it"), "{told}");
    house.model.tell("go");
    let run = ended(run);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "Done.\n"), "{run:?}");
    assert!(run.err.contains("capture: a message for this turn: work only below src"), "{}", run.err);
    house.is_clean();
}

#[test]
fn a_prompt_queued_during_a_turn_runs_after_the_turn() {
    let script =
        Script::default().lane("work", [until_told("go"), say("Done.")]).lane("then", [say("And that as well.")]);
    let house = House::new(Api::Anthropic, script);
    let server = house.machine.serve();
    let (run, id) = working(&house, &server, &["work"]);
    let told = done(&house, &["queue", &id, "then this"]);
    assert!(told.contains("whose agent runs it after this turn: then this"), "{told}");
    house.model.tell("go");
    let run = ended(run);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "Done.\nAnd that as well.\n"), "{run:?}");
    assert!(run.err.contains("capture: the next prompt: then this"), "{}", run.err);
    assert!(done(&house, &["queue", "--all"]).contains("✓ delivered"));
    house.is_clean();
}

#[test]
fn a_run_without_a_terminal_can_be_stopped_but_not_renamed_or_attached() {
    let house = House::new(Api::Anthropic, Script::default().lane("work", [until_told("never"), say("Done.")]));
    let server = house.machine.serve();
    let (run, id) = working(&house, &server, &["work"]);
    let runs: Value = serde_json::from_str(&done(&house, &["runs", "--json"])).unwrap();
    let of_run = runs["runs"][0]["run"].as_str().or(runs["runs"][0]["id"].as_str()).unwrap().to_owned();
    for words in [&["rename", &of_run, "new"][..], &["restart", &of_run], &["attach", &of_run], &["rename", &id, "new"]]
    {
        let refused = Run::of(house.machine.command(words).output().unwrap());
        assert_eq!(refused.code, Some(5), "{words:?} {refused:?}");
        assert!(refused.err.contains("is `capture agent run`, which has no terminal"), "{}", refused.err);
        assert!(refused.err.contains(&format!("capture stop {of_run}")), "{}", refused.err);
    }
    let told = done(&house, &["stop", &of_run]);
    assert!(told.contains("was asked to end its turn"), "{told}");
    let run = ended(run);
    assert_eq!(run.code, Some(1), "{run:?}");
    let findings = done(&house, &["findings", "--json"]);
    assert!(!findings.contains("\"crash\""), "{findings}");
}
