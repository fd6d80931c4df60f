//! Only the owner can access stored files, whatever the umask.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::Path,
    process::Command,
};

use serde_json::{Value, json};
use tests::eventually;

use super::{Hook, PROGRAM, RequirementsMachine, SESSION, below};

/// The entries below a directory that other users can access, and the number of entries checked.
fn open_to_others(dir: &Path) -> (Vec<String>, usize) {
    let (mut open, mut seen) = (Vec::new(), 0);
    below(dir, &mut |path, about| {
        let kind = about.file_type();
        if kind.is_symlink() {
            return;
        }
        seen += 1;
        let mode = about.permissions().mode() & 0o7777;
        let most = if kind.is_dir() { 0o700 } else { 0o600 };
        if mode & !most != 0 {
            let what = if kind.is_socket() { "socket" } else { "file or directory" };
            open.push(format!("{what} {} has mode {mode:o}", path.display()));
        }
    });
    (open, seen)
}

/// The program as started by a user with umask 000. `TMPDIR` is a directory of the test.
fn called(here: &RequirementsMachine, arguments: &[&str]) -> Command {
    let template = here.machine.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\"", PROGRAM]).args(arguments);
    command.env_clear().current_dir(here.root()).stdin(std::process::Stdio::null());
    command.envs(template.get_envs().map(|(name, value)| (name, value.unwrap_or_default())));
    command.env("TMPDIR", here.root().join("tmp")).env("EDITOR", "true");
    command
}

#[test]
fn stored_files_are_private_under_any_umask() {
    let here = RequirementsMachine::new();
    let (data, root) = (here.machine.data(), here.root());
    fs::create_dir(root.join("tmp")).unwrap();
    let run = |arguments: &[&str]| {
        let output = called(&here, arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    let hook =
        |wait: &str, payload: &Value| Hook::start(&mut called(&here, &["hook", "claude", "--approver", wait]), payload);
    // Hooks before any server has run: their deliveries wait in the spool.
    let start = json!({"session_id": SESSION, "cwd": here.machine.project(), "hook_event_name": "SessionStart",
        "source": "startup"});
    assert_eq!(hook("0", &start).said(), None);
    assert_eq!(hook("0", &here.request("ls")).said(), None);
    let (open, seen) = open_to_others(&data);
    assert!(open.is_empty() && seen >= 2, "{seen} seen\n{}", open.join("\n"));
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700, "the data directory itself");

    // A directory that was opened to others is closed again by the next server.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    run(&["ps"]);
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700, "the data directory itself");
    run(&["run", "--detach", "--record", "--name", "one", "--", "sh", "-c", "echo hello; sleep 8888"]);
    for agent in ["claude", "codex", "gemini"] {
        fs::create_dir_all(here.machine.home().join(format!(".{agent}"))).unwrap();
    }
    fs::write(here.machine.home().join(".claude/settings.json"), "{}\n").unwrap();
    run(&["hooks", "install", "--yes", "--approver"]);
    let waiting = hook("60", &here.request("make check"));
    let client = here.machine.any_client().unwrap();
    let id = eventually("a hook waits", || {
        let list = client.json("/api/v1/approvals?state=pending")?;
        let held = list["approvals"].as_array()?.iter().find(|a| a["answer"] == "hook").cloned()?;
        Some(held["id"].as_str()?.to_owned())
    });
    run(&["approve", &id, "--scope", "rule", "--yes"]);
    assert_eq!(waiting.behavior().as_deref(), Some("allow"));
    let recorded = eventually("the recording has begun", || {
        let mut files = fs::read_dir(data.join("recordings")).ok()?;
        Some(files.next()?.ok()?.path())
    });
    let (open, seen) = open_to_others(&data);
    assert!(open.is_empty(), "{}", open.join("\n"));
    assert!(seen >= 20, "only {seen} files and directories");
    let policy = root.join("config/capture/policy.toml");
    assert_eq!(fs::metadata(&policy).unwrap().permissions().mode() & 0o777, 0o600, "{}", policy.display());

    // An export is a copy of private data.
    let copy = root.join("copy.cast");
    run(&["export", recorded.to_str().unwrap(), "--output", copy.to_str().unwrap()]);
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600, "{}", copy.display());
    let exported = client.json("/api/v1/sessions?active=all").unwrap();
    assert_ne!(exported["sessions"], json!([]));
    // The shutdown writes files, too.
    run(&["serve", "--stop"]);
    eventually("the server has ended", || here.machine.endpoint().is_none().then_some(()));
    let (open, _) = open_to_others(&data);
    assert!(open.is_empty(), "{}", open.join("\n"));
    let left: Vec<_> = fs::read_dir(root.join("tmp")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "in the shared directory for temporary files: {left:?}");
}
