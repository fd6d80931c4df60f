//! The real agents at a terminal, under `capture run`, before a scripted model: what is true is known
//! from the script and the screen, and held against what capture says at every moment.
//!
//! One file says what is peculiar to an agent ([`claude`], [`codex`], [`gemini`]: settings, start,
//! calls, screens, keys), three what is done with each of them ([`scenarios`], [`approvals`], and without a screen [`owned`]). A [`stage::Stage`] is
//! where a scenario is played: machine, server, model and somebody at the terminal. A further scenario
//! is a function and a line in [`scenarios::ALL`] or [`approvals::ALL`]; a further agent a file and a line in [`agents()`].
//!
//! [`deny`] asks another question, of many versions of the agents: whether what the user has denied stays
//! denied once capture's hooks are installed. `tests/live/versions` runs it.
//!
//! Needs the agents' programs, and no network: the models are on loopback. Not part of the tests;
//! `tests/live/run` runs it.

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

/// Where an agent is started.
#[derive(Debug)]
pub struct LiveAgent<'a> {
    /// Its user's home.
    pub home: &'a Path,
    /// Its working directory.
    pub project: &'a Path,
    /// The model.
    pub model: &'a str,
    /// Whether capture's hooks will be installed.
    pub hooks: bool,
    /// Whether it plans first, where it can be started so.
    pub plans: bool,
    /// Whether it works in its daemon, if it has one.
    pub daemon: bool,
    /// Its version.
    pub version: AgentVersion,
}

/// Whether capture's hooks are installed, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    /// There are none.
    None,
    /// They tell what goes on.
    Tell,
    /// Those that ask for permission are answered, and wait this long for a person, seconds.
    Wait(u32),
}

/// What a scenario is played in.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The hooks.
    pub hooks: Hooks,
    /// The user's policy, when there is one.
    pub policy: Option<&'static str>,
    /// Whether it runs under `capture run`.
    pub run: bool,
    /// Whether it has no screen, and `capture agent drive` speaks with it.
    pub owned: bool,
    /// Whether the agent plans first.
    pub plans: bool,
    /// Whether the project is a repository, whose calls of git are kept.
    pub git: bool,
    /// Whether Codex runs in its daemon, its default.
    pub daemon: bool,
}

impl Setting {
    /// One with these hooks under `capture run`, and nothing else.
    #[must_use]
    pub const fn new(name: &'static str, hooks: Hooks) -> Self {
        Self { name, hooks, policy: None, run: true, owned: false, plans: false, git: false, daemon: false }
    }
}

/// How an agent is started.
#[derive(Debug, Default)]
pub struct Start {
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Further variables.
    pub environment: Vec<(String, String)>,
}

/// What somebody at the terminal wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// To allow what a dialog asks for, once.
    Approve,
    /// To refuse it.
    Deny,
    /// To give the first answer to a question.
    Answer,
    /// To stop what goes on.
    Interrupt,
}

/// What is peculiar to an agent.
pub trait Agent: Sync {
    /// Which it is.
    fn provider(&self) -> Provider;

    /// What its model speaks.
    fn api(&self) -> Api;

    /// Writes its settings, so that it starts without a question and reaches nothing but the model.
    ///
    /// # Errors
    /// When they cannot be written.
    fn prepare(&self, place: &LiveAgent) -> std::io::Result<Start>;

    /// A pattern of the screen while it takes a prompt.
    fn ready(&self) -> &'static str;

    /// A pattern of the screen while it asks to be allowed a [`command`](Self::command).
    fn dialog(&self) -> &'static str;

    /// What is typed.
    fn key(&self, key: Key) -> &'static str;

    /// A call that runs this command, which it asks permission for unless it only reads.
    fn command(&self, line: &str) -> Call;

    /// A call that puts a question to the user, who sees [`QUESTION`].
    fn question(&self) -> Call;

    /// The first tried version that asks its user questions.
    fn asks_questions_from(&self) -> AgentVersion;

    /// What is said in a conversation that holds `word`, when a sub-agent does the work, which holds
    /// `part`, says "Looking" and goes on when the model is told `done`.
    fn delegates(&self, word: &str, part: &str, done: &str) -> Script;

    /// The step of the main conversation after which only the sub-agent works.
    fn rests_after(&self) -> usize;

    /// How many calls of the main conversation that takes.
    fn calls_to_delegate(&self) -> usize;

    /// The lane and the step of the last thing said then, given the lane of `word`.
    fn last_word<'w>(&self, word: &'w str) -> (&'w str, usize);
}

/// A command that agents ask permission for.
pub const MAKE: &str = "touch made";

/// The question that is asked.
pub const QUESTION: &str = "Which color do you want?";

/// Every agent.
#[must_use]
pub fn agents() -> [&'static dyn Agent; 3] {
    [&claude::Claude, &codex::Codex, &gemini::Gemini]
}

/// The version of an installed agent, as its package says.
pub type AgentVersion = (u64, u64, u64);

/// An agent that is installed.
#[derive(Clone)]
pub struct Installed {
    /// Which.
    pub agent: &'static dyn Agent,
    /// Its program.
    pub program: PathBuf,
}

impl Installed {
    /// Its version; the newest there can be when nothing says it.
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
