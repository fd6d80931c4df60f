//! Security requirements that only the whole program can show: the sockets it listens on, what it leaves on the disk,
//! in the process table and on the network, and what no input can cause. Each test is listed in the table of
//! `docs/security.md`; `table` checks that the tests named there exist.

mod dialogs;
mod files;
mod inputs;
mod listening;
mod network;
mod settings;
mod table;
mod tokens;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, Server},
    terminal_user::end_all,
};

use super::PROGRAM;

const SESSION: &str = "5a6b7c8d-0000-4000-8000-000000000044";

/// A machine whose processes are ended with the test.
struct RequirementsMachine {
    machine: Machine,
}

impl RequirementsMachine {
    fn new() -> Self {
        let machine = Machine::new(PROGRAM);
        machine.newest_agents();
        Self { machine }
    }

    /// The directory that contains all other directories of the machine.
    fn root(&self) -> PathBuf {
        self.machine.home().parent().unwrap().to_owned()
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.machine.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed; returns its output.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit code and standard error of a command.
    fn failed(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.output(arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Calls an agent's hook, which may wait for its answer.
    fn hook(&self, agent: &str, wait: &str, payload: &Value) -> Hook {
        Hook::start(&mut self.machine.command(&["hook", agent, "--approver", wait]), payload)
    }

    /// The payload of Claude Code's hook that asks for permission to run a command.
    fn request(&self, command: &str) -> Value {
        json!({"session_id": SESSION, "cwd": self.machine.project(), "hook_event_name": "PermissionRequest",
            "tool_name": "Bash", "tool_input": {"command": command}})
    }

    /// Reports the session's working directory to the server: rules allow nothing before that.
    fn begin(&self) {
        let start = json!({"session_id": SESSION, "cwd": self.machine.project(), "hook_event_name": "SessionStart",
            "source": "startup"});
        assert_eq!(self.hook("claude", "0", &start).said(), None);
    }

    fn save_policy(&self, policy: &str) {
        let dir = self.root().join("config/capture");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("policy.toml"), policy).unwrap();
    }
}

impl Drop for RequirementsMachine {
    fn drop(&mut self) {
        end_all(&self.machine.data());
    }
}

/// A running hook.
struct Hook(Child);

impl Hook {
    fn start(command: &mut Command, payload: &Value) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        Self(child)
    }

    /// The hook's answer to the agent. A hook always exits with 0 and prints no errors.
    #[track_caller]
    fn said(self) -> Option<Value> {
        let Output { status, stdout, stderr } = self.0.wait_with_output().unwrap();
        assert!(status.success(), "{status}");
        assert_eq!(String::from_utf8_lossy(&stderr), "");
        (!stdout.is_empty()).then(|| serde_json::from_slice(&stdout).unwrap())
    }

    /// `allow` or `deny`; `None` if the agent should ask its user.
    #[track_caller]
    fn behavior(self) -> Option<String> {
        let said = self.said()?;
        said["hookSpecificOutput"]["decision"]["behavior"].as_str().map(str::to_owned)
    }
}

/// The approval for which a hook waits.
#[track_caller]
fn held(server: &Server) -> Value {
    eventually("a hook waits for an approval", || {
        let list = server.client.json("/api/v1/approvals?state=pending")?;
        list["approvals"].as_array()?.iter().find(|a| a["answer"] == "hook").cloned()
    })
}

/// Calls `look` for everything below a directory: directories, files, sockets, links.
fn below(dir: &Path, look: &mut impl FnMut(&Path, &fs::Metadata)) {
    // Entries removed in the meantime are skipped.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        look(&path, &about);
        if about.is_dir() {
            below(&path, look);
        }
    }
}
