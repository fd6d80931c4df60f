//! The preparation of a scenario: sets up the machine for the setting and starts the agent.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
};

use events::Provider;

use super::{Played, SIZE, decisions::GIT_CALLS};
use crate::{
    live::{Hooks, Installed, LiveAgent, Setting, scenarios::PROMPT},
    models::Model,
    program::Machine,
    terminal_user::User,
};

/// Writes the files that the setting needs.
pub(super) fn furnish(machine: &Machine, setting: &Setting) -> std::io::Result<()> {
    if let Some(policy) = setting.policy {
        let dir = machine.home().with_file_name("config/capture");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        fs::write(dir.join("policy.toml"), policy)?;
    }
    if setting.git {
        let mut init = std::process::Command::new("git");
        init.args(["init", "--quiet"]).current_dir(machine.project()).env("HOME", machine.home());
        if !init.status()?.success() {
            return Err(std::io::Error::other("git init"));
        }
        // Found on the PATH before the real git.
        let (bin, calls) = (machine.home().join("bin"), machine.home().join(GIT_CALLS));
        fs::create_dir_all(&bin)?;
        let script = format!(
            "#!/bin/sh\necho \"$(date +%s%3N) $*\" >> '{}'\nPATH=${{PATH#*:}} exec git \"$@\"\n",
            calls.display()
        );
        fs::write(bin.join("git"), script)?;
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The message of `capture hooks install` for a version without hooks.
const NO_HOOKS: &str = "does not support hooks";

/// Starts the agent at a terminal, with its settings and with capture's hooks if its version supports hooks.
pub(super) fn start(installed: &Installed, machine: &Machine, model: &Model, setting: &mut Setting) -> Played<User> {
    let agent = installed.agent;
    let (home, project, url) = (machine.home(), machine.project(), model.url());
    let hooks = setting.hooks != Hooks::None;
    let place = LiveAgent {
        home: &home,
        project: &project,
        model: &url,
        hooks,
        plans: setting.plans,
        daemon: setting.daemon,
        version: installed.version(),
    };
    let start = agent.prepare(&place).map_err(|error| format!("settings of the agent: {error}"))?;
    if hooks {
        let linked = machine.link_agent(agent.provider(), &installed.program);
        linked.map_err(|error| format!("cannot put the agent on the PATH: {error}"))?;
        let mut words = vec!["hooks", "install", "--agent", agent.provider().as_str(), "--yes"];
        let seconds = if let Hooks::Wait(seconds) = setting.hooks { Some(seconds.to_string()) } else { None };
        words.extend(seconds.iter().flat_map(|seconds| ["--approver", seconds.as_str()]));
        let output = machine.command(&words).output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains(NO_HOOKS) {
            setting.hooks = Hooks::None;
        } else if !output.status.success() {
            return Err(format!("capture hooks install: {said}"));
        }
    }
    let program = installed.program.to_string_lossy();
    let words: Vec<&str> = if setting.owned {
        let name = agent.provider().as_str();
        // The start arguments of Codex affect only its screen.
        let own = start.arguments.iter().filter(|_| agent.provider() != Provider::Codex);
        let own = own.flat_map(|word| ["--agent-arg", word.as_str()]);
        let begins = ["agent", "drive", "--agent", name, "--program", program.as_ref()];
        begins.into_iter().chain(own).chain(["--", PROMPT]).collect()
    } else {
        std::iter::once(program.as_ref()).chain(start.arguments.iter().map(String::as_str)).collect()
    };
    let words: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    // If the test is interrupted, no agent is left behind.
    let run = match (setting.owned, setting.run) {
        (true, _) => "\"$PROGRAM\" ",
        (false, true) => "\"$PROGRAM\" run --on-hangup end -- ",
        (false, false) => "",
    };
    let script = format!("exec 2>&1; {run}{}", words.join(" "));
    // The agents are scripts whose interpreter is found on the caller's PATH.
    let path = crate::text_from_env("PATH").unwrap_or_default();
    let path = if setting.git { format!("{}:{path}", home.join("bin").display()) } else { path };
    let own = start.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let more: Vec<(&str, &str)> = own.chain([("PATH", path.as_str())]).collect();
    let user = User::start_with(machine, &script, &more);
    user.resize(SIZE.columns, SIZE.rows);
    Ok(user)
}
