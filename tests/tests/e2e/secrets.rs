//! Secrets in what an agent says: they are in the record of it, and in nothing that is told of it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    program::{Machine, Server},
    receiver::Receiver,
    terminal_user::end_all,
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Of several kinds; put together here, so that no file holds one whole.
fn secrets() -> Vec<String> {
    let parts: [&[&str]; 4] = [
        &["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"],
        &[
            "sk-ant-api03-",
            "q8Zr2VtYp6Lm0Xc4Nb1Kd7Gh3Js9Wf5Qe8Ru2Ty6Ui0Op4As1Df7Gh3Jk9Lz5Xc8Vb2Nm6Qw0Er4Ty1Ui7Op3",
            "-AbCdEfAA",
        ],
        &["AKIA", "Q3R7T5W9Y2Z6X4V8"],
        &["postgres://app:", "r4nd0mPazzw0rd", "@db.internal:5432/app"],
    ];
    parts.iter().map(|parts| parts.concat()).collect()
}

/// What of a secret must not be told: of an address its password.
fn heart(secret: &str) -> &str {
    secret.split_once("://app:").map_or(secret, |(_, rest)| rest.split('@').next().unwrap())
}

#[track_caller]
fn is_clean(what: &str, text: &str) {
    for secret in secrets() {
        let heart = heart(&secret);
        if let Some(at) = text.find(heart) {
            panic!("{what} tells {heart}: …{}", &text[at.saturating_sub(60)..at]);
        }
    }
}

struct Here {
    hooks: Receiver,
    server: Server,
    machine: Machine,
}

impl Here {
    fn new(more: &str) -> Self {
        let machine = Machine::new(PROGRAM);
        let hooks = Receiver::start();
        let secret = machine.home().join("hook.secret");
        fs::write(&secret, WEBHOOK_SECRET).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        machine.configure(&format!(
            "autostart = false\n[notify]\nallow_hosts = [\"{}\"]\n\
             channels = [{{ type = \"webhook\", name = \"hook\", url = \"{}\", secret_file = \"{}\" }}]\n{more}",
            hooks.host(),
            hooks.url("/in"),
            secret.display()
        ));
        let server = machine.serve();
        Self { hooks, server, machine }
    }

    /// A session that says every secret wherever it can: its prompts, its answers, what it asks leave for.
    fn say_all(&self) -> String {
        let (id, cwd) = (session(1), self.machine.project());
        let (path, cwd) = (self.machine.claude(&id), cwd.to_str().unwrap());
        for (n, secret) in (0_u64..).zip(secrets()) {
            append(&path, &prompt(&id, &uuid(1, 2 * n), cwd, &format!("deploy with {secret} please")));
            append(&path, &answer(&id, &uuid(1, 2 * n + 1), cwd, &format!("Done, I used {secret} for it.")));
        }
        self.server.caught_up(&id, &path);
        for (n, secret) in secrets().iter().enumerate() {
            let command = format!("curl -H 'X-Key: {secret}' https://api.example.com/{n}");
            let payload = json!({
                "session_id": id, "cwd": cwd, "hook_event_name": "PermissionRequest", "tool_name": "Bash",
                "tool_input": {"command": command},
            });
            let mut hook = self.machine.command(&["hook", "claude"]);
            let mut hook = hook.stdin(std::process::Stdio::piped()).spawn().unwrap();
            std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
            assert!(hook.wait().unwrap().success());
        }
        eventually("the approvals are there", || {
            let page = self.server.client.json("/api/v1/approvals?limit=100")?;
            (page["approvals"].as_array()?.len() >= secrets().len()).then_some(())
        });
        id
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.machine.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

/// All files below a directory, as `strings` would show them: their bytes.
fn bytes_below(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(bytes_below(&path));
        } else if kind.is_file() {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn what_is_told_of_a_session_has_no_secrets_and_its_record_has() {
    let here = Here::new("");
    let id = here.say_all();
    let mine = here.server.session(&id)["id"].as_str().unwrap().to_owned();
    for arguments in [
        &["ps", "--all"] as &[&str],
        &["ps", "--all", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["standup"],
        &["standup", "--json"],
        &["handoff", &id],
        &["handoff", &id, "--json"],
        &["findings", "--all"],
        &["findings", "--all", "--json"],
        &["explain", &id],
        &["wait", &id, "--until", "waiting,waiting_approval,idle,running,unknown", "--timeout", "5"],
    ] {
        is_clean(&arguments.join(" "), &here.says(arguments));
    }
    for path in [
        "sessions?active=all",
        &format!("sessions/{mine}/summary"),
        &format!("sessions/{mine}/turns"),
        "findings?state=all",
    ] {
        is_clean(path, &here.server.client.get(&format!("/api/v1/{path}")).unwrap().text());
    }
    // Told of over the webhook: of each approval, grouped or not.
    let told = here.hooks.wait(1, PATIENCE);
    for message in told {
        is_clean("a message", &String::from_utf8_lossy(&message.body));
    }
    is_clean("the log", &here.server.log());
    is_clean("metrics", &here.server.client.get("/metrics").unwrap().text());
    // The record is as it was, and so is what a person has to judge.
    let events = here.says(&["events", &id, "--json"]);
    let approvals = here.says(&["approvals", "--all", "--json"]);
    for secret in secrets() {
        assert!(events.contains(heart(&secret)), "the record lost {secret}");
        assert!(approvals.contains(heart(&secret)), "the approval lost {secret}");
    }
}

#[test]
fn a_store_that_holds_no_secrets_holds_none() {
    let here = Here::new("[store]\nredacted_only = true\n");
    let id = here.say_all();
    is_clean("events", &here.says(&["events", &id, "--json"]));
    let approvals: Value = serde_json::from_str(&here.says(&["approvals", "--all", "--json"])).unwrap();
    for approval in approvals["approvals"].as_array().unwrap() {
        assert_eq!(approval["exact"], false, "no rule may allow what is not known to the byte: {approval}");
    }
    is_clean("approvals", &approvals.to_string());
    let data = here.machine.data();
    let Here { server, hooks: _hooks, .. } = &here;
    let _ = server.client.get("/healthz").unwrap();
    eventually("what hooks handed over is taken in", || {
        let spool = fs::read_dir(data.join("spool")).ok()?;
        (spool.count() == 0).then_some(())
    });
    for (path, bytes) in bytes_below(&data) {
        for secret in secrets() {
            assert!(!holds(&bytes, heart(&secret)), "{path} holds {secret}");
        }
    }
}
