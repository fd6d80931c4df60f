//! `capture hooks`: the real program changes the agents' settings on a machine.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use tests::program::Machine;

const CLAUDE: &str = "{\n  // the large one\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n    ]\n  }\n}\n";
const CODEX: &str = "{\"hooks\":{}}";

struct HooksMachine {
    machine: Machine,
}

struct CommandOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl HooksMachine {
    fn new() -> Self {
        let here = Self { machine: Machine::new(super::PROGRAM) };
        here.machine.newest_agents();
        fs::write(here.claude(), CLAUDE).unwrap();
        fs::write(here.codex(), CODEX).unwrap();
        here
    }

    fn claude(&self) -> PathBuf {
        self.machine.home().join(".claude/settings.json")
    }

    fn codex(&self) -> PathBuf {
        self.machine.home().join(".codex/hooks.json")
    }

    fn gemini(&self) -> PathBuf {
        self.machine.home().join(".gemini/settings.json")
    }

    fn hooks(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.machine.command(&[&["hooks"], arguments].concat()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The state of each agent in the output of `hooks status`.
    fn states(&self) -> Vec<String> {
        let said = self.hooks(&["status", "--json"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let status: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(status["schema_version"], 1);
        let agents = status["agents"].as_array().unwrap().clone();
        agents.iter().map(|a| format!("{} {}", a["provider"].as_str().unwrap(), a["state"].as_str().unwrap())).collect()
    }

    fn untouched(&self) {
        assert_eq!(read(&self.claude()), CLAUDE);
        assert_eq!(read(&self.codex()), CODEX);
        assert!(!self.gemini().exists());
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn uninstalling_hooks_restores_the_original_settings() {
    let here = HooksMachine::new();
    assert_eq!(here.states(), ["claude not_installed", "codex not_installed", "gemini not_installed"]);
    let said = here.hooks(&["install", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("only after you have trusted them"), "{}", said.err);
    assert_eq!(here.states(), ["claude installed", "codex installed", "gemini installed"]);

    let claude = read(&here.claude());
    assert!(claude.contains("// the large one") && claude.contains("say done"), "{claude}");
    let codex: Value = serde_json::from_str(&read(&here.codex())).unwrap();
    let entry = &codex["hooks"]["PermissionRequest"][0]["hooks"][0];
    let (program, data) = (super::PROGRAM, here.machine.data());
    assert_eq!(entry["command"], format!("'{program}' hook codex --data-dir '{}' # capture-hook", data.display()));
    assert_eq!((&entry["type"], &entry["timeout"]), (&"command".into(), &5.into()));
    let gemini: Value = serde_json::from_str(&read(&here.gemini())).unwrap();
    let entry = &gemini["hooks"]["Notification"][0]["hooks"][0];
    assert_eq!((&entry["name"], &entry["timeout"]), (&"capture".into(), &5000.into()));
    assert!(gemini["hooks"]["AfterModel"].is_null(), "it would slow the agent");

    let again = here.hooks(&["install"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), ""), "nothing to agree to: {}", again.err);
    assert_eq!(again.err.matches("already installed").count(), 3, "{}", again.err);
    assert_eq!(read(&here.claude()), claude);

    let said = here.hooks(&["uninstall", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    here.untouched();
    assert_eq!(here.hooks(&["uninstall"]).code, Some(0));
}

#[test]
fn installed_hook_commands_always_name_the_data_directory() {
    let here = HooksMachine::new();
    let home = here.machine.home();
    let usual = home.join(".local/share/capture");
    let command = |set_data: bool| {
        let mut command = here.machine.command(&["hooks", "install", "--yes", "--agent", "codex"]);
        command.env_remove("XDG_DATA_HOME").env_remove("CAPTURE_DATA_DIR");
        if set_data {
            command.env("CAPTURE_DATA_DIR", here.machine.data());
        }
        assert!(command.output().unwrap().status.success());
        let codex: Value = serde_json::from_str(&read(&here.codex())).unwrap();
        codex["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
    };
    // An agent's environment cannot redirect its hooks to another server.
    let line = |data: &std::path::Path| {
        format!("'{}' hook codex --data-dir '{}' # capture-hook", super::PROGRAM, data.display())
    };
    assert_eq!(command(false), line(&usual));
    assert!(usual.join("backups").is_dir());
    assert_eq!(command(true), line(&here.machine.data()), "brought up to date");
}

#[test]
fn hooks_install_changes_nothing_without_confirmation() {
    let here = HooksMachine::new();
    let said = here.hooks(&["install", "--dry-run"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let header = format!("--- {0}\n+++ {0}\n@@ ", here.claude().display());
    assert!(said.out.contains(&header), "{}", said.out);
    assert!(said.out.contains(&format!("--- /dev/null\n+++ {}\n", here.gemini().display())), "{}", said.out);
    assert!(!said.out.contains("say done\"}]}]\n-"), "{}", said.out);
    here.untouched();

    let said = here.hooks(&["install"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(said.out.contains(&header) && said.err.contains("--yes"), "{}", said.err);
    here.untouched();
    assert!(!here.machine.data().join("backups").exists());

    let said = here.hooks(&["install", "--json"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    let planned: Value = serde_json::from_str(&said.out).unwrap();
    let of = |agent: usize, key: &str| planned["agents"][agent][key].clone();
    assert_eq!((of(0, "change"), of(0, "done")), ("edit".into(), false.into()));
    assert_eq!(of(2, "change"), "create");
    assert!(of(0, "diff").as_str().unwrap().starts_with("--- "));
    here.untouched();
}

#[test]
fn a_refused_settings_file_does_not_stop_installation_for_other_agents() {
    let here = HooksMachine::new();
    let cut = "{\n  \"model\": \"opus\",\n";
    fs::write(here.claude(), cut).unwrap();
    fs::set_permissions(here.codex(), fs::Permissions::from_mode(0o444)).unwrap();
    let said = here.hooks(&["install", "--yes"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(said.err.contains("settings.json:") && said.err.contains("not valid JSON"), "{}", said.err);
    assert!(said.err.contains("hooks.json: the file is read-only; nothing was changed"), "{}", said.err);
    assert_eq!(read(&here.claude()), cut);
    assert_eq!(read(&here.codex()), CODEX);
    assert!(here.gemini().exists());
    assert_eq!(here.states(), ["claude unreadable", "codex not_installed", "gemini installed"]);
}

#[test]
fn hooks_are_installed_only_for_agents_with_a_home_directory() {
    let here = HooksMachine::new();
    fs::remove_dir_all(here.machine.home().join(".gemini")).unwrap();
    assert_eq!(here.hooks(&["install", "--yes"]).code, Some(0));
    assert!(!here.machine.home().join(".gemini").exists());
    assert_eq!(here.states(), ["claude installed", "codex installed"]);
    let said = here.hooks(&["install", "--yes", "--agent", "gemini"]);
    assert_eq!(said.code, Some(5));
    assert!(said.err.contains(".gemini does not exist. Start gemini once, then install again"), "{}", said.err);
    assert_eq!(here.hooks(&["install", "--agent", "pi"]).code, Some(2));
    assert_eq!(here.hooks(&["install", "--yes", "--dry-run"]).code, Some(2));
}

#[test]
fn hooks_in_a_custom_config_dir_are_installed_through_a_symlink() {
    let here = HooksMachine::new();
    let elsewhere = here.machine.project().join("claude home");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("mine.json"), CLAUDE).unwrap();
    symlink("mine.json", elsewhere.join("settings.json")).unwrap();
    for (verb, contains) in [("install", true), ("uninstall", false)] {
        let mut command = here.machine.command(&["hooks", verb, "--yes", "--agent", "claude"]);
        assert!(command.env("CLAUDE_CONFIG_DIR", &elsewhere).output().unwrap().status.success());
        assert!(elsewhere.join("settings.json").symlink_metadata().unwrap().is_symlink());
        assert_eq!(read(&elsewhere.join("mine.json")).contains("capture-hook"), contains);
    }
    assert_eq!(read(&elsewhere.join("mine.json")), CLAUDE);
    here.untouched();
}

#[test]
fn hooks_status_lists_every_problem() {
    let here = HooksMachine::new();
    let old = "{\"disableAllHooks\": true, \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"'/gone/capture' hook claude # capture-hook\"}]}]}}";
    fs::write(here.claude(), old).unwrap();
    assert_eq!(here.states()[0], "claude turned_off");
    let said = here.hooks(&["status"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for part in [
        "turned off",
        "1/17",
        "missing: SessionStart",
        "out of date: Stop",
        "/gone/capture does not exist",
        "disableAllHooks",
    ] {
        assert!(said.out.contains(part), "{part}:\n{}", said.out);
    }
}

/// Answers the question on a terminal; returns the exit code and the text of the question.
fn answered(here: &HooksMachine, answer: &[u8]) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = here.machine.command(&["hooks", "install", "--agent", "claude"]);
    command.stdin(terminal.try_clone().unwrap()).stderr(terminal.try_clone().unwrap());
    // Input typed before the question must not answer it.
    rustix::io::write(&master, b"y\n").unwrap();
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (mut said, mut part) = (Vec::new(), [0; 1024]);
    while !String::from_utf8_lossy(&said).contains("[y/N] ") {
        let count = rustix::io::read(&master, &mut part).unwrap();
        said.extend_from_slice(&part[..count]);
    }
    rustix::io::write(&master, answer).unwrap();
    let output = child.wait_with_output().unwrap();
    // Reads to the end; the read fails once all other descriptors of the terminal are closed.
    drop((command, terminal));
    while let Ok(count @ 1..) = rustix::io::read(&master, &mut part) {
        said.extend_from_slice(&part[..count]);
    }
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("--- "), "the change is shown first");
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn hooks_install_asks_for_confirmation_on_a_terminal() {
    let here = HooksMachine::new();
    for no in ["n\n", "\n", "yup\n"] {
        let (code, said) = answered(&here, no.as_bytes());
        assert_eq!(code, Some(5), "{said}");
        here.untouched();
    }
    let (code, said) = answered(&here, b"y\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Change this file? [y/N]"), "{said}");
    assert!(read(&here.claude()).contains("capture-hook"));
}
