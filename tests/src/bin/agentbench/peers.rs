//! Other agents on the same machine with the same model: how each is started with one prompt. Agents that are not
//! installed are reported and skipped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;
use serde_json::{Value, json};
use tests::models::{Api, responses, script::Call};

use crate::{Outcome, place::Place};

#[derive(Debug, Args)]
pub(crate) struct Installed {
    /// The program of pi (npm @earendil-works/pi-coding-agent).
    #[arg(long, value_name = "PROGRAM")]
    pi: Option<PathBuf>,
    /// The node that runs it, 22.19 or newer.
    #[arg(long, value_name = "PROGRAM")]
    node: Option<PathBuf>,
    /// The program of Codex (npm @openai/codex).
    #[arg(long, value_name = "PROGRAM")]
    codex: Option<PathBuf>,
    /// The program of Claude Code (npm @anthropic-ai/claude-code).
    #[arg(long, value_name = "PROGRAM")]
    claude: Option<PathBuf>,
}

/// A measured agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Ours,
    Pi,
    Codex,
    Claude,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "capture",
            Self::Pi => "pi",
            Self::Codex => "codex",
            Self::Claude => "claude",
        }
    }

    /// The API of its model.
    pub(crate) fn api(self) -> Api {
        match self {
            Self::Ours | Self::Pi | Self::Claude => Api::Anthropic,
            Self::Codex => Api::Responses,
        }
    }

    /// A call that reads `lines` lines of the project's `lines.txt`, starting at line `from`.
    pub(crate) fn read(self, project: &Path, from: usize, lines: usize) -> Call {
        let file = project.join("lines.txt");
        let input = |name: &str| json!({ name: file, "offset": from, "limit": lines });
        match self {
            Self::Ours | Self::Pi => Call::new("read", input("path")),
            Self::Claude => Call::new("Read", input("file_path")),
            Self::Codex => {
                let command = format!("sed -n {from},{}p {}", from + lines - 1, file.display());
                responses::shell(&command)
            }
        }
    }
}

impl Installed {
    /// The programs of the installed peers; missing ones are reported.
    pub(crate) fn found(&self) -> Outcome<Vec<(Who, Vec<PathBuf>)>> {
        let mut found = Vec::new();
        for (who, program) in [(Who::Pi, &self.pi), (Who::Codex, &self.codex), (Who::Claude, &self.claude)] {
            let Some(program) = program else {
                eprintln!("{} is not measured: name its program with --{}", who.name(), who.name());
                continue;
            };
            let program = program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?;
            let node = match (who, &self.node) {
                // Its shebang would use the first node on the PATH.
                (Who::Pi | Who::Codex, Some(node)) if is_script(&program) => vec![node.clone()],
                _ => Vec::new(),
            };
            found.push((who, node.into_iter().chain([program]).collect()));
        }
        Ok(found)
    }
}

fn is_script(program: &Path) -> bool {
    fs::read(program).is_ok_and(|bytes| bytes.starts_with(b"#!"))
}

/// The output of `--version`.
pub(crate) fn version(program: &[PathBuf], home: &Path) -> String {
    let Some((first, rest)) = program.split_first() else { return String::new() };
    let output = Command::new(first).args(rest).arg("--version").env("HOME", home).stdin(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// The command that sends one prompt to the model at this address, without a user.
pub(crate) fn prompted(who: Who, program: &[PathBuf], place: &Place, url: &str, prompt: &str) -> Outcome<Command> {
    let told = |error: std::io::Error| error.to_string();
    let home = place.machine.home();
    if who == Who::Ours {
        let mut command = place.command(&["run", prompt]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        return Ok(command);
    }
    let (first, rest) = program.split_first().ok_or("no program")?;
    let mut command = Command::new(first);
    command.args(rest).env_clear().current_dir(place.machine.project());
    let temporary = home.join("tmp");
    fs::create_dir_all(&temporary).map_err(told)?;
    command.env("HOME", &home).env("LANG", "C.UTF-8").env("TMPDIR", &temporary).env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match who {
        Who::Ours => {}
        Who::Pi => {
            let models = json!({ "providers": { "scripted": { "baseUrl": url, "api": "anthropic-messages",
                "apiKey": "dummy", "models": [{ "id": "claude-sonnet-4-5", "contextWindow": 1_000_000,
                "maxTokens": 8192 }] } } });
            let directory = home.join(".pi/agent");
            fs::create_dir_all(&directory).map_err(told)?;
            fs::write(directory.join("models.json"), models.to_string()).map_err(told)?;
            command.env("PI_OFFLINE", "1").env("PI_SKIP_VERSION_CHECK", "1").env("PI_CODING_AGENT_DIR", &directory);
            command.args(["--provider", "scripted", "--model", "claude-sonnet-4-5", "-p", prompt]);
        }
        Who::Codex => {
            let config = format!(
                "model = \"gpt-6-sol\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
                 sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
                 [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
                 env_key = \"SCRIPTED_KEY\"\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
                place.machine.project().display()
            );
            fs::write(home.join(".codex/config.toml"), config).map_err(told)?;
            command.env("CODEX_HOME", home.join(".codex")).env("SCRIPTED_KEY", "dummy");
            command.args(["exec", "--skip-git-repo-check", prompt]);
        }
        Who::Claude => {
            let known = json!({ "hasCompletedOnboarding": true, "theme": "dark",
                "customApiKeyResponses": { "approved": ["sk-dummy"], "rejected": [] },
                "projects": { place.machine.project().to_string_lossy(): { "hasTrustDialogAccepted": true,
                "hasCompletedProjectOnboarding": true, "allowedTools": [] } } });
            fs::write(home.join(".claude.json"), known.to_string()).map_err(told)?;
            command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "sk-dummy");
            command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            command.args(["-p", prompt]);
        }
    }
    Ok(command)
}

/// The process and all its descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

/// The proportional memory (PSS) of processes, KiB.
pub(crate) fn pss_kib(pids: &[u32]) -> u64 {
    let of = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    pids.iter().map(of).sum()
}

/// Kills a process and all its descendants.
pub(crate) fn end(child: &mut std::process::Child) {
    for pid in tree(child.id()) {
        if let Ok(pid) = i32::try_from(pid) {
            tests::terminal_user::signal(pid, rustix::process::Signal::KILL);
        }
    }
    child.wait().ok();
}

/// The text of a JSON string; empty for other values.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
