//! Secrets in the texts of an agent: they are in its record, and in nothing derived from it.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Stdio},
};

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

/// Secrets of several kinds, assembled at run time so that no file contains a whole one.
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

/// The part of a secret that must not appear: of a URL, its password.
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

struct SecretsMachine {
    hooks: Receiver,
    server: Server,
    machine: Machine,
}

impl SecretsMachine {
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

    /// Writes a session with every secret in all of its texts: prompts, answers, permission requests.
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
        eventually("they are found to wait", || {
            let page = self.server.client.json("/api/v1/findings")?;
            let asks =
                |finding: &&Value| finding["what"].as_str().is_some_and(|what| what.starts_with("asks permission"));
            (page["findings"].as_array()?.iter().filter(asks).count() >= secrets().len()).then_some(())
        });
        id
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.machine.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }
}

impl Drop for SecretsMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

/// The bytes of all files below a directory. Files removed in the meantime (a stored delivery, the socket of an ended
/// run) are skipped.
fn bytes_below(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let there = |error: io::Error, path: &Path| {
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{}: {error}", path.display());
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            there(error, dir);
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        let read = entry.file_type().and_then(|kind| {
            if kind.is_dir() {
                found.extend(bytes_below(&path));
            } else if kind.is_file() {
                found.push((path.display().to_string(), fs::read(&path)?));
            }
            Ok(())
        });
        if let Err(error) = read {
            there(error, &path);
        }
    }
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn views_of_a_session_are_redacted_but_its_events_are_not() {
    let here = SecretsMachine::new("");
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
        &format!("sessions/{mine}/handoff"),
        "findings?state=all",
    ] {
        is_clean(path, &here.server.client.get(&format!("/api/v1/{path}")).unwrap().text());
    }
    // The note equals that of the command except for the format of times.
    let note = here.server.client.json(&format!("/api/v1/sessions/{mine}/handoff")).unwrap();
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("- last event")).map(str::to_owned).collect()
    };
    let note = lines(note["markdown"].as_str().unwrap());
    assert_eq!(note, lines(&here.says(&["handoff", &id])));
    assert!(note.iter().any(|line| line.starts_with("- continue with: `claude --resume ")), "{note:?}");
    // Messages sent to the webhook: each approval, grouped or not.
    let told = here.hooks.wait(1, PATIENCE);
    for message in told {
        is_clean("a message", &String::from_utf8_lossy(&message.body));
    }
    is_clean("the log", &here.server.log());
    is_clean("metrics", &here.server.client.get("/metrics").unwrap().text());
    // The record is unchanged, and so is the text the user has to judge.
    let events = here.says(&["events", &id, "--json"]);
    let approvals = here.says(&["approvals", "--all", "--json"]);
    for secret in secrets() {
        assert!(events.contains(heart(&secret)), "the record lost {secret}");
        assert!(approvals.contains(heart(&secret)), "the approval lost {secret}");
    }
}

#[test]
fn a_redacted_store_contains_no_secrets() {
    let here = SecretsMachine::new("[store]\nredacted_only = true\n");
    let id = here.say_all();
    is_clean("events", &here.says(&["events", &id, "--json"]));
    let approvals: Value = serde_json::from_str(&here.says(&["approvals", "--all", "--json"])).unwrap();
    for approval in approvals["approvals"].as_array().unwrap() {
        assert_eq!(approval["exact"], false, "no rule may allow what is not known to the byte: {approval}");
    }
    is_clean("approvals", &approvals.to_string());
    let data = here.machine.data();
    let SecretsMachine { server, hooks: _hooks, .. } = &here;
    let _ = server.client.get("/healthz").unwrap();
    eventually("the deliveries of hooks are stored", || {
        let spool = fs::read_dir(data.join("spool")).ok()?;
        (spool.count() == 0).then_some(())
    });
    for (path, bytes) in bytes_below(&data) {
        for secret in secrets() {
            assert!(!holds(&bytes, heart(&secret)), "{path} holds {secret}");
        }
    }
}

/// An agent that reports its state like some real agents (OSC 7501), and prints its environment and input.
const AGENT: &str = r#"
say() { printf '\033]7501;state=%s:app=scripted\033\\' "$1"; }
say idle; printf 'export \033[36mTOKEN\033[0m=%s\n' "$SHOWN"; echo ready
read -r prompt; say working; echo "did $prompt"; say idle
read -r end
"#;

/// A different key for each way into the data directory.
fn key(n: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let letters = (0..36).map(|i| char::from(LETTERS[(i * 25 + n * 11 + i * i * 3) % LETTERS.len()]));
    ["gh", "p_"].concat() + &letters.collect::<String>()
}

/// For each key, the way in which it was submitted.
const DOORS: [&str; 13] = [
    "a hook while no server runs",
    "a hook nobody understands",
    "the output of a run",
    "the name of a run",
    "an argument of a run",
    "a queued prompt",
    "a label",
    "a request for permission",
    "why it was denied",
    "a request that a rule forbids",
    "a hook while the server runs",
    "a prompt in a transcript",
    "a drawn value under a name in a request",
];

/// The ways in whose keys were found in the data directory.
#[derive(Default)]
struct Written(BTreeSet<&'static str>);

impl Written {
    fn look(&mut self, data: &Path) {
        for (_, bytes) in bytes_below(data) {
            // A part of a key is as bad as the whole key.
            let inside = DOORS.iter().enumerate().filter(|(n, _)| holds(&bytes, &key(*n)[4..24]));
            self.0.extend(inside.map(|(_, door)| *door));
        }
    }
}

#[test]
fn redacted_only_keeps_secrets_out_of_the_data_directory() {
    assert_eq!(written(true), BTreeSet::new());
}

#[test]
fn without_redacted_only_every_input_reaches_the_data_directory() {
    assert_eq!(written(false), BTreeSet::from(DOORS));
}

/// Submits a key by every way in, and returns the ways whose keys were stored.
fn written(redacted_only: bool) -> BTreeSet<&'static str> {
    let mut written = Written::default();
    let machine = Machine::new(PROGRAM);
    machine.configure(&format!("autostart = false\n[store]\nredacted_only = {redacted_only}\n"));
    let rule = "version = 1\n[[rule]]\nname = \"no push\"\ndecision = \"deny\"\ncommand = [\"git\", \"push\"]\nreason = \"mine\"\n";
    let policy = machine.home().parent().unwrap().join("config/capture/policy.toml");
    fs::write(&policy, rule).unwrap();
    for path in [policy.parent().unwrap(), &policy] {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let data = machine.data();
    assert!(machine.serve().stop().success());
    let cwd = machine.project();
    let id = session(7);
    let hook = |arguments: &[&str], payload: &Value| {
        let words = [&["hook"], arguments].concat();
        let mut hook = machine.command(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        hook
    };
    let done = |mut hook: Child| assert!(hook.wait().unwrap().success());
    let call = |name: &str, more: Value| {
        let mut payload = json!({"session_id": id, "cwd": cwd, "hook_event_name": name});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };

    // While no server runs, only the spool is written.
    done(hook(&["claude"], &call("SessionStart", json!({"source": "startup", "model": key(0)}))));
    done(hook(&["claude"], &json!({"nothing": key(1)})));
    assert_eq!(fs::read_dir(data.join("spool")).unwrap().count(), 2);
    written.look(&data);
    let server = machine.serve();
    eventually("the deliveries of hooks are stored or set aside", || {
        let left = fs::read_dir(data.join("spool")).ok()?.map(|e| e.unwrap().path());
        left.into_iter().all(|path| path.extension().is_some_and(|e| e == "bad")).then_some(())
    });

    // A recorded run, and a queued prompt that is typed into it.
    fs::write(machine.project().join("agent.sh"), AGENT).unwrap();
    let agent = machine.project().join("agent.sh");
    let name = format!("deploy {}", key(3));
    let words =
        ["run", "--detach", "--json", "--record", "--name", &name, "--", "sh", agent.to_str().unwrap(), &key(4)];
    let started = machine.command(&words).env("SHOWN", key(2)).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    let run: Value = serde_json::from_slice(&started.stdout).unwrap();
    let run = run["run"].as_str().unwrap().to_owned();
    let hosted = eventually("the run has a session that waits", || {
        let of = server.client.json(&format!("/api/v1/runs/{run}"))?["session_id"].as_str()?.to_owned();
        let session = server.client.json(&format!("/api/v1/sessions/{of}"))?;
        (session["status"]["state"] == "waiting").then_some(of)
    });
    let says = |arguments: &[&str]| {
        let output = machine.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    says(&["queue", &hosted, &format!("use {}", key(5))]);
    eventually("the prompt was typed to the letter", || {
        says(&["screen", &run]).contains(&format!("did use {}", key(5))).then_some(())
    });
    says(&["label", &hosted, &format!("ticket={}", key(6))]);
    written.look(&data);

    // A request that the user denies with a message; the agent receives the message unchanged.
    let asked = call(
        "PermissionRequest",
        json!({"tool_name": "Bash", "tool_input": {"command": format!("echo {}", key(7)), "password": key(12)}}),
    );
    let asks_of_a_secret = hook(&["claude", "--approver", "60"], &asked);
    let approval = eventually("a request with a secret", || {
        let list = server.client.json("/api/v1/approvals?state=pending")?;
        let of = |a: &&Value| a["command"].as_str().is_some_and(|command| command.starts_with("echo "));
        list["approvals"].as_array()?.iter().find(of).filter(|a| !redacted_only || a["answer"].is_null()).cloned()
    });
    assert_eq!(approval["exact"], !redacted_only, "no rule may allow what is not known to the byte: {approval}");
    if redacted_only {
        // The command is not shown here, so it cannot be approved here: the agent asks its user.
        assert_eq!(asks_of_a_secret.wait_with_output().unwrap().stdout, b"");
        let refused = machine.command(&["approve", approval["id"].as_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("removed secrets from this request"), "{said}");
    } else {
        says(&["deny", approval["id"].as_str().unwrap()]);
        asks_of_a_secret.wait_with_output().unwrap();
    }
    let asked = call("PermissionRequest", json!({"tool_name": "Bash", "tool_input": {"command": "make it"}}));
    let waiting = hook(&["claude", "--approver", "60"], &asked);
    let approval = eventually("a hook waits", || {
        let list = server.client.json("/api/v1/approvals?state=pending")?;
        list["approvals"].as_array()?.iter().find(|a| a["answer"] == "hook").cloned()
    });
    says(&["deny", approval["id"].as_str().unwrap(), "--message", &format!("not with {}", key(8))]);
    let told = waiting.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(
        told["hookSpecificOutput"]["decision"],
        json!({"behavior": "deny", "message": format!("not with {}", key(8))})
    );
    // A command that a rule denies without asking anyone.
    done(hook(&["gemini"], &call("SessionStart", json!({"session_id": session(8), "source": "startup"}))));
    assert!(server.session(&session(8)).is_object());
    let asked = call(
        "BeforeTool",
        json!({"session_id": session(8), "tool_name": "run_shell_command", "tool_input": {"command": format!("git push {}", key(9))}}),
    );
    let told = hook(&["gemini", "--approver", "30"], &asked).wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["decision"], "deny");
    done(hook(&["claude"], &call("SessionStart", json!({"source": "resume", "model": key(10)}))));
    let path = machine.claude(&id);
    append(&path, &prompt(&id, &uuid(7, 1), cwd.to_str().unwrap(), &format!("go on with {}", key(11))));
    server.caught_up(&id, &path);

    says(&["send", &run, "--force", "end\n"]);
    eventually("the run is over", || {
        let run = server.client.json(&format!("/api/v1/runs/{run}"))?;
        (run["state"] == "exited").then_some(())
    });
    let recording = data.join("recordings").join(format!("{run}.cast"));
    eventually("the recording is whole", || {
        let text = fs::read_to_string(&recording).ok()?;
        let typed = if redacted_only { "did use [redacted:".to_owned() } else { format!("did use {}", key(5)) };
        (text.contains("ready") && text.contains(&typed)).then_some(())
    });
    assert_eq!(server.client.json("/api/v1/approvals?state=denied").unwrap()["approvals"][0]["id"], approval["id"]);
    written.look(&data);
    let log = server.log();
    assert!((0..DOORS.len()).all(|n| !log.contains(&key(n)[4..24])), "{log}");
    assert!(server.stop().success());
    written.look(&data);
    end_all(&data);
    written.0
}

#[test]
fn a_redacted_queued_prompt_is_cancelled_after_a_restart() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n[store]\nredacted_only = true\n");
    let server = machine.serve();
    let script = "printf '\\033]7501;state=working:app=scripted\\033\\\\'; read -r end";
    let started = machine.command(&["run", "--detach", "--json", "--", "sh", "-c", script]).output().unwrap();
    let run: Value = serde_json::from_slice(&started.stdout).unwrap();
    let run = run["run"].as_str().unwrap().to_owned();
    let hosted = eventually("the run has a session", || {
        server.client.json(&format!("/api/v1/runs/{run}"))?["session_id"].as_str().map(str::to_owned)
    });
    for text in [format!("use {}", key(0)), "go on".into()] {
        assert!(machine.command(&["queue", &hosted, &text]).output().unwrap().status.success());
    }
    server.kill();
    let server = machine.serve();
    let prompts = eventually("the prompt is taken back", || {
        let list = server.client.json("/api/v1/prompts?limit=9")?;
        let states: Vec<_> = list["prompts"].as_array()?.iter().map(|p| p["state"].clone()).collect();
        states.contains(&json!("cancelled")).then_some(list)
    });
    let of = |state: &str| {
        let all = prompts["prompts"].as_array().unwrap();
        all.iter().find(|p| p["state"] == state).cloned().unwrap_or_default()
    };
    assert!(of("cancelled")["why"].as_str().unwrap().contains("secret"), "{prompts}");
    assert_eq!(of("queued")["text"], "go on", "{prompts}");
    end_all(&machine.data());
}
