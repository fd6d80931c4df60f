//! `capture hooks` and the version of the agent on the PATH: only events supported by that version are installed, and
//! each status check compares the installed events with it. The agents are scripts that answer `--version`.

use std::{fs, path::PathBuf};

use events::Provider::{Claude, Codex, Gemini};
use hooks::catalogue;
use serde_json::{Value, json};
use tests::{eventually, program::Machine};

const SETTINGS: &str = "{\n  \"permissions\": {\"deny\": [\"Bash(rm:*)\"]}\n}\n";
/// Events that Claude Code 2.0.60 does not support.
const UNKNOWN: [&str; 5] = ["PermissionDenied", "StopFailure", "PostCompact", "Elicitation", "ElicitationResult"];

struct HookVersionsMachine {
    machine: Machine,
}

struct CommandOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl HookVersionsMachine {
    fn new() -> Self {
        let here = Self { machine: Machine::new(super::PROGRAM) };
        fs::write(here.settings(), SETTINGS).unwrap();
        here
    }

    fn settings(&self) -> PathBuf {
        self.machine.home().join(".claude/settings.json")
    }

    fn read(&self) -> String {
        fs::read_to_string(self.settings()).unwrap()
    }

    /// The events with an entry in the settings of Claude Code.
    fn events(&self) -> Vec<String> {
        let settings: Value = serde_json::from_str(&self.read()).unwrap();
        settings["hooks"].as_object().map(|hooks| hooks.keys().cloned().collect()).unwrap_or_default()
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        let output = self.machine.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn install(&self, more: &[&str]) -> CommandOutput {
        self.run(&[&["hooks", "install", "--yes", "--agent", "claude"], more].concat())
    }

    /// The output of `capture hooks status` for Claude Code.
    fn status(&self) -> Value {
        let said = self.run(&["hooks", "status", "--json", "--agent", "claude"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        serde_json::from_str::<Value>(&said.out).unwrap()["agents"][0].clone()
    }

    /// The line of `capture doctor` with this name, and the exit code.
    fn doctor(&self, name: &str) -> (Option<i32>, String) {
        let said = self.run(&["doctor"]);
        let line = said
            .out
            .lines()
            .find(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ").starts_with(name));
        (said.code, line.unwrap_or_else(|| panic!("{name}:\n{}{}", said.out, said.err)).to_owned())
    }

    /// Asserts that nothing was installed and that the error contains `says`.
    fn is_refused(&self, says: &str) {
        let said = self.install(&[]);
        assert_eq!(said.code, Some(5), "{}", said.err);
        for part in [says, "claude: hooks are not installed: ", "--force"] {
            assert!(said.err.contains(part), "{part}: {}", said.err);
        }
        assert_eq!(self.read(), SETTINGS);
    }
}

#[test]
fn only_hook_events_supported_by_the_agent_version_are_installed() {
    let here = HookVersionsMachine::new();
    here.machine.agent_version(Claude, "2.0.60");
    assert_eq!(here.install(&[]).code, Some(0));
    let known = |event: &&&str| !UNKNOWN.contains(*event);
    let mut known: Vec<_> = catalogue(Claude).iter().filter(known).copied().collect();
    known.sort_unstable();
    let mut events = here.events();
    events.sort_unstable();
    assert_eq!(events, known);
    let status = here.status();
    assert_eq!((&status["state"], &status["version"]), (&json!("installed"), &json!("2.0.60")), "{status}");
    assert_eq!(status["events"].as_array().unwrap().len(), 12);
    let (code, line) = here.doctor("claude settings");
    assert!(
        code == Some(0) && line.starts_with("✓ ") && line.contains("2.0.60 supports all installed hook events"),
        "{line}"
    );

    // After an upgrade some events are missing; `install` adds them.
    here.machine.agent_version(Claude, "2.1.330");
    let status = here.status();
    assert_eq!(status["state"], "partly", "{status}");
    assert_eq!(here.install(&[]).code, Some(0));
    assert_eq!((here.status()["state"].as_str(), here.events().len()), (Some("installed"), 17));

    // After a downgrade the agent ignores all of its settings; status reports this until the unsupported events are
    // removed.
    here.machine.agent_version(Claude, "2.0.60");
    let status = here.status();
    assert_eq!(status["state"], "harmful", "{status}");
    assert_eq!(status["unknown_events"].as_array().unwrap().len(), UNKNOWN.len(), "{status}");
    let words =
        "claude 2.0.60 ignores your whole settings file, including permission rules, because it does not support";
    let said = here.run(&["hooks", "status"]);
    assert!(said.out.contains(words) && said.out.contains("`PermissionDenied`"), "{}", said.out);
    assert!(said.out.contains("breaks settings    17 installed, 12 supported"), "{}", said.out);
    let (code, line) = here.doctor("claude settings");
    assert!(code == Some(1) && line.starts_with("✗ ") && line.contains(words), "{line}");
    assert_eq!(here.install(&[]).code, Some(0));
    assert_eq!((here.status()["state"].as_str(), here.events().len()), (Some("installed"), 12));
    assert_eq!(here.doctor("claude settings").0, Some(0));

    assert_eq!(here.run(&["hooks", "uninstall", "--yes"]).code, Some(0));
    assert_eq!(here.read(), SETTINGS, "byte for byte");
}

#[test]
fn hooks_installed_before_the_agent_are_checked_once_it_appears() {
    let here = HookVersionsMachine::new();
    let said = here.install(&[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("the version was not checked") || said.err.contains("the version was not checked"),
        "{}",
        said.err
    );
    assert_eq!(here.events().len(), 17);
    here.machine.agent_version(Claude, "2.0.60");
    assert_eq!(here.status()["state"], "harmful");
    here.machine.agent_version(Claude, "2.1.330");
    assert_eq!(here.status()["state"], "installed");
}

#[test]
fn hooks_are_not_installed_for_an_unknown_or_unsupported_version() {
    let here = HookVersionsMachine::new();
    // The agent was used here, started by a path or an alias.
    fs::write(here.machine.claude("5a6b7c8d-0000-4000-8000-000000000001"), "{}\n").unwrap();
    here.is_refused(
        "claude: hooks are not installed: `claude` is not on the PATH, so its version is unknown. Put it on the PATH, or use --force",
    );
    here.machine.agent_version(Claude, "1.0.30");
    here.is_refused("claude 1.0.30 is older than 1.0.38, the oldest version that capture was tested with");
    here.machine.agent_script(Claude, "echo 'command line error'; exit 2");
    here.is_refused("printed no version: \"command line error\"");
    here.machine.agent_script(Claude, "echo 2.1.330");
    here.is_refused("printed no version: \"2.1.330\"");
    here.machine.agent_script(Claude, "exec sleep 1000");
    here.is_refused("--version` did not answer within");
    let dry = here.run(&["hooks", "install", "--dry-run", "--agent", "claude"]);
    assert_eq!((dry.code, dry.out.as_str()), (Some(5), ""), "{}", dry.err);
    // Codex before 0.114 reads no hooks.
    here.machine.agent_version(Codex, "0.60.1");
    let said = here.run(&["hooks", "install", "--yes", "--agent", "codex"]);
    assert!(said.code == Some(5) && said.err.contains("codex 0.60.1 does not support hooks"), "{}", said.err);
    assert!(!here.machine.home().join(".codex/hooks.json").exists());
}

#[test]
fn force_installs_all_hook_events_and_reports_the_risk() {
    let here = HookVersionsMachine::new();
    for (version, why) in [
        (None, "`claude` is not on the PATH"),
        (Some("1.0.30"), "older than 1.0.38"),
        (Some("2.1.87"), "claude 2.1.87 does not support `PermissionDenied`"),
    ] {
        if let Some(version) = version {
            here.machine.agent_version(Claude, version);
        }
        let said = here.install(&["--force"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.err.contains(why) && said.err.contains("commands that you denied may run"), "{}", said.err);
        assert_eq!(here.events().len(), 17);
        let status = here.status();
        assert!(status["state"] == "harmful" && status["mismatch"].is_string(), "{status}");
        let (code, line) = here.doctor("claude settings");
        assert!(code == Some(1) && line.starts_with("✗ "), "{line}");
        assert_eq!(here.run(&["hooks", "uninstall", "--yes"]).code, Some(0));
        assert_eq!(here.read(), SETTINGS);
    }
    // Without a risk none is reported.
    here.machine.agent_version(Claude, "2.1.330");
    let said = here.install(&["--force"]);
    assert!(said.code == Some(0) && !said.err.contains("forced"), "{}", said.err);
    assert_eq!(here.status()["state"], "installed");
}

#[test]
fn a_running_server_reports_hooks_unsupported_after_a_downgrade() {
    let here = HookVersionsMachine::new();
    // Installed by npm.
    let package = here.machine.home().join("node_modules/@anthropic-ai/claude-code");
    fs::create_dir_all(&package).unwrap();
    here.machine.agent_script(Claude, "exit 1");
    fs::rename(here.machine.agents().join("claude"), package.join("cli.js")).unwrap();
    here.machine.link_agent(Claude, &package.join("cli.js")).unwrap();
    let is = |version: &str| {
        let described = format!(r#"{{"name": "@anthropic-ai/claude-code", "version": "{version}"}}"#);
        fs::write(package.join("package.json"), described).unwrap();
    };
    is("2.1.330");
    assert_eq!(here.install(&[]).code, Some(0));
    let server = here.machine.serve();
    let row = || {
        let health = server.client.json("/api/v1/health/sources").unwrap();
        health["sources"].as_array().unwrap().iter().find(|row| row["name"] == "claude hooks").unwrap().clone()
    };
    assert_eq!(row()["trouble"], Value::Null);
    is("2.1.55");
    let trouble = eventually("the older agent is noticed", || row()["trouble"].as_str().map(str::to_owned));
    assert!(trouble.starts_with("claude 2.1.55 ignores your whole settings file"), "{trouble}");
    let metrics = String::from_utf8(server.client.get("/metrics").unwrap().body).unwrap();
    assert!(metrics.lines().any(|line| line == "capture_source_trouble{source=\"claude hooks\"} 1"), "{metrics}");
    assert_eq!(here.install(&[]).code, Some(0));
    assert_eq!(row()["trouble"], Value::Null);
}

#[test]
fn unsupported_hook_events_do_not_harm_codex_and_gemini() {
    let here = HookVersionsMachine::new();
    here.machine.agent_version(Codex, "0.169.0");
    here.machine.agent_version(Gemini, "0.61.0");
    let install = || here.run(&["hooks", "install", "--yes", "--agent", "codex,gemini"]);
    assert_eq!(install().code, Some(0));
    here.machine.agent_version(Codex, "0.120.0");
    let said = here.run(&["hooks", "status"]);
    assert!(said.out.contains("codex 0.120.0 does not support the hook events"), "{}", said.out);
    let (code, line) = here.doctor("codex settings");
    assert!(code == Some(0) && line.contains("applies everything else in the file"), "{line}");
    assert_eq!(install().code, Some(0));
    let hooks: Value =
        serde_json::from_str(&fs::read_to_string(here.machine.home().join(".codex/hooks.json")).unwrap()).unwrap();
    assert_eq!(hooks["hooks"].as_object().unwrap().len(), 5, "{hooks}");
    // An agent that is no longer on the PATH is not harmed either.
    fs::remove_file(here.machine.agents().join("gemini")).unwrap();
    let (code, line) = here.doctor("gemini settings");
    assert!(code == Some(0) && line.contains("`gemini` is not on the PATH"), "{line}");
}
