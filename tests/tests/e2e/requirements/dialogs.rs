//! Dialogs known only from a screen: no rule answers them, and keys are sent only to agents of a version whose dialogs
//! were tested.

use std::fs;

use serde_json::{Value, json};
use tests::{eventually, program::Server};

use super::RequirementsMachine;
use crate::e2e::terminal::dialogs::RULES;

/// Asks for permission to run `ls`, and writes the first key it receives to a file. `$0` is its version, `$1` the file.
const ASKER: &str = r#"stty raw -echo
printf '\033[2J\033[Hasker v%s\r\n+--\r\n$ ls\r\nProceed?\r\n> 1. Yes\r\n  2. No' "$0"
dd bs=1 count=1 2>/dev/null | od -An -tx1 > "$1"
printf '\033[2J\033[Hinput:'
exec sleep 8888"#;

/// A machine whose policy allows `ls`, with a run of the program that asks for it.
fn asking(version: &str) -> (RequirementsMachine, Server, Value) {
    asking_by(ASKER, version)
}

fn asking_by(asker: &str, version: &str) -> (RequirementsMachine, Server, Value) {
    let here = RequirementsMachine::new();
    let rules = here.root().join("config/capture/screen-rules");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("asker.toml"), RULES).unwrap();
    here.save_policy("version = 1\npreset = \"read-only\"\n");
    let server = here.machine.serve();
    let key = here.root().join("key.txt");
    here.done(&["run", "--detach", "--name", "one", "--", "sh", "-c", asker, version, key.to_str().unwrap()]);
    let asked = eventually("the dialog is seen", || {
        let list = server.client.json("/api/v1/approvals")?;
        list["approvals"].as_array()?.iter().find(|a| a["subject"] == "ls").cloned()
    });
    (here, server, asked)
}

fn key(here: &RequirementsMachine) -> Option<String> {
    let text = fs::read_to_string(here.root().join("key.txt")).ok()?;
    Some(text.trim().to_owned()).filter(|key| !key.is_empty())
}

#[test]
fn a_rule_never_answers_a_dialog_known_only_from_the_screen() {
    let (here, server, asked) = asking("1.0.0");
    let id = asked["id"].as_str().unwrap();
    assert_eq!((&asked["state"], &asked["exact"], &asked["command"]), (&"pending".into(), &false.into(), &Value::Null));
    // The policy does allow the command itself.
    let judged = here.machine.command(&["policy", "test", "ls"]).current_dir(here.machine.project()).output().unwrap();
    let judged = String::from_utf8(judged.stdout).unwrap();
    assert!(judged.starts_with("allow"), "{judged}");
    // The user denies: the first key the program receives is the one for no.
    here.done(&["deny", id]);
    assert_eq!(eventually("a key", || key(&here)), "1b");
    let denied = server.client.json(&format!("/api/v1/approvals/{id}")).unwrap();
    assert_eq!((&denied["state"], &denied["by"]), (&"denied".into(), &"person".into()), "{denied}");
}

#[test]
fn approving_a_screen_dialog_prints_the_whole_screen() {
    let (here, _server, asked) = asking("1.0.0");
    let allowed = here.machine.command(&["approve", asked["id"].as_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(allowed.stderr).unwrap();
    // The printed dialog begins at its first line.
    assert!(allowed.status.success() && said.contains("│asker v1.0.0\n") && said.contains("│Proceed?\n"), "{said}");
    assert_eq!(eventually("a key", || key(&here)), "31");
}

/// Asks to change a file and then, once the file `$1.other` exists, asks for another change to the same file.
const CHANGES: &str = r#"stty raw -echo
ask() { printf '\033[2J\033[Hasker v%s\r\n+--\r\n$ ls\r\n+ %s\r\nProceed?\r\n> 1. Yes\r\n  2. No' "$1" "$2"; }
ask "$0" one
while [ ! -e "$1.other" ]; do sleep 0.05; done
ask "$0" two
dd bs=1 count=1 2>/dev/null | od -An -tx1 > "$1"
printf '\033[2J\033[Hinput:'
exec sleep 8888"#;

#[test]
fn a_decision_for_a_dialog_that_changed_is_refused() {
    let (here, server, asked) = asking_by(CHANGES, "1.0.0");
    let id = asked["id"].as_str().unwrap();
    let revision = |view: &Value| view["revision"].as_str().unwrap().to_owned();
    let view = || server.client.json(&format!("/api/v1/approvals/{id}"));
    let first = eventually("keys can answer", || view().filter(|view| view["answer"] == "keys"));
    fs::write(here.root().join("key.txt.other"), "").unwrap();
    eventually("another change is asked for", || {
        view().filter(|now| now["answer"] == "keys" && revision(now) != revision(&first))
    });
    for (old, why) in [(json!(revision(&first)), "changed since it was shown"), (Value::Null, "send the `revision`")] {
        let body = json!({"decision": "allow", "revision": old});
        let path = format!("/api/v1/approvals/{id}/decision");
        let answer = server.client.send("POST", &path, Some(&body.to_string()), tests::PATIENCE).unwrap();
        assert!(answer.status == 409 && answer.text().contains(why), "{} {}", answer.status, answer.text());
    }
    assert_eq!(key(&here), None, "a key was pressed");
    here.done(&["approve", id]);
    assert_eq!(eventually("a key", || key(&here)), "31");
}

#[test]
fn keys_are_not_sent_to_an_untested_agent_version() {
    let (here, server, asked) = asking("1.0.1");
    let id = asked["id"].as_str().unwrap();
    for verb in ["approve", "deny"] {
        let (code, err) = here.failed(&[verb, id]);
        assert!(code == Some(5) && err.contains("tested with version 1.0.0, not with 1.0.1"), "{verb}: {code:?} {err}");
    }
    let now = server.client.json(&format!("/api/v1/approvals/{id}")).unwrap();
    assert_eq!(now["state"], "pending", "{now}");
    assert_eq!(key(&here), None, "a key was pressed");
}
