//! Approvals with the real program: a hook that asks and waits, decisions of the policy and of the user, and the audit
//! record.

use std::{
    fs,
    io::Write,
    os::unix::fs::DirBuilderExt,
    process::{Child, Output, Stdio},
};

use serde_json::{Value, json};
use tests::{
    eventually,
    http::Client,
    program::{Machine, Server},
    terminal_user::User,
};

use super::PROGRAM;

const SESSION: &str = "5a6b7c8d-0000-4000-8000-000000000001";

/// A machine whose project is not a git repository, with a policy if one is given.
pub(super) fn machine(policy: Option<&str>) -> Machine {
    let machine = Machine::new(PROGRAM);
    if let Some(policy) = policy {
        save_policy(&machine, policy);
    }
    fs::write(machine.project().join("notes.txt"), "a\n").unwrap();
    machine
}

/// A server that knows the session's working directory.
pub(super) fn serve(machine: &Machine) -> Server {
    let server = machine.serve();
    for agent in ["claude", "codex", "gemini"] {
        let start = json!({"session_id": SESSION, "cwd": machine.project(), "hook_event_name": "SessionStart", "source": "startup"});
        assert_eq!(call(machine, agent, "0", &start).said(), None);
    }
    server
}

fn policy_file(machine: &Machine) -> std::path::PathBuf {
    machine.home().parent().unwrap().join("config/capture/policy.toml")
}

pub(super) fn save_policy(machine: &Machine, policy: &str) {
    let file = policy_file(machine);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(file.parent().unwrap()).unwrap();
    fs::write(file, policy).unwrap();
}

/// A running hook of an agent, which may wait for its answer.
pub(super) struct Hook(Child);

pub(super) fn call(machine: &Machine, agent: &str, wait: &str, payload: &Value) -> Hook {
    let mut hook = machine.command(&["hook", agent, "--approver", wait]);
    let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    Hook(hook)
}

impl Hook {
    /// Kills the hook, even while it waits.
    pub(super) fn end(mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }

    /// The hook's answer to the agent. A hook always exits with 0 and prints no errors.
    #[track_caller]
    pub(super) fn said(self) -> Option<Value> {
        let Output { status, stdout, stderr } = self.0.wait_with_output().unwrap();
        assert!(status.success());
        assert_eq!(String::from_utf8_lossy(&stderr), "");
        (!stdout.is_empty()).then(|| serde_json::from_slice(&stdout).unwrap())
    }

    #[track_caller]
    pub(super) fn decision(self) -> Value {
        let said = self.said().unwrap();
        assert_eq!(said["hookSpecificOutput"]["hookEventName"], "PermissionRequest");
        said["hookSpecificOutput"]["decision"].clone()
    }
}

fn event(machine: &Machine, name: &str, tool: &str, input: Value) -> Value {
    json!({"session_id": SESSION, "cwd": machine.project(), "hook_event_name": name, "tool_name": tool, "tool_input": input})
}

/// A request for permission to run a command.
pub(super) fn request(machine: &Machine, command: &str) -> Value {
    event(machine, "PermissionRequest", "Bash", json!({"command": command, "timeout": 5}))
}

/// Waits until the last approval is in this state.
#[track_caller]
fn approval(server: &Server, state: &str) -> Value {
    eventually(&format!("an approval is {state}"), || {
        let list = server.client.json(&format!("/api/v1/approvals?state={state}"))?;
        list["approvals"].as_array()?.first().cloned()
    })
}

/// The approval for which a hook waits.
#[track_caller]
pub(super) fn held(server: &Server) -> Value {
    eventually("a hook waits for an approval", || {
        let list = server.client.json("/api/v1/approvals?state=pending")?;
        list["approvals"].as_array()?.iter().find(|a| a["answer"] == "hook").cloned()
    })
}

fn said(machine: &Machine, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = machine.command(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[track_caller]
fn done(machine: &Machine, arguments: &[&str]) -> String {
    let (code, out, err) = said(machine, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    out
}

/// The events in the audit record, in order.
fn recorded(machine: &Machine) -> Vec<String> {
    let exported = done(machine, &["audit", "export"]);
    let rows = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| row["row"]["what"].as_str().unwrap().to_owned()).collect()
}

const READ_ONLY: &str = "version = 1\npreset = \"read-only\"\n";

#[test]
fn a_policy_allow_is_recorded_in_the_audit_record() {
    let machine = machine(Some(READ_ONLY));
    let server = serve(&machine);
    let decision = call(&machine, "claude", "30", &request(&machine, "ls -la")).decision();
    assert_eq!(decision, json!({"behavior": "allow"}));
    let allowed = approval(&server, "allowed");
    assert_eq!(
        (&allowed["by"], &allowed["via"], &allowed["command"]),
        (&json!("policy"), &json!("hook"), &json!("ls -la"))
    );
    assert!(allowed["rule"].as_str().unwrap().starts_with("read-only"), "{allowed}");
    eventually("it is recorded that the hook was told", || {
        (recorded(&machine) == ["decided", "delivered"]).then_some(())
    });
    // The next event of the agent.
    let after = event(&machine, "PostToolUse", "Bash", json!({"command": "ls -la", "timeout": 5}));
    assert_eq!(call(&machine, "claude", "30", &after).said(), None);
    assert!(done(&machine, &["audit", "verify"]).contains("the audit record is intact: 2 rows"));
    assert!(done(&machine, &["approvals", "--all"]).contains("allowed by rule "));
    assert!(done(&machine, &["audit", "show"]).contains("allowed by rule read-only/tools"));
}

#[test]
fn a_rewritten_command_is_sent_only_to_agents_that_accept_one() {
    let machine = machine(Some(READ_ONLY));
    fs::create_dir_all(machine.project().join(".git")).unwrap();
    fs::write(machine.project().join(".git/config"), "[core]\n\tbare = false\n").unwrap();
    let server = serve(&machine);
    let decision = call(&machine, "claude", "30", &request(&machine, "git status")).decision();
    let command = decision["updatedInput"]["command"].as_str().unwrap();
    assert!(command.contains("git --no-pager") && command.contains("core.fsmonitor="), "{command}");
    assert_eq!(decision["updatedInput"]["timeout"], 5, "the rest of the input is as it was");
    assert_eq!(approval(&server, "allowed")["rewrite"], command);
    // Codex accepts no rewritten command and does not report where a command would run, so it asks its user.
    assert_eq!(call(&machine, "codex", "0", &request(&machine, "ls")).said(), None);
    assert_eq!(call(&machine, "codex", "0", &request(&machine, "uname -a")).decision(), json!({"behavior": "allow"}));
    assert_eq!(call(&machine, "codex", "0", &request(&machine, "git status")).said(), None);
}

#[test]
fn the_policy_denies_with_a_reason() {
    let rule = "[[rule]]\nname = \"no push\"\ndecision = \"deny\"\ncommand = [\"git\", \"push\"]\nreason = \"I push myself.\"\n";
    let machine = machine(Some(&format!("version = 1\n{rule}")));
    let server = serve(&machine);
    for agent in ["claude", "codex"] {
        let decision = call(&machine, agent, "30", &request(&machine, "git push")).decision();
        assert_eq!(decision["behavior"], "deny");
        assert!(decision["message"].as_str().unwrap().contains("I push myself."), "{decision}");
    }
    assert_eq!(approval(&server, "denied")["rule"], "no push");
    // Gemini CLI calls its hook before it asks its user; the same rules apply.
    let before = |command| event(&machine, "BeforeTool", "run_shell_command", json!({"command": command}));
    let told = call(&machine, "gemini", "30", &before("git push")).said().unwrap();
    assert_eq!(told["decision"], "deny");
    assert_eq!(call(&machine, "gemini", "30", &before("git fetch")).said(), None);
    assert!(recorded(&machine).contains(&"forbidden".to_owned()));
}

#[test]
fn a_user_approves_or_denies_a_request() {
    let machine = machine(None);
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "touch x"));
    let waiting = held(&server);
    let id = waiting["id"].as_str().unwrap();
    assert_eq!(waiting["policy"]["decision"], "ask");
    let list = done(&machine, &["approvals"]);
    assert!(list.contains("▲ pending") && list.contains("command: touch x"), "{list}");
    let whole = done(&machine, &["approvals", id]);
    assert!(
        whole.contains("command, exactly as requested (7 characters)") && whole.contains("    touch x\n"),
        "{whole}"
    );
    // The start of the short id is enough, and so is its end.
    let short = &id[id.len() - 8..];
    for part in [&short[..5], &short[3..]] {
        assert!(done(&machine, &["approvals", part]).contains("touch x"), "{part} of {id}");
    }
    let out = done(&machine, &["approve", short]);
    assert!(out.contains("allowed"), "{out}");
    assert_eq!(hook.decision(), json!({"behavior": "allow"}));
    let (code, _, err) = said(&machine, &["approve", id]);
    assert!(code == Some(5) && err.contains(&format!("request {id} was already allowed")), "{err}");

    let hook = call(&machine, "codex", "60", &request(&machine, "touch y"));
    let waiting = held(&server);
    let id = waiting["id"].as_str().unwrap().to_owned();
    // Codex shows no dialog while its hook waits; the session is reported as waiting all the same.
    eventually("the session waits for an approval", || {
        let session = server.client.json(&format!("/api/v1/sessions/{}", waiting["session_id"].as_str()?))?;
        let evidence = session["status"]["evidence"].as_array()?.iter().any(|e| e["source"] == "runtime");
        (session["status"]["state"] == "waiting_approval" && evidence).then_some(())
    });
    done(&machine, &["deny", &id, "--message", "use z"]);
    assert_eq!(hook.decision(), json!({"behavior": "deny", "message": "use z"}));
    eventually("it is all recorded", || {
        (recorded(&machine) == ["asked", "decided", "delivered", "asked", "decided", "delivered"]).then_some(())
    });
    let show = done(&machine, &["audit", "show", "--json"]);
    let uid = rustix::process::getuid().as_raw();
    assert!(show.contains(&format!("\"uid\":{uid}}}")), "who decided is recorded: {show}");
    let (code, _, err) = said(&machine, &["approve", "NOSUCHONE"]);
    let wanted = "no permission request `NOSUCHONE`; `capture approvals --all` lists them, and 3 characters from the start or end of an id are enough";
    assert!(code == Some(4) && err.contains(wanted), "{err}");
}

#[test]
fn a_request_too_long_to_keep_cannot_be_allowed() {
    let machine = machine(None);
    let server = serve(&machine);
    let command = format!("echo first\n{}rm -rf ~ # the end", "x=1\n".repeat(300_000));
    let hook = call(&machine, "claude", "600", &request(&machine, &command));
    let asked = approval(&server, "pending");
    let id = asked["id"].as_str().unwrap();
    // The agent shows its own dialog at once.
    assert_eq!(hook.said(), None);

    let listed = done(&machine, &["approvals"]);
    let bytes = command.len();
    assert!(listed.contains(&format!("{bytes} bytes in all")), "{listed}");
    let shown = done(&machine, &["approvals", id]);
    for words in ["INCOMPLETE: capture kept 655", "of the 1200029 bytes", "echo first", "rm -rf ~ # the end", "risk"] {
        assert!(shown.contains(words), "{words} is missing in {}…", &shown[..600]);
    }
    let (code, _, why) = said(&machine, &["approve", id]);
    assert_eq!(code, Some(5), "{why}");
    assert!(why.contains("so you cannot allow it here"), "{}", &why[why.len().saturating_sub(600)..]);
    assert_eq!(approval(&server, "pending")["id"], asked["id"]);
}

#[test]
fn a_request_of_100000_lines_is_shown_completely() {
    let machine = machine(None);
    let server = serve(&machine);
    let command = format!("echo first\n{}rm -rf ~ # the end", "x=1\n".repeat(100_000));
    let hook = call(&machine, "claude", "600", &request(&machine, &command));
    let asked = held(&server);
    assert_eq!((&asked["exact"], asked["command"].as_str()), (&json!(true), Some(command.as_str())));
    let id = asked["id"].as_str().unwrap();
    let shown = done(&machine, &["approvals", id]);
    // Equal lines are folded and counted.
    assert!(shown.contains("echo first") && shown.contains("99999") && shown.contains("rm -rf ~ # the end"), "{shown}");
    done(&machine, &["deny", id]);
    assert_eq!(hook.decision()["behavior"], "deny");
}

#[test]
fn input_typed_before_the_prompt_does_not_approve_a_request() {
    let machine = machine(None);
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "make deploy"));
    held(&server);
    // The shell reads the first line; the second is typed before the question appears.
    let mut user = User::start(&machine, "read -r go; $PROGRAM approve");
    user.types("go\ny\n");
    user.expect("make deploy");
    user.expect("Allow this? [y/N] ");
    user.types("n\n");
    assert_eq!(user.end().1, 5);
    let mut user = User::start(&machine, "$PROGRAM approve");
    user.expect("Allow this? [y/N] ");
    user.types("y\n");
    assert_eq!(user.end().1, 0);
    assert_eq!(hook.decision()["behavior"], "allow");

    // A command too long for the screen requires typing the whole word.
    let long: String = (0..60).map(|n| format!("echo line {n}\n")).collect();
    let hook = call(&machine, "claude", "60", &request(&machine, &long));
    held(&server);
    for (typed, code) in [("y\n", 5), ("\n", 5), ("yes\n", 0)] {
        let mut user = User::start(&machine, "$PROGRAM approve");
        user.expect("rows, more than this screen: scroll up, and type the whole word.");
        user.expect("Allow this? [yes/No] ");
        user.types(typed);
        assert_eq!(user.end().1, code, "{typed:?}");
    }
    assert_eq!(hook.decision()["behavior"], "allow");
}

#[test]
fn questions_and_plans_are_answered() {
    let machine = machine(None);
    let server = serve(&machine);
    let input = json!({"questions": [{"question": "Which color?", "options": [{"label": "Red"}, {"label": "Blue"}]}]});
    let hook = call(&machine, "claude", "60", &event(&machine, "PermissionRequest", "AskUserQuestion", input));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    let (code, _, err) = said(&machine, &["approve", &id]);
    assert!(code == Some(5) && err.contains("this request is a question: answer it with --answer"), "{err}");
    done(&machine, &["approve", &id, "--answer", "Blue"]);
    assert_eq!(hook.decision()["updatedInput"]["answers"], json!({"Which color?": "Blue"}));

    // At a terminal the user is asked, and may skip the question.
    let input = json!({"questions": [
        {"question": "Which color?", "options": [{"label": "Red"}, {"label": "Blue"}]},
        {"question": "Which parts?", "options": [{"label": "Top"}, {"label": "Rim"}, {"label": "Base"}], "multiSelect": true},
    ]});
    let hook = call(&machine, "claude", "60", &event(&machine, "PermissionRequest", "AskUserQuestion", input));
    held(&server);
    let mut user = User::start(&machine, "$PROGRAM approve");
    user.expect("Your answer to \"Which color?\"? [1-2 or its text; Enter for none] ");
    user.types("\n");
    assert_eq!(user.end().1, 5);
    let mut user = User::start(&machine, "$PROGRAM approve");
    user.expect("Enter for none] ");
    user.types("2\n");
    user.expect("Which parts?\"? [some of 1-3, separated by commas; Enter for none] ");
    user.types("1, Base\n");
    assert_eq!(user.end().1, 0);
    let answers = json!({"Which color?": "Blue", "Which parts?": "Top, Base"});
    assert_eq!(hook.decision()["updatedInput"]["answers"], answers);

    let plan = event(&machine, "PermissionRequest", "ExitPlanMode", json!({"plan": "1. go"}));
    let hook = call(&machine, "claude", "60", &plan);
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    done(&machine, &["approve", &id]);
    assert_eq!(hook.decision(), json!({"behavior": "allow", "updatedInput": {"plan": "1. go"}}));

    // A plan without text cannot be approved here, because the answer must repeat the text.
    let plan = event(&machine, "PermissionRequest", "ExitPlanMode", json!({}));
    let hook = call(&machine, "claude", "60", &plan);
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    let (code, _, err) = said(&machine, &["approve", &id]);
    assert!(code == Some(5) && err.contains("answer in the agent itself"), "{err}");
    done(&machine, &["deny", &id]);
    assert_eq!(hook.decision()["behavior"], "deny");
}

#[test]
fn a_waiting_hook_returns_when_the_user_answers_in_the_agent() {
    let machine = machine(None);
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "touch x"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    // The user answered the dialog: the tool ran.
    let ran = event(&machine, "PostToolUse", "Bash", json!({"command": "touch x", "timeout": 5}));
    assert_eq!(call(&machine, "claude", "60", &ran).said(), None);
    assert_eq!(hook.said(), None);
    assert_eq!(approval(&server, "answered_elsewhere")["id"], id.as_str());
    let (code, _, err) = said(&machine, &["deny", &id]);
    assert!(code == Some(5) && err.contains("was already answered in the agent"), "{err}");
}

#[test]
fn a_hook_without_a_server_or_valid_policy_gets_no_automatic_answer() {
    let machine = machine(Some(READ_ONLY));
    assert_eq!(call(&machine, "claude", "60", &request(&machine, "ls")).said(), None);
    // An invalid policy allows nothing.
    save_policy(&machine, "version = 1\npreset = \"read-only\"\nsurprise = true\n");
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "ls -l"));
    let waiting = held(&server);
    assert_eq!(waiting["policy"]["rule"], "refused", "{waiting}");
    server.kill();
    // The hook continues to wait and connects to the restarted server.
    let server = serve(&machine);
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    assert_eq!(waiting["id"], id.as_str());
    let (code, _, err) = said(&machine, &["approve", &id]);
    assert!(code == Some(5) && err.contains("restarted since the request"), "{err}");
    done(&machine, &["approve", &id]);
    assert_eq!(hook.decision(), json!({"behavior": "allow"}));
}

#[test]
fn a_hook_that_times_out_leaves_the_question_to_the_agent() {
    let machine = machine(None);
    let server = serve(&machine);
    assert_eq!(call(&machine, "claude", "0", &request(&machine, "touch x")).said(), None);
    let pending = approval(&server, "pending");
    assert_eq!(pending["answer"], Value::Null);
    let (code, _, err) = said(&machine, &["approve", pending["id"].as_str().unwrap()]);
    assert!(code == Some(5) && err.contains("answer it in the agent itself"), "{err}");
}

#[test]
fn a_session_scoped_approval_covers_only_that_session_and_command() {
    let machine = machine(None);
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "make"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    done(&machine, &["approve", &id, "--scope", "session"]);
    assert_eq!(hook.decision(), json!({"behavior": "allow"}));
    assert_eq!(call(&machine, "claude", "60", &request(&machine, "make")).decision(), json!({"behavior": "allow"}));
    assert_eq!(approval(&server, "allowed")["by"], "grant");
    let mut other = request(&machine, "make");
    other["session_id"] = json!("5a6b7c8d-0000-4000-8000-000000000002");
    for asked in [other, request(&machine, "make install")] {
        let hook = call(&machine, "claude", "60", &asked);
        let id = held(&server)["id"].as_str().unwrap().to_owned();
        done(&machine, &["deny", &id]);
        assert_eq!(hook.decision()["behavior"], "deny");
    }
}

#[test]
fn the_session_scope_is_accepted_exactly_for_requests_marked_as_repeatable() {
    let machine = machine(None);
    let server = serve(&machine);
    let notes = machine.project().join("notes.txt");
    let moves = "cd a && cd b && cd c && cd d && cd e && make";
    for (tool, input, repeatable) in [
        ("Bash", json!({"command": "make"}), true),
        ("Bash", json!({"command": "make $TARGET"}), false),
        ("Bash", json!({"command": moves}), false),
        ("Write", json!({"file_path": notes, "content": "b\n"}), false),
        ("Edit", json!({"file_path": notes, "old_string": "a", "new_string": "b"}), false),
        ("WebFetch", json!({"url": "https://example.com/", "prompt": "read"}), true),
    ] {
        let mut asked = request(&machine, "");
        (asked["tool_name"], asked["tool_input"]) = (json!(tool), input.clone());
        let hook = call(&machine, "claude", "60", &asked);
        let id = held(&server)["id"].as_str().unwrap().to_owned();
        let marked = || server.client.json(&format!("/api/v1/approvals/{id}"))?["repeatable"].as_bool();
        if repeatable {
            eventually("its files are known", || marked().filter(|repeatable| *repeatable));
        }
        let (code, _, err) = said(&machine, &["approve", &id, "--scope", "session"]);
        assert_eq!(code == Some(0), repeatable, "{tool} {input}: {err}");
        if !repeatable {
            assert_eq!(marked(), None, "{tool} {input}");
            assert!(err.contains("cannot be allowed for the session"), "{err}");
            done(&machine, &["deny", &id]);
        }
        assert_eq!(hook.decision()["behavior"], if repeatable { "allow" } else { "deny" });
    }
}

#[test]
fn a_rule_can_apply_only_to_labeled_sessions() {
    let rule =
        "[[rule]]\nname = \"scratch\"\ndecision = \"allow\"\ncommand = [\"make\"]\nlabels = { kind = \"scratch\" }\n";
    let machine = machine(Some(&format!("version = 1\n{rule}")));
    let server = serve(&machine);
    assert_eq!(call(&machine, "claude", "0", &request(&machine, "make")).said(), None);
    let session = approval(&server, "pending")["session_id"].as_str().unwrap().to_owned();
    let out = done(&machine, &["label", &session, "kind=scratch", "owner=me"]);
    assert_eq!(out, "kind=scratch\nowner=me\n");
    assert_eq!(call(&machine, "claude", "0", &request(&machine, "make")).decision(), json!({"behavior": "allow"}));
    done(&machine, &["label", &session, "kind-"]);
    assert_eq!(call(&machine, "claude", "0", &request(&machine, "make")).said(), None);
    let (code, _, err) = said(&machine, &["label", &session, "odd"]);
    assert!(code == Some(2) && err.contains("expected KEY=VALUE or KEY-, got `odd`"), "{err}");
}

#[test]
fn a_rule_is_saved_only_after_it_was_shown_and_confirmed() {
    let machine = machine(None);
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "make check"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    let (code, _, err) = said(&machine, &["approve", &id, "--scope", "rule"]);
    assert!(code == Some(5) && err.contains("--yes"), "{err}");
    let (code, _, err) = said(&machine, &["approve", &id, "--scope", "rule", "--yes"]);
    assert!(code == Some(0) && err.contains("[[rule]]") && err.contains("make"), "{err}");
    assert_eq!(hook.decision(), json!({"behavior": "allow"}));
    assert!(fs::read_to_string(policy_file(&machine)).unwrap().contains("[[rule]]"));
    done(&machine, &["policy", "check"]);
    assert_eq!(
        call(&machine, "claude", "60", &request(&machine, "make check")).decision(),
        json!({"behavior": "allow"})
    );
    assert_eq!(approval(&server, "allowed")["by"], "policy");
}

#[test]
fn an_approval_is_refused_if_the_script_changed_since_the_request() {
    let machine = machine(None);
    let script = machine.project().join("build.sh");
    fs::write(&script, "echo harmless\n").unwrap();
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "bash ./build.sh"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    fs::write(&script, "echo other\n").unwrap();
    let (code, _, err) = said(&machine, &["approve", &id]);
    assert!(code == Some(5) && err.contains("build.sh changed since the request"), "{err}");
    let (code, _, err) = said(&machine, &["approve", &id, "--scope", "rule", "--yes"]);
    assert!(code == Some(5) && err.contains("no rule can allow"), "{err}");
    done(&machine, &["approve", &id]);
    assert_eq!(hook.decision(), json!({"behavior": "allow"}));
}

#[test]
fn fields_of_a_hook_request_never_decide_it() {
    let machine = machine(None);
    let server = serve(&machine);
    let mut asked = request(&machine, "touch x");
    let decided = json!({"behavior": "allow", "decision": "allow", "allowed": true, "state": "allowed", "by": "policy",
        "rule": "x", "scope": "session", "approval_id": "A", "permissionDecision": "allow", "permission_mode": "bypassPermissions"});
    for (name, value) in decided.as_object().unwrap() {
        asked[name] = value.clone();
        asked["tool_input"][name] = value.clone();
    }
    let hook = call(&machine, "claude", "60", &asked);
    let waiting = held(&server);
    assert_eq!((&waiting["state"], &waiting["by"]), (&json!("pending"), &Value::Null));
    // Deciding requires the right to decide, and a body that contains only a decision.
    let path = format!("/api/v1/approvals/{}/decision", waiting["id"].as_str().unwrap());
    for body in [
        r#"{"decision":"allow","by":"policy"}"#,
        r#"{"decision":"yes"}"#,
        "{}",
        r#"{"decision":"deny","scope":"session"}"#,
    ] {
        let answer = server.client.send("POST", &path, Some(body), tests::PATIENCE).unwrap();
        assert_eq!(answer.status, 400, "{body}");
    }
    for scope in ["ingest", "read"] {
        let token = fs::read_to_string(machine.data().join("tokens").join(scope)).unwrap().trim().to_owned();
        let client = Client { address: server.client.address.clone(), token };
        let answer = client.send("POST", &path, Some(r#"{"decision":"allow"}"#), tests::PATIENCE).unwrap();
        assert_eq!(answer.status, 403, "{scope}");
    }
    assert_eq!(held(&server)["state"], "pending");
    done(&machine, &["deny", waiting["id"].as_str().unwrap()]);
    assert_eq!(hook.decision()["behavior"], "deny");
}

#[test]
fn a_delivery_that_was_replaced_in_the_spool_is_not_answered() {
    // Another process of the same user replaces the delivery while the server is stopped.
    let machine = machine(Some(READ_ONLY));
    let server = serve(&machine);
    let pid = server.pid().to_string();
    let signal =
        |name: &str| assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    let hook = call(&machine, "claude", "2", &request(&machine, "rm -rf notes.txt"));
    let spool = machine.data().join("spool");
    let delivery = eventually("the delivery is in the spool", || {
        let asks = |path: &std::path::PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("rm -rf"));
        fs::read_dir(&spool).ok()?.flatten().map(|e| e.path()).find(asks)
    });
    let text = fs::read_to_string(&delivery).unwrap().replace("rm -rf notes.txt", "ls");
    fs::write(&delivery, text).unwrap();
    signal("-CONT");
    assert_eq!(hook.said(), None);
    assert_eq!(approval(&server, "pending")["command"], "ls");
}

#[test]
fn a_rule_does_not_allow_reads_outside_the_initial_workspace() {
    let machine = machine(Some(READ_ONLY));
    let _server = serve(&machine);
    let elsewhere = machine.home().parent().unwrap().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("a"), "x").unwrap();
    let mut asked = request(&machine, "cat a");
    asked["cwd"] = json!(elsewhere);
    assert_eq!(call(&machine, "claude", "0", &asked).said(), None);
    assert_eq!(call(&machine, "claude", "0", &asked).said(), None, "nor because it was there before");
}

#[test]
fn a_rule_does_not_allow_unexpected_tools_or_arguments() {
    let machine = machine(Some(READ_ONLY));
    let server = serve(&machine);
    let more = json!({"command": "ls", "dangerouslyDisableSandbox": true});
    for (tool, input) in
        [("Bash", more), ("PowerShell", json!({"command": "ls"})), ("Bash", json!({"command": ["ls"]}))]
    {
        let asked = event(&machine, "PermissionRequest", tool, input);
        assert_eq!(call(&machine, "claude", "0", &asked).said(), None, "{tool}");
    }
    let id = server.client.json("/api/v1/approvals").unwrap()["approvals"][2]["id"].as_str().unwrap().to_owned();
    let whole = done(&machine, &["approvals", &id]);
    assert!(whole.contains("and dangerouslyDisableSandbox (4 characters):\n    true\n"), "{whole}");
}

#[test]
fn deny_without_an_id_shows_the_request_and_asks_for_confirmation() {
    let machine = machine(None);
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "touch unseen"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    let (code, _, err) = said(&machine, &["deny"]);
    assert!(code == Some(2) && err.contains(&id[id.len() - 8..]), "{err}");
    for (answer, status) in [("n\n", 5), ("y\n", 0)] {
        let mut user = User::start(&machine, "$PROGRAM deny");
        user.expect("touch unseen");
        user.expect("Deny this? [y/N] ");
        assert_eq!(held(&server)["id"], id.as_str(), "nothing is decided yet");
        user.types(answer);
        assert_eq!(user.end().1, status);
    }
    assert_eq!(hook.decision()["behavior"], "deny");
}

#[test]
fn policy_test_prints_the_same_json_for_one_command_and_for_stdin() {
    let machine = machine(Some("version = 1\npreset = \"read-only\"\n"));
    for (line, decision) in [("ls -la", "allow"), ("rm -r x", "ask"), ("ls &&", "ask")] {
        let in_project = |arguments: &[&str]| {
            let mut command = machine.command(arguments);
            command.current_dir(machine.project());
            command
        };
        let one = in_project(&["policy", "test", "--json", line]).output().unwrap();
        let mut one: Value = serde_json::from_slice(&one.stdout).unwrap();
        one.as_object_mut().unwrap().remove("schema_version");
        let mut many = in_project(&["policy", "test", "--json", "--stdin"]);
        let mut many = many.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(many.stdin.take().unwrap(), "{}", json!({"id": 7, "cmd": line})).unwrap();
        let many = many.wait_with_output().unwrap();
        let mut many: Value = serde_json::from_slice(&many.stdout).unwrap();
        assert_eq!(one["decision"], decision, "{line}: {one}");
        assert_eq!(many.as_object_mut().unwrap().remove("id"), Some(json!(7)));
        assert_eq!(one, many, "{line}");
    }
}
