//! Commands that the user has denied stay denied, with each version of an agent: before capture's hooks are installed,
//! after that, and after a forced installation. The model asks for a denied command; whether it ran is checked by the
//! file it creates.
//!
//! A rule that works proves something only if the command runs without it, so that is tested first. The control is
//! `--force`: capture must report beforehand that the rule will not be in force.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use events::Provider;
use serde_json::{Value, json};

use super::{Agent, Installed, LiveAgent, Start};
use crate::{
    models::{
        Model, responses,
        script::{Call, Script, call, say},
    },
    program::Machine,
    within,
};

/// How long an agent may take for its only turn.
const TURN: Duration = Duration::from_secs(120);
const PROMPT: &str = "go";
const MARKER: &str = "made";
const COMMAND: &str = "touch made";

/// The ways in which a user can deny a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Claude Code: `permissions.deny` in `settings.json`.
    Permissions,
    /// Codex: `sandbox_mode = "read-only"` in `config.toml`.
    Sandbox,
    /// Codex: a forbidden prefix in `rules/default.rules`.
    Prefix,
    /// Gemini CLI: `tools.exclude` in `settings.json`.
    Exclude,
    /// Gemini CLI: a rule in `policies`.
    Policy,
}

impl Rule {
    /// The rules that some version of this agent supports.
    #[must_use]
    pub fn of(agent: Provider) -> &'static [Self] {
        match agent {
            Provider::Claude => &[Self::Permissions],
            Provider::Codex => &[Self::Sandbox, Self::Prefix],
            Provider::Gemini => &[Self::Exclude, Self::Policy],
            Provider::Pi
            | Provider::Qwen
            | Provider::Capture
            | Provider::Opencode
            | Provider::Aider
            | Provider::Crush
            | Provider::Goose
            | Provider::Amp
            | Provider::Unknown => &[],
        }
    }

    /// The rule's name in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permissions => "permissions.deny",
            Self::Sandbox => "sandbox read-only",
            Self::Prefix => "rules, forbidden",
            Self::Exclude => "tools.exclude",
            Self::Policy => "policy, deny",
        }
    }

    /// Writes the rule next to the settings with which the agent starts, or settings that allow the command.
    fn write(rule: Option<Self>, agent: Provider, home: &Path) -> std::io::Result<()> {
        match agent {
            Provider::Claude => {
                let denied: &[&str] = if rule == Some(Self::Permissions) { &["Bash(touch:*)"] } else { &[] };
                let settings = json!({ "permissions": { "deny": denied } });
                fs::write(home.join(".claude/settings.json"), format!("{settings:#}\n"))
            }
            Provider::Codex => {
                let path = home.join(".codex/config.toml");
                let mode = if rule == Some(Self::Sandbox) { "read-only" } else { "danger-full-access" };
                let config = fs::read_to_string(&path)?
                    .replace("gpt-6-sol", "gpt-5.1")
                    .replace("\"on-request\"", "\"never\"")
                    .replace("\"workspace-write\"", &format!("{mode:?}"));
                fs::write(&path, config)?;
                if rule == Some(Self::Prefix) {
                    fs::create_dir_all(home.join(".codex/rules"))?;
                    let text = "prefix_rule(pattern = [\"touch\"], decision = \"forbidden\")\n";
                    fs::write(home.join(".codex/rules/default.rules"), text)?;
                }
                Ok(())
            }
            Provider::Gemini => {
                let path = home.join(".gemini/settings.json");
                let mut settings: Value = serde_json::from_slice(&fs::read(&path)?)?;
                if rule == Some(Self::Exclude) {
                    settings["tools"] = json!({ "exclude": ["run_shell_command(touch)"] });
                }
                fs::write(&path, format!("{settings:#}\n"))?;
                if rule == Some(Self::Policy) {
                    fs::create_dir_all(home.join(".gemini/policies"))?;
                    let text = "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch\"\n\
                                decision = \"deny\"\npriority = 500\n";
                    fs::write(home.join(".gemini/policies/mine.toml"), text)?;
                }
                Ok(())
            }
            Provider::Pi
            | Provider::Qwen
            | Provider::Capture
            | Provider::Opencode
            | Provider::Aider
            | Provider::Crush
            | Provider::Goose
            | Provider::Amp
            | Provider::Unknown => Ok(()),
        }
    }
}

/// The outcome of the denied command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It did not run.
    Held,
    /// It ran.
    Ran,
}

impl Fate {
    /// The outcome's name in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Ran => "RAN",
        }
    }
}

/// The findings for one version of an agent and one rule.
#[derive(Debug)]
pub struct Findings {
    /// The version as reported by capture.
    pub version: String,
    /// The outcome with neither rule nor hooks.
    pub free: Fate,
    /// The outcome with only the rule.
    pub rule: Fate,
    /// The outcome after `capture hooks install`.
    pub installed: Fate,
    /// The number of installed events; `None` if capture refused.
    pub events: Option<usize>,
    /// The outcome after `capture hooks install --force`.
    pub forced: Fate,
    /// Whether `capture hooks status` then reported that the user's settings are not in force.
    pub warned: bool,
    /// The outcome after another `capture hooks install`, which removes the events the version does not support.
    pub repaired: Fate,
    /// Descriptions of all deviations; empty if all is well.
    pub wrong: Vec<String>,
}

/// The treatment of hooks before the agent starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    None,
    Installed,
    Forced,
    Repaired,
}

/// Tests a rule with an agent.
///
/// # Errors
/// If the agent or capture cannot be run.
pub fn examine(installed: &Installed, capture: &Path, rule: Rule) -> Result<Findings, String> {
    let try_with = |rule, hooks| Trial::run(installed, capture, rule, hooks);
    let free = try_with(None, Hooks::None)?;
    let alone = try_with(Some(rule), Hooks::None)?;
    let with = try_with(Some(rule), Hooks::Installed)?;
    let forced = try_with(Some(rule), Hooks::Forced)?;
    let repaired = try_with(Some(rule), Hooks::Repaired)?;
    let mut wrong = Vec::new();
    let mut must = |holds: bool, words: String| {
        if !holds {
            wrong.push(words);
        }
    };
    must(free.fate == Fate::Ran, format!("without a rule the command did not run either: {}", free.said));
    if alone.fate == Fate::Held {
        must(with.fate == Fate::Held, "the rule does not hold after `capture hooks install`".to_owned());
        must(
            (forced.fate == Fate::Ran) == forced.warned,
            format!("after --force it {}, and `capture hooks status` says: {}", forced.fate.as_str(), forced.status),
        );
        must(
            repaired.fate == Fate::Held || repaired.events.is_none(),
            "the rule does not hold after --force and a further `capture hooks install`".to_owned(),
        );
    }
    Ok(Findings {
        version: forced.status["version"].as_str().unwrap_or("unknown").to_owned(),
        free: free.fate,
        rule: alone.fate,
        installed: with.fate,
        events: with.events,
        forced: forced.fate,
        warned: forced.warned,
        repaired: repaired.fate,
        wrong,
    })
}

/// One start of an agent with its settings.
#[derive(Debug)]
struct Trial {
    fate: Fate,
    /// The number of events with entries.
    events: Option<usize>,
    warned: bool,
    /// The output of `capture hooks status`.
    status: Value,
    /// The output of the agent.
    said: String,
}

impl Trial {
    fn run(installed: &Installed, capture: &Path, rule: Option<Rule>, hooks: Hooks) -> Result<Self, String> {
        let agent = installed.agent;
        let provider = agent.provider();
        let words = |error: std::io::Error| error.to_string();
        let machine = Machine::new(&capture.to_string_lossy());
        machine.link_agent(provider, &installed.program).map_err(words)?;
        let script = Script::default().lane(PROMPT, [call(denied(agent)), say("It is over.")]);
        let model = Model::start(agent.api(), script).map_err(words)?;
        let (home, project, url) = (machine.home(), machine.project(), model.url());
        let place = LiveAgent {
            home: &home,
            project: &project,
            model: &url,
            hooks: false,
            plans: false,
            daemon: false,
            version: installed.version(),
        };
        let start = agent.prepare(&place).map_err(words)?;
        Rule::write(rule, provider, &home).map_err(words)?;

        let install = |force: bool| {
            let force: &[&str] = if force { &["--force"] } else { &[] };
            let words_of = ["hooks", "install", "--yes", "--agent", provider.as_str()];
            let output = machine.command(&[&words_of, force].concat()).output().map_err(words)?;
            match output.status.code() {
                Some(0) => Ok(true),
                // The exit code of a refusal.
                Some(5) => Ok(false),
                _ => Err(format!("capture hooks install: {}", String::from_utf8_lossy(&output.stderr))),
            }
        };
        let done = match hooks {
            Hooks::None => false,
            Hooks::Installed => install(false)?,
            Hooks::Forced => install(true)?,
            Hooks::Repaired => install(true)? && install(false)?,
        };
        let status = machine.command(&["hooks", "status", "--json", "--agent", provider.as_str()]).output();
        let status: Value =
            serde_json::from_slice(&status.map_err(words)?.stdout).map_err(|error| error.to_string())?;
        let status = status["agents"][0].clone();
        let there = status["events"].as_array().into_iter().flatten().filter(|event| event["state"] == "installed");

        let said = turn(installed, &machine, &start)?;
        if model.notes().iter().filter(|note| note.lane == PROMPT).count() == 0 {
            return Err(format!("the agent asked the model nothing: {said}"));
        }
        Ok(Self {
            fate: if project.join(MARKER).exists() { Fate::Ran } else { Fate::Held },
            events: done.then(|| there.count()),
            warned: status["state"] == "harmful",
            status,
            said,
        })
    }
}

/// The call of the denied command.
fn denied(agent: &dyn Agent) -> Call {
    if agent.provider() == Provider::Codex { responses::shell(COMMAND) } else { agent.command(COMMAND) }
}

/// Lets the agent run its only turn without a screen, with everything allowed that is not denied; returns its output.
fn turn(installed: &Installed, machine: &Machine, start: &Start) -> Result<String, String> {
    let words: &[&str] = match installed.agent.provider() {
        Provider::Claude => &["-p", PROMPT, "--allowedTools", "Bash"],
        Provider::Codex => &["exec", "--skip-git-repo-check", PROMPT],
        Provider::Gemini => &["-m", "gemini-2.5-pro", "--yolo", "-p", PROMPT],
        Provider::Qwen => return Err("it is not set up here".to_owned()),
        Provider::Pi
        | Provider::Capture
        | Provider::Opencode
        | Provider::Aider
        | Provider::Crush
        | Provider::Goose
        | Provider::Amp
        | Provider::Unknown => return Err("it has no hooks".to_owned()),
    };
    let out = machine.home().join("out");
    let file = fs::File::create(&out).map_err(|error| error.to_string())?;
    let again = file.try_clone().map_err(|error| error.to_string())?;
    let mut child = Command::new(&installed.program)
        .args(words)
        .env_clear()
        .env("HOME", machine.home())
        .env("PATH", crate::text_from_env("PATH").unwrap_or_default())
        .env("TERM", "xterm-256color")
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(machine.project())
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(again)
        .spawn()
        .map_err(|error| format!("{}: {error}", installed.program.display()))?;
    let begun = Instant::now();
    let ended = within(TURN, || child.try_wait().ok().flatten());
    if ended.is_none() {
        child.kill().ok();
        child.wait().ok();
        return Err(format!("the agent was not done after {} s", begun.elapsed().as_secs()));
    }
    let said = fs::read(out).map_err(|error| error.to_string())?;
    // The error of a bundled program begins with the bundle's code, so only the end is used.
    let end = String::from_utf8_lossy(&said[said.len().saturating_sub(400)..]).into_owned();
    Ok(end.trim().to_owned())
}
