//! Text that could take over a terminal, in every place where an agent or another program can put it: no command prints
//! it unescaped, neither on a terminal nor as JSON. Also output that has no reader any more.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Output, Stdio},
};

use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, Server},
    terminal_user::{User, end_all},
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// Hostile text: a marker word; C1 bytes as control sequence, device control and application command; a window title,
/// the clipboard, a link and a terminal query; a colour; a bidirectional override, a line separator, zero-width,
/// private and unassigned characters; delete, bell and backspace.
const EVIL: &str = "EVIL\u{9b}31m\u{90}q\u{9c}\u{9f}x\u{9c}\u{1b}]0;pwn\u{7}\u{1b}]52;c;eA==\u{1b}\\\u{1b}]8;;http:x\u{7}\u{1b}[6n\
                    \u{1b}[31mINJECTED\u{202e}rtl\u{2066}\u{2028}\u{200b}\u{feff}\u{e000}\u{f0000}\u{378}\u{ad}\u{7f}\u{8}\u{85}!";

/// Hostile text without control characters, which labels must not contain.
const SOFT: &str = "EVIL\u{202e}\u{2066}\u{2028}\u{200b}\u{feff}\u{e000}\u{f0000}\u{378}\u{ad}";

/// The hostile text as a file name.
fn evil_name() -> String {
    EVIL.replace('/', ":")
}

struct HostileMachine {
    server: Server,
    machine: Machine,
    evil_dir: PathBuf,
    id: String,
}

impl Drop for HostileMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

impl HostileMachine {
    fn new() -> Self {
        let machine = Machine::new(PROGRAM);
        let evil_dir = machine.project().join(evil_name());
        fs::create_dir(&evil_dir).unwrap();
        machine.configure("autostart = false\n");
        let server = machine.serve();
        Self { server, machine, evil_dir, id: session(1) }
    }

    /// Writes a session in which every text is hostile, with an approval.
    fn say_all(&self) {
        let (id, cwd) = (&self.id, self.evil_dir.to_str().unwrap());
        let path = self.machine.claude(id);
        let hostile = |line: String| {
            let mut record: Value = serde_json::from_str(&line).unwrap();
            for (pointer, value) in [("/gitBranch", EVIL), ("/version", EVIL), ("/message/model", EVIL)] {
                if let Some(place) = record.pointer_mut(pointer) {
                    *place = json!(value);
                }
            }
            record.to_string() + "\n"
        };
        append(&path, &hostile(prompt(id, &uuid(1, 0), cwd, EVIL)));
        let call =
            json!({"type": "tool_use", "id": "toolu_1", "name": EVIL, "input": {"command": EVIL, "file_path": EVIL}});
        let mut record: Value = serde_json::from_str(&answer(id, &uuid(1, 1), cwd, EVIL)).unwrap();
        record["message"]["content"] = json!([{"type": "text", "text": EVIL}, call]);
        record["message"]["stop_reason"] = json!("tool_use");
        append(&path, &hostile(record.to_string()));
        let mut record: Value = serde_json::from_str(&prompt(id, &uuid(1, 2), cwd, "")).unwrap();
        record["message"]["content"] =
            json!([{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": EVIL}]);
        record["toolUseResult"] = json!(EVIL);
        append(&path, &hostile(record.to_string()));
        append(&path, &hostile(answer(id, &uuid(1, 3), cwd, EVIL)));
        append(&path, &(json!({"type": EVIL, "sessionId": id, "uuid": uuid(1, 4)}).to_string() + "\n"));
        append(&path, &(json!({"type": "custom-title", "customTitle": EVIL, "sessionId": id}).to_string() + "\n"));
        self.server.caught_up(id, &path);
        let payload = json!({
            "session_id": id, "cwd": cwd, "hook_event_name": "PermissionRequest", "tool_name": "Bash",
            "tool_input": {"command": EVIL, "description": EVIL},
        });
        let mut hook = self.machine.command(&["hook", "claude"]);
        let mut hook = hook.stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
        assert!(hook.wait().unwrap().success());
        self.approval();
    }

    fn approval(&self) -> String {
        eventually("the approval is there", || {
            let page = self.server.client.json("/api/v1/approvals?limit=10")?;
            Some(page["approvals"][0]["id"].as_str()?.to_owned())
        })
    }

    /// The output of a command on a terminal.
    fn on_terminal(&self, script: &str) -> String {
        let mut user = User::start_with(
            &self.machine,
            script,
            &[
                ("EVIL", EVIL),
                ("SOFT", SOFT),
                ("NAME", &evil_name()),
                ("ID", &self.id),
                ("DIR", self.evil_dir.to_str().unwrap()),
            ],
        );
        user.resize(200, 50);
        let (shown, _) = user.end();
        String::from_utf8(shown).unwrap_or_else(|error| panic!("{script}: not UTF-8: {error}"))
    }
}

/// Whether these are colours that we, or the libraries that draw our tables and help, produce.
fn is_own_colour(parameters: &str) -> bool {
    let simple = |number: &str| matches!(number.parse::<u8>(), Ok(0..=4 | 22..=24 | 31..=37 | 39 | 91..=97));
    parameters.strip_prefix("38;5;").map_or_else(|| parameters.split(';').all(simple), |n| n.parse::<u8>().is_ok())
}

/// Asserts that the output contains nothing that affects a terminal.
#[track_caller]
fn is_harmless(what: &str, shown: &str) {
    let mut rest = shown;
    while let Some(c) = rest.chars().next() {
        let here = || rest.chars().take(60).collect::<String>().escape_debug().to_string();
        if let Some(behind) = rest.strip_prefix("\x1b[") {
            let colour = behind.split_once('m').filter(|(parameters, _)| is_own_colour(parameters));
            let Some((_, behind)) = colour else { panic!("{what}: a sequence is shown: {}", here()) };
            assert!(!behind.starts_with("INJECTED"), "{what}: the agent's own colour is shown: {}", here());
            rest = behind;
            continue;
        }
        let fine = matches!(c, '\n' | '\t' | '\u{fe0f}') || rest.starts_with("\r\n") || events::visible::shows(c);
        assert!(fine, "{what}: {c:?} is shown: {} in {:?}", here(), shown);
        rest = &rest[c.len_utf8()..];
    }
}

#[test]
fn no_command_prints_hostile_text_unescaped() {
    let here = HostileMachine::new();
    here.say_all();
    let approval = here.approval();
    let pi = here.machine.project().join(format!("{}.jsonl", evil_name()));
    let tree = [
        json!({"type": "session", "version": 3, "id": EVIL, "timestamp": "2026-11-20T04:37:12.189Z", "cwd": EVIL}),
        json!({"type": "message", "id": "0000000a", "parentId": null, "timestamp": EVIL,
               "message": {"role": EVIL, "content": [{"type": "text", "text": EVIL}, {"type": "toolCall", "name": EVIL}]}}),
        json!({"type": "label", "id": "0000000b", "parentId": "0000000a", "targetId": "0000000a", "label": EVIL}),
        json!({"type": EVIL, "id": "0000000c", "parentId": "0000000b"}),
    ];
    fs::write(&pi, tree.map(|line| line.to_string() + "\n").concat() + EVIL).unwrap();
    fs::write(here.machine.project().join("text"), EVIL).unwrap();
    let settings = here.machine.home().join(".claude/settings.json");
    fs::write(&settings, json!({"env": {"X": EVIL}, "hooks": {EVIL: []}}).to_string()).unwrap();

    // Whether the hostile text must appear, escaped: a command that shows none of it proves nothing.
    const SHOWS: bool = true;
    let mut commands: Vec<(String, bool)> = Vec::new();
    let mut add = |shows: bool, all: &[&str]| commands.extend(all.iter().map(|c| ((*c).to_owned(), shows)));
    add(SHOWS, &["label $ID \"$SOFT=$SOFT\"", "label $ID"]);
    add(SHOWS, &["ps --all", "ps --all --json", "ps $ID", "show $ID", "show $ID --json"]);
    add(SHOWS, &["events $ID", "events $ID --json", "explain $ID --json", "handoff $ID", "handoff $ID --json"]);
    add(SHOWS, &["standup --since 2000h --json", "approvals", "approvals --json"]);
    add(SHOWS, &["policy explain \"$EVIL\"", "policy explain --json \"$EVIL\"", "policy check \"$EVIL\""]);
    add(SHOWS, &["redact text", "redact --json text", "redact \"$EVIL\"", "export \"./$EVIL\""]);
    add(SHOWS, &["show \"$EVIL\"", "attach \"$EVIL\"", "screen \"$EVIL\"", "approve \"$EVIL\"", "send \"$EVIL\" x"]);
    add(SHOWS, &["audit verify --head \"$EVIL\"", "ps --state \"$EVIL\"", "\"$EVIL\"", "ps \"--$EVIL\""]);
    add(SHOWS, &["--data-dir \"$DIR\" audit show", "--data-dir \"$DIR\" doctor"]);
    add(SHOWS, &["agent drive --agent claude --program \"$EVIL\" x"]);
    add(SHOWS, &["run --name \"$EVIL\" -- \"$EVIL\"", "run --detach --name \"$SOFT\" -- sleep 8888"]);
    add(SHOWS, &["attach nobody", "notify test \"$EVIL\"", "deny \"$EVIL\"", "wait \"x$EVIL\""]);
    for verb in ["load", "tree", "context", "path", "labels", "load --json", "tree --json", "llm"] {
        add(SHOWS, &[&format!("agent session {verb} \"$NAME.jsonl\"")]);
    }
    add(SHOWS, &["agent session fork \"$NAME.jsonl\" \"$EVIL\""]);
    add(
        !SHOWS,
        &[
            "queue",
            "queue $ID \"$EVIL\"",
            "explain $ID",
            "findings \"$EVIL\"",
            "--data-dir \"$DIR\" ps",
            "standup --since 2000h",
            "doctor",
            "doctor --json",
            "audit show",
            "audit export",
        ],
    );
    add(
        !SHOWS,
        &[
            "audit verify",
            "audit verify --json",
            "findings --all",
            "findings --json",
            "hooks status",
            "hooks install --dry-run",
        ],
    );
    add(!SHOWS, &["wait $ID --timeout 0", "telemetry env claude", "--help", "--version", "completions bash"]);
    let deny = format!("deny {approval} --message \"$EVIL\"");
    add(!SHOWS, &[&format!("approvals {approval}"), &deny, "audit show", "audit show --json", "audit export"]);
    let mut seen = Vec::new();
    for (command, shows) in commands {
        let shown = here.on_terminal(&format!("\"$PROGRAM\" {command}"));
        is_harmless(&command, &shown);
        assert!(!shown.contains("panicked"), "{command}: {shown}");
        if shows && !shown.contains("EVIL") {
            seen.push(format!("{command}: {shown}"));
        }
    }
    assert!(seen.is_empty(), "these show nothing of what is hostile:\n{}", seen.join("\n"));
    is_harmless("the log", &here.server.log());
}

#[test]
fn ps_watch_emits_no_escape_sequences_of_session_text() {
    let here = HostileMachine::new();
    here.say_all();
    let mut user = User::start(&here.machine, "\"$PROGRAM\" ps --all --watch");
    user.resize(200, 50);
    let before = user.expect("EVIL");
    let drawn = before + &user.expect("q quit");
    let ours = ["\x1b[?1049h", "\x1b[?25l", "\x1b[?7l", "\x1b[2J", "\x1b[H", "\x1b[K"];
    let without = ours.iter().fold(drawn, |text, sequence| text.replace(sequence, ""));
    is_harmless("ps --watch", &without);
    user.is_raw_soon();
    user.types("q");
    user.expect("\x1b[?1049l");
    assert_eq!(user.end().1, 0);
}

#[test]
fn piped_json_escapes_control_characters_and_keeps_the_value() {
    let here = HostileMachine::new();
    here.say_all();
    for arguments in [&["show", &here.id, "--json"][..], &["events", &here.id, "--json"], &["ps", "--all", "--json"]] {
        let output = here.machine.command(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        is_harmless(&format!("{arguments:?}"), &text);
        let values: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let whole = values.iter().any(|value| {
            let mut left = vec![value];
            while let Some(value) = left.pop() {
                match value {
                    Value::String(text) if text.contains(EVIL) => return true,
                    Value::Array(values) => left.extend(values),
                    Value::Object(fields) => left.extend(fields.values()),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
            }
            false
        });
        assert!(whole, "{arguments:?}: {text}");
    }
}

/// Runs a command whose standard output has no reader.
fn unread(machine: &Machine, arguments: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    machine.command(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_closed_stdout_ends_every_command_quietly() {
    let here = HostileMachine::new();
    here.say_all();
    fs::write(here.machine.project().join("text"), EVIL).unwrap();
    let text = here.machine.project().join("text");
    let id = here.id.as_str();
    for arguments in [
        &["ps", "--all"][..],
        &["ps", "--all", "--json"],
        &["ps", "--all", "--json", "--watch"],
        &["show", id],
        &["show", id, "--json"],
        &["events", id],
        &["events", id, "--json"],
        &["explain", id],
        &["approvals"],
        &["approvals", "--json"],
        &["findings"],
        &["audit", "show"],
        &["audit", "export"],
        &["audit", "verify"],
        &["audit", "verify", "--json"],
        &["policy", "explain", "ls"],
        &["redact", text.to_str().unwrap()],
        &["standup"],
        &["handoff", id],
        &["queue"],
        &["hooks", "status"],
        &["notify", "channels"],
        &["telemetry", "env", "claude"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ] {
        let Output { status, stderr, .. } = unread(&here.machine, arguments);
        let stderr = String::from_utf8_lossy(&stderr);
        assert_eq!((status.code(), status.signal()), (Some(0), None), "{arguments:?}: {stderr}");
        assert_eq!(stderr, "", "{arguments:?}");
    }
    // Standard error has no reader either.
    for arguments in [&["show", "nothing"][..], &["ps", "--nonsense"], &["audit", "verify", "--head", "x"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = here.machine.command(arguments);
        let status = command.stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap();
        assert!(matches!(status.code(), Some(2..=5)), "{arguments:?}: {status:?}");
    }
    // Failures are still reported on standard error when standard output has no reader.
    let head = format!("1:{}", "07".repeat(32));
    let Output { status, stderr, .. } = unread(&here.machine, &["audit", "verify", "--json", "--head", &head]);
    assert_eq!(status.code(), Some(1), "{}", String::from_utf8_lossy(&stderr));
}
