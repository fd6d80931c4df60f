//! The real agents at a terminal, under `capture run`, with a scripted model: the truth is known from the script and
//! the screen, and is compared with capture's status at all times.
//!
//! One file per agent contains its peculiarities ([`claude`], [`codex`], [`gemini`]: settings, start, calls, screens,
//! keys); three contain the scenarios played with all of them ([`scenarios`], [`approvals`], and without a screen
//! [`owned`]). A [`stage::Stage`] is the environment of a scenario: machine, server, model and a user at the terminal.
//! To add a scenario, write a function and a line in [`scenarios::ALL`] or [`approvals::ALL`]; to add an agent, a file
//! and a line in [`agents()`].
//!
//! [`deny`] tests many versions of the agents: whether commands the user has denied stay denied once capture's hooks
//! are installed. `tests/live/versions` runs it.
//!
//! Needs the agents' programs, but no network: the models are on loopback. Not part of the test suite; `tests/live/run`
//! runs it.

pub mod approvals;
pub mod claude;
pub mod codex;
pub mod deny;
pub mod gemini;
pub mod judge;
pub mod owned;
pub mod scenarios;
pub mod stage;

use std::path::{Path, PathBuf};

use events::Provider;

use crate::models::{
    Api,
    script::{Call, Script},
};

/// The environment in which an agent is started.
#[derive(Debug)]
pub struct LiveAgent<'a> {
    /// Its user's home directory.
    pub home: &'a Path,
    /// Its working directory.
    pub project: &'a Path,
    /// The URL of the model.
    pub model: &'a str,
    /// Whether capture's hooks will be installed.
    pub hooks: bool,
    /// Whether it is started in plan mode, if it has one.
    pub plans: bool,
    /// Whether it works in its daemon, if it has one.
    pub daemon: bool,
    /// The agent's version.
    pub version: AgentVersion,
}

/// Whether capture's hooks are installed, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    /// No hooks are installed.
    None,
    /// The hooks only report events.
    Tell,
    /// The hooks answer permission requests, and wait this many seconds for the user.
    Wait(u32),
}

/// The setting in which a scenario is played.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The name of the setting.
    pub name: &'static str,
    /// The installed hooks.
    pub hooks: Hooks,
    /// The user's policy, if there is one.
    pub policy: Option<&'static str>,
    /// Whether the agent runs under `capture run`.
    pub run: bool,
    /// Whether the agent has no screen and is driven by `capture agent drive`.
    pub owned: bool,
    /// Whether the agent is started in plan mode.
    pub plans: bool,
    /// Whether the project is a git repository, in which calls of git are recorded.
    pub git: bool,
    /// Whether Codex runs in its daemon, its default.
    pub daemon: bool,
}

impl Setting {
    /// A setting with these hooks under `capture run`, and defaults otherwise.
    #[must_use]
    pub const fn new(name: &'static str, hooks: Hooks) -> Self {
        Self { name, hooks, policy: None, run: true, owned: false, plans: false, git: false, daemon: false }
    }
}

/// The arguments and environment with which an agent is started.
#[derive(Debug, Default)]
pub struct Start {
    /// The agent's arguments.
    pub arguments: Vec<String>,
    /// Further environment variables.
    pub environment: Vec<(String, String)>,
}

/// An intention of the user at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Allows the request in a dialog, once.
    Approve,
    /// Denies the request.
    Deny,
    /// Chooses the first answer to a question.
    Answer,
    /// Interrupts the current work.
    Interrupt,
}

/// The peculiarities of an agent.
pub trait Agent: Sync {
    /// The agent's provider.
    fn provider(&self) -> Provider;

    /// The API of its model.
    fn api(&self) -> Api;

    /// Writes its settings, so that it starts without a question and connects only to the model.
    ///
    /// # Errors
    /// If they cannot be written.
    fn prepare(&self, place: &LiveAgent) -> std::io::Result<Start>;

    /// A pattern that the screen matches while the agent accepts prompts.
    fn ready(&self) -> &'static str;

    /// A pattern that the screen matches while the agent asks for permission to run a [`command`](Self::command).
    fn dialog(&self) -> &'static str;

    /// The bytes to type for this intention.
    fn key(&self, key: Key) -> &'static str;

    /// A call that runs this command; the agent asks for permission unless the command only reads.
    fn command(&self, line: &str) -> Call;

    /// A call that asks the user [`QUESTION`].
    fn question(&self) -> Call;

    /// The first tested version that asks its user questions.
    fn asks_questions_from(&self) -> AgentVersion;

    /// The script of a conversation containing `word` that delegates its work to a sub-agent; the sub-agent's
    /// conversation contains `part`, says "Looking" and continues when the model is told `done`.
    fn delegates(&self, word: &str, part: &str, done: &str) -> Script;

    /// The step of the main conversation after which only the sub-agent works.
    fn rests_after(&self) -> usize;

    /// The number of calls in the main conversation for delegating.
    fn calls_to_delegate(&self) -> usize;

    /// The lane and the step of the last message of such a script, given the lane `word`.
    fn last_word<'w>(&self, word: &'w str) -> (&'w str, usize);
}

/// A command that agents ask permission for.
pub const MAKE: &str = "touch made";

/// The question of [`Agent::question`].
pub const QUESTION: &str = "Which color do you want?";

/// Every agent.
#[must_use]
pub fn agents() -> [&'static dyn Agent; 3] {
    [&claude::Claude, &codex::Codex, &gemini::Gemini]
}

/// The version of an installed agent, from its package.
pub type AgentVersion = (u64, u64, u64);

/// An installed agent.
#[derive(Clone)]
pub struct Installed {
    /// The agent.
    pub agent: &'static dyn Agent,
    /// The path of its program.
    pub program: PathBuf,
}

impl Installed {
    /// Its version; the highest possible one if it cannot be determined.
    #[must_use]
    pub fn version(&self) -> AgentVersion {
        let program = std::fs::canonicalize(&self.program).unwrap_or_else(|_| self.program.clone());
        let said = program.ancestors().skip(1).find_map(|dir| {
            let package = std::fs::read(dir.join("package.json")).ok()?;
            let package: serde_json::Value = serde_json::from_slice(&package).ok()?;
            let numbers: Vec<u64> =
                package["version"].as_str()?.split(['.', '-']).map_while(|n| n.parse().ok()).collect();
            <[u64; 3]>::try_from(numbers.get(..3)?).ok()
        });
        said.map_or((u64::MAX, 0, 0), |[major, minor, patch]| (major, minor, patch))
    }
}

impl std::fmt::Debug for Installed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.agent.provider(), self.program.display())
    }
}
