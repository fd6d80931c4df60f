//! Who may decide: the user may; an agent and the processes it started may not, however they hide their origin.

use std::{fs, process::Command};

use serde_json::Value;
use tests::{
    eventually,
    program::{Machine, Server},
};

use super::approvals::{Hook, call, held, machine, request, serve};

/// The exit code of a refusal.
const REFUSED: Option<i32> = Some(5);

/// An approval that waits for a decision.
struct WaitingApproval {
    machine: Machine,
    server: Server,
    hook: Hook,
    id: String,
}

fn waiting() -> WaitingApproval {
    let machine = machine(None);
    let server = serve(&machine);
    let hook = call(&machine, "claude", "60", &request(&machine, "touch x"));
    let id = held(&server)["id"].as_str().unwrap().to_owned();
    WaitingApproval { machine, server, hook, id }
}

impl WaitingApproval {
    /// Runs a script as an agent. In the script `$ID` is the approval, and `attempt WORDS…` runs the words and saves
    /// their outcome.
    fn attack(&self, agent: &str, script: &str) -> Command {
        let out = self.machine.project().join("attempt");
        let attempt = self.machine.project().join("attempt.sh");
        // The file is renamed into place when it is complete, so a reader never sees a part.
        let text = format!(
            "\"$@\" > {out}.text 2>&1 < /dev/null\necho \"exit $?\" >> {out}.text\nmv {out}.text {out}\n",
            out = out.display()
        );
        fs::write(&attempt, text).unwrap();
        let script = format!("ID={}; ATTEMPT='sh {}'; export ID ATTEMPT\n{script}\n", self.id, attempt.display());
        self.machine.agents_shell(agent, &script)
    }

    /// The outcome of the attempt.
    #[track_caller]
    fn outcome(&self) -> (Option<i32>, String) {
        let text =
            eventually("the attempt is over", || fs::read_to_string(self.machine.project().join("attempt")).ok());
        let (said, code) = text.trim_end().rsplit_once("exit ").unwrap();
        (code.parse().ok(), said.to_owned())
    }

    /// Asserts that the approval is still open and that the user may decide it.
    #[track_caller]
    fn holds(self) {
        let state: Value = self.server.client.json(&format!("/api/v1/approvals/{}", self.id)).unwrap();
        assert_eq!(state["state"], "pending", "{state}");
        let mine = self.machine.command(&["approve", &self.id]).output().unwrap();
        assert_eq!(mine.status.code(), Some(0), "{mine:?}");
        assert_eq!(self.hook.decision()["behavior"], "allow");
    }

    #[track_caller]
    fn refused(self) {
        let (code, said) = self.outcome();
        assert_eq!(code, REFUSED, "{said}");
        self.holds();
    }
}

#[test]
fn a_shell_of_an_agent_cannot_approve() {
    let here = waiting();
    here.attack("claude", "$ATTEMPT capture approve $ID").status().unwrap();
    here.refused();
}

#[test]
fn a_shell_of_an_agent_cannot_approve_over_tcp() {
    let here = waiting();
    here.attack("gemini", "$ATTEMPT capture --tcp approve $ID").status().unwrap();
    here.refused();
}

#[test]
fn an_agent_cannot_approve_through_a_detached_run() {
    let here = waiting();
    here.attack("claude", "env -u CLAUDECODE capture run --detach -- $ATTEMPT capture approve $ID").status().unwrap();
    here.refused();
}

#[test]
fn an_agent_in_mcp_server_mode_cannot_approve() {
    let here = waiting();
    let mut shell = here.attack(
        "codex",
        "env -i \"PATH=$PATH\" \"HOME=$HOME\" $ATTEMPT capture --data-dir \"$CAPTURE_DATA_DIR\" approve $ID",
    );
    // The same script under the name `mcp-server`, so that the command line matches `codex mcp-server`.
    let script = shell.get_args().next().unwrap().to_owned();
    fs::rename(&script, here.machine.project().join("mcp-server")).unwrap();
    let mut server = Command::new(shell.get_program());
    server.arg("mcp-server").current_dir(here.machine.project()).env_clear();
    server.envs(shell.env("HOME", here.machine.home()).get_envs().filter_map(|(name, value)| Some((name, value?))));
    server.status().unwrap();
    here.refused();
}

/// A script with which the agent of a run detaches a process: another session, another parent and an empty environment.
const CUT_LOOSE: &str = r#"
cat > loose.sh <<'SCRIPT'
(setsid env -i "PATH=$PATH" "HOME=$HOME" "ATTEMPT=$ATTEMPT" "ID=$ID" "DATA=$CAPTURE_DATA_DIR" "HOST=$PPID" \
    sh -c 'UNTIL; $ATTEMPT capture --data-dir "$DATA" approve $ID' &)
SCRIPT
sh loose.sh
AFTER
"#;

#[test]
fn an_orphan_of_the_agent_of_a_run_cannot_approve() {
    for (until, after) in [
        // The agent still runs; the process is a child of the run's host, which adopted it.
        ("while ! [ -e go ]; do :; done", "touch go; while ! [ -e proj/attempt ]; do :; done"),
        // The agent has ended, and the host of its run has ended too.
        ("while kill -0 $HOST 2>/dev/null; do :; done", "exit 0"),
    ] {
        let here = waiting();
        let script = CUT_LOOSE.replace("UNTIL", until).replace("AFTER", after);
        let shell = here.attack("claude", &script);
        let agent = shell.get_program().to_str().unwrap().to_owned();
        let file = shell.get_args().next().unwrap().to_str().unwrap().to_owned();
        let mut run = here.machine.command(&["run", "--detach", "--", &agent, &file]);
        run.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run = run.output().unwrap();
        assert!(run.status.success(), "{run:?}");
        here.refused();
    }
}

#[test]
fn a_user_in_the_shell_of_a_run_can_approve() {
    let here = waiting();
    let attempt = here.attack("claude", "");
    drop(attempt);
    let script = here.machine.project().join("attempt.sh");
    let program = super::PROGRAM;
    let run = here
        .machine
        .command(&["run", "--detach", "--", "sh", script.to_str().unwrap(), program, "approve", &here.id])
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let (code, said) = here.outcome();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(here.hook.decision()["behavior"], "allow");
}

/// Other commands that change how capture works.
#[test]
fn an_agent_cannot_change_policy_hooks_labels_or_the_server() {
    let here = waiting();
    let session = here.server.client.json("/api/v1/sessions?active=all").unwrap()["sessions"][0]["id"].clone();
    let session = session.as_str().unwrap();
    for words in [
        "policy edit --yes",
        "hooks install --yes",
        "hooks uninstall --yes",
        "serve --stop",
        "serve",
        &format!("label {session} trusted=yes"),
        "notify test desktop",
    ] {
        let script = format!("export EDITOR=true XDG_CONFIG_HOME=/tmp/none; $ATTEMPT capture {words}");
        here.attack("claude", &script).status().unwrap();
        let (code, said) = here.outcome();
        assert_eq!(code, REFUSED, "{words}: {said}");
        fs::remove_file(here.machine.project().join("attempt")).unwrap();
    }
    here.holds();
}

/// Attacks that remain possible for processes of one user (`docs/security.md`). These tests document limits, not
/// guarantees: when one of them fails, correct the page.
mod limits {
    use super::*;

    #[test]
    fn an_orphan_of_an_observed_agent_with_a_cleared_environment_can_approve() {
        let here = waiting();
        let script = r#"
cat > loose.sh <<'SCRIPT'
(setsid env -i "PATH=$PATH" "HOME=$HOME" "ATTEMPT=$ATTEMPT" "ID=$ID" "DATA=$CAPTURE_DATA_DIR" "AGENT=$PPID" \
    sh -c 'while kill -0 $AGENT 2>/dev/null; do :; done; $ATTEMPT capture --data-dir "$DATA" approve $ID' &)
SCRIPT
sh loose.sh
"#;
        here.attack("claude", script).status().unwrap();
        let (code, said) = here.outcome();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(here.hook.decision()["behavior"], "allow");
    }

    #[test]
    fn an_agent_can_access_files_and_kill_the_server_as_the_same_user() {
        let here = waiting();
        let policy = here.machine.home().parent().unwrap().join("config/capture/policy.toml");
        let script = format!(
            "mkdir -p -m 700 {dir}\nprintf 'version = 1\\npreset = \"read-only\"\\n' > {file}\nchmod 600 {file}\n\
             cat $CAPTURE_DATA_DIR/tokens/owner > proj/token\nkill {server}\n",
            dir = policy.parent().unwrap().display(),
            file = policy.display(),
            server = here.server.pid(),
        );
        here.attack("claude", &script).status().unwrap();
        let token = fs::read_to_string(here.machine.project().join("token")).unwrap();
        assert_eq!(token.trim(), here.server.client.token);
        assert_eq!(fs::read_to_string(policy).unwrap(), "version = 1\npreset = \"read-only\"\n");
        eventually("the server has stopped", || here.machine.endpoint().is_none().then_some(()));
        assert_eq!(here.hook.said(), None, "the agent asks by itself");
    }
}
