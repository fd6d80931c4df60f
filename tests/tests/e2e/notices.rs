//! Findings of the real program, the notifications sent to the user about them, and queued prompts: with a scripted
//! agent in an unattended terminal, a webhook receiver and a desktop.

use std::{fs, io::Write, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use serde_json::{Value, json};
use tests::{
    PATIENCE,
    desktop::Desktop,
    eventually,
    program::{Machine, Server},
    receiver::Receiver,
    terminal_user::end_all,
    transcript,
};

use super::PROGRAM;

/// An agent that reports its state (OSC 7501) and reads its instructions line by line.
const AGENT: &str = r#"
say() { printf '\033]7501;state=%s:app=scripted\033\\' "$1"; }
say idle; echo ready
while read -r word rest; do
    case $word in
    ask) say working; say blocked:kind=permission; echo "May I $rest? (y/n)" ;;
    end) exit "$rest" ;;
    *) say working; echo "did $word $rest"; say idle ;;
    esac
done
"#;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct NoticesMachine {
    // Its socket is in the machine's directory, so it is dropped before the machine.
    desktop: Desktop,
    hooks: Receiver,
    server: Server,
    machine: Machine,
}

impl NoticesMachine {
    /// A machine with a desktop, on which notifications also go to a webhook; `more` is further configuration.
    fn new(more: &str) -> Self {
        let machine = Machine::new(PROGRAM);
        let run = machine.home().parent().unwrap().join("run");
        let desktop = Desktop::start(&run);
        let hooks = Receiver::start();
        let secret = machine.home().join("hook.secret");
        fs::write(&secret, SECRET).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let configuration = format!(
            "autostart = false\n[notify]\nallow_hosts = [\"{}\"]\n\
             channels = [{{ type = \"desktop\", name = \"desktop\" }}, \
             {{ type = \"webhook\", name = \"hook\", url = \"{}\", secret_file = \"{}\" }}]\n{more}",
            hooks.host(),
            hooks.url("/in"),
            secret.display()
        );
        machine.configure(&configuration);
        fs::write(machine.project().join("agent.sh"), AGENT).unwrap();
        let server = machine.serve();
        Self { machine, server, hooks, desktop }
    }

    /// Starts the agent and waits until it is ready; returns its session.
    fn start(&self, name: &str) -> String {
        let agent = self.machine.project().join("agent.sh");
        self.done(&["run", "--detach", "--name", name, "--", "sh", agent.to_str().unwrap()]);
        let run = eventually("the run has a session", || {
            let run = self.server.client.json(&format!("/api/v1/runs/{name}"))?;
            run["session_id"].as_str().map(str::to_owned)
        });
        self.is(&run, "waiting");
        run
    }

    #[track_caller]
    fn is(&self, session: &str, state: &str) {
        eventually(&format!("the session is {state}"), || {
            let session = self.server.client.json(&format!("/api/v1/sessions/{session}"))?;
            (session["status"]["state"] == state).then_some(())
        });
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.machine.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn findings(&self, query: &str) -> Vec<Value> {
        let page = self.server.client.json(&format!("/api/v1/findings?{query}")).unwrap();
        page["findings"].as_array().unwrap().clone()
    }

    /// Waits for an open finding of a kind.
    #[track_caller]
    fn finding(&self, kind: &str) -> Value {
        eventually(&format!("a finding {kind}"), || self.findings(&format!("kind={kind}")).first().cloned())
    }

    /// The data of a session's events of one kind.
    fn told(&self, session: &str, kind: &str) -> Vec<Value> {
        let events = self.server.events(session);
        events.into_iter().filter(|event| event["kind"] == kind).collect()
    }
}

impl Drop for NoticesMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

#[test]
fn each_channel_notifies_once_per_approval() {
    let here = NoticesMachine::new("");
    let session = here.start("one");
    here.done(&["send", "one", "ask to delete it\n"]);
    let delivered = here.hooks.wait(1, PATIENCE).remove(0);
    assert!(delivered.is_signed_by(SECRET));
    let message = delivered.json();
    assert!(message.to_string().contains("approval"), "{message}");
    let shown = here.desktop.wait(1, PATIENCE).remove(0);
    assert!(!shown.summary.is_empty() && !shown.body.is_empty(), "{shown:?}");
    let finding = here.finding("approval");
    assert_eq!(finding["session_id"], session.as_str());
    // Every notification is an event of the session.
    let told = eventually("both receipts", || {
        let told = here.told(&session, "notification");
        (told.len() >= 2).then_some(told)
    });
    let outcomes: Vec<(&Value, &Value)> =
        told.iter().map(|e| (&e["data"]["outcome"], &e["data"]["findings"][0])).collect();
    assert_eq!(outcomes, [(&json!("sent"), &finding["id"]); 2]);
    // The dialog is answered, so the finding is resolved. The resolution is not announced, and nothing is announced
    // twice.
    here.done(&["send", "one", "--force", "go on\n"]);
    let over = eventually("the finding is over", || here.findings("state=resolved&kind=approval").first().cloned());
    assert_eq!(over["id"], finding["id"]);
    here.done(&["send", "one", "ask for more\n"]);
    let requests = here.hooks.wait(2, PATIENCE);
    let ids: Vec<&str> = requests.iter().map(|r| r.header("webhook-id")).collect();
    assert_eq!((ids.len(), ids[0] == ids[1]), (2, false), "{ids:?}");
    // A restarted server does not send the notifications again.
    let metrics = eventually("both are counted as sent", || {
        // Counted only after the receiver has answered.
        let metrics = here.server.client.get("/metrics").ok()?.text();
        metrics.contains("capture_notifications_total{channel=\"hook\",outcome=\"sent\"} 2").then_some(metrics)
    });
    assert!(metrics.contains("capture_findings_total{kind=\"approval\"} 2"), "{metrics}");
}

#[test]
fn an_approval_answered_within_the_debounce_is_not_notified() {
    let here = NoticesMachine::new("rules = [{ kind = \"approval\", debounce_ms = 3000 }]\n");
    let (one, two) = (here.start("one"), here.start("two"));
    here.done(&["send", "one", "ask first\n"]);
    here.is(&one, "waiting_approval");
    here.finding("approval");
    here.done(&["send", "one", "--force", "go on\n"]);
    eventually("the first is over", || here.findings("kind=approval").is_empty().then_some(()));
    here.done(&["send", "two", "ask second\n"]);
    let delivered = here.hooks.wait(1, PATIENCE).remove(0).json();
    assert!(delivered.to_string().contains(&two), "{delivered}");
    // The first was due before the second.
    assert_eq!(here.hooks.requests().len(), 1);
    assert_eq!(here.desktop.wait(1, PATIENCE).len(), 1);
    assert_eq!(here.told(&one, "notification"), Vec::<Value>::new());
}

#[test]
fn a_finding_can_be_acknowledged_until_it_is_resolved() {
    let here = NoticesMachine::new("rules = [{ kind = \"approval\", loudness = \"off\" }]\n");
    let session = here.start("one");
    here.done(&["send", "one", "ask to go\n"]);
    let id = here.finding("approval")["id"].as_str().unwrap().to_owned();
    let listed = here.done(&["findings"]);
    assert!(listed.contains(&id) && listed.contains("approval"), "{listed}");
    let acknowledged: Value = serde_json::from_str(&here.done(&["findings", &id, "--ack", "--json"])).unwrap();
    assert_eq!((&acknowledged["state"], &acknowledged["schema_version"]), (&json!("acknowledged"), &json!(1)));
    // Acknowledging twice has no further effect; after the end of the finding it is refused.
    here.done(&["findings", &id, "--ack"]);
    here.done(&["send", "one", "--force", "go on\n"]);
    eventually("it is over", || here.findings("").is_empty().then_some(()));
    let output = here.machine.command(&["findings", &id, "--ack"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let states: Vec<Value> = here.told(&session, "finding").iter().map(|e| e["data"]["state"].clone()).collect();
    assert_eq!((states.first(), states.last()), (Some(&json!("open")), Some(&json!("resolved"))), "{states:?}");
    assert!(states.contains(&json!("acknowledged")), "{states:?}");
    let unknown = here.machine.command(&["findings", "f0", "--ack"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(4), "{unknown:?}");
}

#[test]
fn notify_test_sends_over_every_channel() {
    let here = NoticesMachine::new("");
    let receipts: Value = serde_json::from_str(&here.done(&["notify", "test", "--json"])).unwrap();
    let outcomes: Vec<_> = receipts["receipts"].as_array().unwrap().iter().map(|r| r["outcome"].clone()).collect();
    assert_eq!(outcomes, ["sent", "sent"], "{receipts}");
    assert_eq!((here.hooks.requests().len(), here.desktop.shown().len()), (1, 1));
    let none = here.machine.command(&["notify", "test", "pigeon"]).output().unwrap();
    assert_eq!(none.status.code(), Some(4), "{none:?}");
    let why = String::from_utf8_lossy(&none.stderr);
    assert!(why.contains("no channel `pigeon` is configured; `capture notify channels` lists them"), "{why}");
}

#[test]
fn a_queued_prompt_is_delivered_only_when_the_session_waits_for_one() {
    let here = NoticesMachine::new("rules = [{ loudness = \"off\" }]\n");
    let session = here.start("one");
    here.done(&["send", "one", "ask to go\n"]);
    here.is(&session, "waiting_approval");
    let queued: Value = serde_json::from_str(&here.done(&["queue", "--json", &session, "hello there"])).unwrap();
    assert_eq!((&queued["state"], &queued["by"]), (&json!("queued"), &json!("person")));
    let taken_back: Value = serde_json::from_str(&here.done(&["queue", "--json", &session, "not this"])).unwrap();
    let id = taken_back["id"].as_str().unwrap();
    let cancelled: Value = serde_json::from_str(&here.done(&["queue", "--json", "--cancel", id])).unwrap();
    assert_eq!(cancelled["state"], "cancelled");
    // The dialog closes, and the agent waits for a prompt.
    here.done(&["send", "one", "--force", "go on\n"]);
    here.is(&session, "waiting");
    eventually("the prompt is delivered", || {
        let prompts = here.server.client.json("/api/v1/prompts?state=delivered")?;
        prompts["prompts"].as_array()?.first().cloned()
    });
    let screen = eventually("the agent did it", || {
        let screen = here.done(&["screen", "one"]);
        screen.contains("did hello there").then_some(screen)
    });
    assert_eq!(screen.matches("hello there").count(), 2, "typed once, done once: {screen}");
    assert!(!screen.contains("not this"), "{screen}");
    let states: Vec<Value> = here.told(&session, "prompt.queued").iter().map(|e| e["data"]["state"].clone()).collect();
    assert_eq!(states, ["queued", "queued", "cancelled", "delivering", "delivered"]);
    // Prompts cannot be queued for a session that is only observed.
    let mut hook = here.machine.command(&["hook", "claude"]).stdin(Stdio::piped()).spawn().unwrap();
    let payload = json!({"session_id": "s", "cwd": "/p", "hook_event_name": "SessionStart", "source": "startup"});
    hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    assert_eq!(here.server.session("s")["run_id"], Value::Null);
    let refused = here.machine.command(&["queue", "s", "hello"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
}

/// The actions of the user's rules for findings run once, after their finding, and never by typing keys at a dialog.
#[test]
fn each_action_runs_once_after_its_finding() {
    let here = NoticesMachine::new(
        "rules = [{ loudness = \"off\" }]\n\
         [[actions]]\non = [\"approval\"]\ndo = \"note\"\ntext = \"look at this\"\n\
         [[actions]]\non = [\"approval\"]\ndo = \"queue\"\ntext = \"carry on\"\n\
         [[actions]]\non = [\"approval\"]\nlabels = { team = \"web\" }\ndo = \"note\"\ntext = \"not for this one\"\n\
         [[actions]]\non = [\"approval\"]\ndo = \"interrupt\"\n",
    );
    let session = here.start("one");
    here.done(&["send", "one", "ask to delete it\n"]);
    here.is(&session, "waiting_approval");
    let notes = || -> Vec<(u64, Value)> {
        let is_note = |event: &Value| event["kind"] == "annotation" && event["data"]["topic"] == "note";
        let events = here.server.events(&session);
        events
            .iter()
            .filter(|e| is_note(e))
            .map(|e| (e["sequence"].as_u64().unwrap(), e["data"]["value"].clone()))
            .collect()
    };
    eventually("the note", || notes().first().cloned());
    let prompts = |state: &str| {
        let page = here.server.client.json(&format!("/api/v1/prompts?state={state}")).unwrap();
        page["prompts"].as_array().unwrap().clone()
    };
    let queued = eventually("the prompt", || prompts("queued").first().cloned());
    assert_eq!((&queued["text"], &queued["by"]), (&json!("carry on"), &json!("monitor")));
    // The dialog is unchanged: an interrupt would have answered it.
    here.is(&session, "waiting_approval");
    here.done(&["send", "one", "--force", "go on\n"]);
    eventually("the prompt is delivered", || prompts("delivered").first().cloned());
    let events = here.server.events(&session);
    let opened = events.iter().find(|e| e["kind"] == "finding" && e["data"]["kind"] == "approval").unwrap();
    let all = notes();
    assert_eq!(all.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), ["look at this"]);
    assert!(opened["sequence"].as_u64().unwrap() < all[0].0, "the finding is recorded first");
}

/// A rule interrupts an agent that is stuck, and the interrupt is recorded.
#[test]
fn a_rule_interrupts_an_agent_that_is_stuck() {
    let here = NoticesMachine::new(
        "rules = [{ loudness = \"off\" }]\n[monitor]\nstuck_ms = 1000\n\
         [[actions]]\non = [\"stuck\"]\ndo = \"interrupt\"\n",
    );
    // The agent calls its hook, starts to work, and then produces no more events.
    let (name, cwd) = (transcript::session(1), here.machine.project().to_str().unwrap().to_owned());
    let payload = json!({"session_id": name, "cwd": cwd, "hook_event_name": "UserPromptSubmit",
        "prompt": "go"});
    let script = format!("printf '%s' '{payload}' | '{PROGRAM}' hook claude; while :; do read -r line; done");
    // A shell under the name of the agent.
    here.machine.link_agent(events::Provider::Claude, Path::new("/bin/sh")).unwrap();
    here.done(&["run", "--detach", "--name", "one", "--", "claude", "-c", &script]);
    assert_eq!(here.server.session(&name)["provider"], "claude");
    let prompt = transcript::prompt(&name, &transcript::uuid(1, 1), &cwd, "go");
    transcript::append(&here.machine.claude(&name), &prompt);
    let finding = here.finding("stuck");
    assert_eq!(finding["session_id"], here.server.session(&name)["id"]);
    let note = eventually("and that is noted", || {
        let events = here.server.events(&name);
        events.into_iter().find(|e| e["kind"] == "annotation" && e["data"]["topic"] == "note")
    });
    assert!(note["data"]["value"].as_str().unwrap().starts_with("interrupted by a rule: "), "{note}");
    // Its interrupt key is Esc, which the terminal echoes.
    eventually("it is interrupted", || here.done(&["screen", "one"]).contains("^[").then_some(()));
}
