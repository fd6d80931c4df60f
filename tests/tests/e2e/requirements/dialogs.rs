//! Dialogs that are known from a screen only: no rule answers them, and keys go only to agents of a
//! version whose dialogs were tried.

use std::fs;

use serde_json::Value;
use tests::{eventually, program::Server};

use super::RequirementsMachine;
use crate::e2e::terminal::dialogs::RULES;

/// Asks whether it may run `ls`, and writes down the first key it gets. `$0` is its version, `$1` the file.
const ASKER: &str = r#"stty raw -echo
printf '\033[2J\033[Hasker v%s\r\n+--\r\n$ ls\r\nProceed?\r\n> 1. Yes\r\n  2. No' "$0"
dd bs=1 count=1 2>/dev/null | od -An -tx1 > "$1"
printf '\033[2J\033[Hinput:'
exec sleep 8888"#;

/// A machine whose policy allows `ls`, with a run of the program that asks for it.
fn asking(version: &str) -> (RequirementsMachine, Server, Value) {
    let here = RequirementsMachine::new();
    let rules = here.root().join("config/capture/screen-rules");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("asker.toml"), RULES).unwrap();
    here.save_policy("version = 1\npreset = \"read-only\"\n");
    let server = here.machine.serve();
    let key = here.root().join("key.txt");
    here.done(&["run", "--detach", "--name", "one", "--", "sh", "-c", ASKER, version, key.to_str().unwrap()]);
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
fn a_rule_never_answers_what_is_known_from_a_screen_only() {
    let (here, server, asked) = asking("1.0.0");
    let id = asked["id"].as_str().unwrap();
    assert_eq!((&asked["state"], &asked["exact"], &asked["command"]), (&"pending".into(), &false.into(), &Value::Null));
    // The policy does allow the words.
    let judged = here.machine.command(&["policy", "test", "ls"]).current_dir(here.machine.project()).output().unwrap();
    let judged = String::from_utf8(judged.stdout).unwrap();
    assert!(judged.starts_with("allow"), "{judged}");
    // A person says no: the first key that the program gets says so.
    here.done(&["deny", id]);
    assert_eq!(eventually("a key", || key(&here)), "1b");
    let denied = server.client.json(&format!("/api/v1/approvals/{id}")).unwrap();
    assert_eq!((&denied["state"], &denied["by"]), (&"denied".into(), &"person".into()), "{denied}");
}

#[test]
fn what_is_known_from_a_screen_is_allowed_with_the_whole_screen_in_sight() {
    let (here, _server, asked) = asking("1.0.0");
    let allowed = here.machine.command(&["approve", asked["id"].as_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(allowed.stderr).unwrap();
    // The dialog begins below its first line.
    assert!(allowed.status.success() && said.contains("│asker v1.0.0\n") && said.contains("│Proceed?\n"), "{said}");
    assert_eq!(eventually("a key", || key(&here)), "31");
}

#[test]
fn keys_are_for_versions_that_were_tried() {
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
