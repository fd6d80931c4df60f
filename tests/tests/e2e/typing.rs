//! Text for runs: it is typed only at a prompt, through every interface, and the turn it begins can be awaited. The
//! agents are scripts that draw screens.

use std::{
    fs,
    path::PathBuf,
    process::{Output, Stdio},
};

use events::Provider;
use serde_json::{Value, json};
use tests::{
    PATIENCE, eventually,
    program::{Machine, Server},
    terminal_user::end_all,
};

use super::PROGRAM;

/// Functions that draw screens and write the lines they read to the file `got`. `show TITLE` draws standard input;
/// `until FILE` waits for a file of the test.
const LIBRARY: &str = r#"
show() { printf '\033]0;%s\007\033[2J\033[H' "$1"; cat; }
until_file() { while [ ! -e "$1" ]; do sleep 0.05; done; }
prompt() { show '✳ demo' <<'END'
● Hello.

────────────────────────────────────────
❯ 
────────────────────────────────────────
  ? for shortcuts
END
}
trust() { show '✳ demo' <<'END'
────────────────────────────────────────
 Accessing workspace:

 /home/me/proj

 Quick safety check: Is this a project you created or one you trust?

 ❯ 1. Yes, I trust this folder
   2. No, exit

 Enter to confirm · Esc to cancel
END
}
get() { read -r line && echo "$line" >> got; }
"#;

struct TypingMachine {
    machine: Machine,
    server: Server,
}

impl TypingMachine {
    /// A machine with a run `one` whose agent executes this script.
    fn new(script: &str) -> Self {
        Self::with(Provider::Claude, script)
    }

    fn with(agent: Provider, script: &str) -> Self {
        let machine = Machine::new(PROGRAM);
        machine.configure("autostart = false\n");
        machine.agent_script(agent, &format!("{LIBRARY}{script}"));
        let here = Self { server: machine.serve(), machine };
        here.done(&["run", "--detach", "--name", "one", "--", agent.as_str()]);
        here
    }

    /// Runs a command; returns its exit code, its output and its errors.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        told(self.machine.command(arguments).current_dir(self.machine.project()).output().unwrap())
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
        out
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.server.client.send("POST", path, Some(&body.to_string()), PATIENCE).unwrap();
        (answer.status, answer.json())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.machine.project().join(name)
    }

    /// The lines the agent read.
    fn got(&self) -> String {
        fs::read_to_string(self.file("got")).unwrap_or_default()
    }

    /// Waits until the screen of the run contains a text.
    #[track_caller]
    fn shows(&self, text: &str) {
        eventually(text, || {
            let screen = self.server.client.json("/api/v1/runs/one/screen")?;
            screen["lines"].to_string().contains(text).then_some(())
        });
    }

    /// Waits until the screen rules report a state for the run.
    #[track_caller]
    fn is(&self, state: &str) {
        eventually(state, || {
            let run = self.server.client.json("/api/v1/runs/one")?;
            (run["screen_state"] == state).then_some(())
        });
    }
}

impl Drop for TypingMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

fn told(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A new agent first shows nothing, then possibly its input line, then asks whether the folder is trusted.
#[test]
fn text_never_answers_a_dialog() {
    for before in ["", "prompt; sleep 0.7;"] {
        let here = TypingMachine::new(&format!("until_file go; {before} trust; get; sleep 8888"));
        let mut send = here.machine.command(&["send", "one", "hello"]);
        let send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        fs::write(here.file("go"), "").unwrap();
        let (code, out, err) = told(send.wait_with_output().unwrap());
        assert_eq!((code, out.as_str()), (Some(5), ""), "{before}: {err}");
        assert!(err.contains("Is this a project you created") && err.contains("nothing was typed"), "{err}");
        assert!(err.contains("capture send one --keys") && err.contains("--force"), "{err}");
        // Every other interface refuses the text as well.
        let text = json!({ "text": "hello", "submit": true });
        for path in ["/api/v1/runs/one/input", "/api/v1/sessions/one/input"] {
            let (status, refused) = here.post(path, &text);
            assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{path}: {refused}");
        }
        for kind in ["user", "raw"] {
            let message = json!({ "content": "1\n", "type": kind });
            let (status, refused) = here.post("/api/v1/runs/one/agentapi/message", &message);
            assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{kind}: {refused}");
        }
        let (status, refused) = here.post("/api/v1/sessions/one/input", &json!({ "do": "prompt", "text": "hello" }));
        assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{refused}");
        assert_eq!(here.got(), "");
        // Keys are chosen by the user, so they are sent.
        here.done(&["send", "one", "--keys", "enter"]);
        eventually("Enter", || (here.got() == "\n").then_some(()));
    }
}

/// Menus that users of other programs had answered by accident, with a prompt.
#[test]
fn text_is_refused_in_menus() {
    let menus = [
        (
            Provider::Claude,
            "✳ demo",
            "Resume from summary",
            "────────────────────────────────\n This session is 21h old and 755k tokens.\n\n❯ 1. Resume from summary (recommended)\n  2. Resume full session as-is\n\n Enter to confirm · Esc to cancel",
        ),
        (
            Provider::Claude,
            "✳ demo",
            "Select model",
            "────────────────────────────────\n Select model\n\n❯ 1. Default (recommended)\n   2. Other\n\n Enter to confirm · Esc to exit",
        ),
        (
            Provider::Codex,
            "demo",
            "Update now",
            " ✨ Update available! 0.153.0 -> 0.153.2\n\n› 1. Update now (runs `npm install`)\n  2. Skip\n\n  Press enter to continue",
        ),
        (
            Provider::Gemini,
            "◇  Ready (demo)",
            "Do you trust this folder?",
            "╭──────────────────────────╮\n│ Do you trust this folder? │\n│                          │\n│ ● 1. Trust folder (demo) │\n│   2. Don't trust         │\n╰──────────────────────────╯",
        ),
    ];
    for (agent, title, shows, menu) in menus {
        let here = TypingMachine::with(agent, &format!("show '{title}' <<'END'\n{menu}\nEND\nget; sleep 8888"));
        here.shows(shows);
        let (code, out, err) = here.run(&["send", "one", "hello there"]);
        assert_eq!((code, out.as_str()), (Some(5), ""), "{shows}: {err}");
        assert!(err.contains("nothing was typed"), "{err}");
        assert_eq!(here.got(), "", "{shows}");
        // Forced input is reported as such.
        let out = here.done(&["send", "one", "--force", "hello there"]);
        assert!(out.starts_with("forced: typed without checking the screen"), "{out}");
        eventually("the text", || (here.got() == "hello there\n").then_some(()));
    }
}

#[test]
fn send_times_out_if_the_agent_shows_no_prompt() {
    let here = TypingMachine::new("printf '\\033]0;◐ demo\\007'; echo 'loading the walrus'; get; sleep 8888");
    here.is("running");
    let (code, out, err) = here.run(&["send", "one", "hello", "--timeout", "0.3"]);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    assert!(err.contains("was not at a prompt within 0.3 s") && err.contains("running"), "{err}");
    assert!(err.contains("capture screen one") && err.contains("capture queue one TEXT"), "{err}");
    let (status, refused) = here.post("/api/v1/runs/one/input", &json!({ "text": "hello\n", "timeout_ms": 100 }));
    assert_eq!((status, &refused["error"]["code"]), (408, &json!("timeout")), "{refused}");
    assert_eq!(here.got(), "");
}

/// An agent that works for a second on each prompt, and asks for permission when told to.
const WORKER: &str = r#"
sleep 0.5; prompt
while get; do
    printf '\033]0;◐ demo\007'; sleep 1
    case $line in *ask*) trust; get ;; esac
    echo over >> got; prompt
done"#;

#[test]
fn a_client_can_wait_for_the_turn_that_its_text_starts() {
    let here = TypingMachine::new(WORKER);
    // `send` returns at once, as the README shows.
    let out = here.done(&["send", "one", "do the work"]);
    let position = out.trim().strip_prefix("sent at position ").unwrap_or_else(|| panic!("{out}")).to_owned();
    assert_eq!(here.got(), "do the work\n", "the turn is not over");
    let until = ["--until", "waiting,waiting_approval", "--timeout", "60"];
    let out = here.done(&[&["wait", "one", "--after", &position], &until[..]].concat());
    assert!(out.starts_with("◆ waiting "), "{out}");
    assert_eq!(here.got(), "do the work\nover\n");
    // The turn was over before this wait began.
    here.done(&[&["wait", "one", "--after", &position], &until[..]].concat());
    let latest = here.server.client.json("/api/v1/sessions").unwrap()["as_of"].to_string();
    let (code, _, err) = here.run(&["wait", "one", "--after", &latest, "--until", "waiting", "--timeout", "0.2"]);
    assert!(code == Some(3) && err.contains("after position"), "{code:?} {err}");
    // `send` and `wait` in one command.
    let out = here.done(&[&["send", "one", "again", "--wait", "--json"], &until[..]].concat());
    let sent: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&sent["sent"], &sent["session"]["status"]["state"]), (&json!(true), &json!("waiting")), "{sent}");
    assert_eq!(here.got(), "do the work\nover\nagain\nover\n");
    let out = here.done(&[&["send", "one", "ask me", "--wait"], &until[..]].concat());
    assert!(out.contains("waiting_approval"), "{out}");
    // Over HTTP.
    here.done(&["send", "one", "--keys", "enter"]);
    eventually("the turn is over", || here.got().ends_with("\nover\n").then_some(()));
    here.is("waiting");
    let (status, sent) = here.post("/api/v1/runs/one/input", &json!({ "text": "over http", "submit": true }));
    assert_eq!(status, 200, "{sent}");
    let query = format!("/api/v1/sessions/one/wait?until=waiting&timeout_ms=60000&after={}", sent["position"]);
    let reached = here.server.client.get(&query).unwrap();
    assert_eq!(reached.json()["status"]["state"], "waiting");
    assert!(here.got().ends_with("over http\nover\n"), "{}", here.got());
}

#[test]
fn text_is_sent_to_a_quiet_shell_but_not_to_a_menu() {
    let machine = Machine::new(PROGRAM);
    machine.configure("autostart = false\n");
    let here = TypingMachine { server: machine.serve(), machine };
    here.done(&["run", "--detach", "--name", "one", "--", "sh"]);
    here.done(&["send", "one", "echo fed the $((40+2)) walruses"]);
    here.shows("fed the 42 walruses");
    // A menu of an agent started by the shell, which capture does not know yet.
    let menu = here.file("menu");
    let text =
        "────────────────────────\n Select model\n\n❯ 1. Default\n   2. Other\n\n Enter to confirm · Esc to exit\n";
    fs::write(&menu, text).unwrap();
    here.done(&["send", "one", &format!("clear; cat {}; read -r line; echo got $line", menu.display())]);
    here.shows("Enter to confirm");
    let (code, _, err) = here.run(&["send", "one", "hello"]);
    assert!(code == Some(5) && err.contains("looks like a dialog"), "{code:?} {err}");
}
