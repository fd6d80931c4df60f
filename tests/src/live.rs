//! The real agents at a terminal, under `capture run`, before a scripted model: what is true is known
//! from the script and the screen, and held against what capture says at every moment.
//!
//! One file says what is peculiar to an agent ([`claude`], [`codex`], [`gemini`]: settings, start,
//! calls, screens, keys), one what is done with each of them ([`scenarios`]). A [`stage::Stage`] is
//! where a scenario is played: machine, server, model and somebody at the terminal. A further scenario
//! is a function and a line in [`scenarios::ALL`]; a further agent a file and a line in [`agents`].
//!
//! Needs the agents' programs, and no network: the models are on loopback. Not part of the tests;
//! `tests/live/run` runs it.

pub mod claude;
pub mod codex;
pub mod gemini;
pub mod judge;
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
pub struct Place<'a> {
    /// Its user's home.
    pub home: &'a Path,
    /// Its working directory.
    pub project: &'a Path,
    /// The model.
    pub model: &'a str,
    /// Whether capture's hooks will be installed.
    pub hooks: bool,
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
    fn prepare(&self, place: &Place) -> std::io::Result<Start>;

    /// A pattern of the screen while it takes a prompt.
    fn ready(&self) -> &'static str;

    /// A pattern of the screen while it asks to be allowed [`command`](Self::command).
    fn dialog(&self) -> &'static str;

    /// What is typed.
    fn key(&self, key: Key) -> &'static str;

    /// A call that it asks permission for.
    fn command(&self) -> Call;

    /// A call that puts a question to the user, who sees [`QUESTION`].
    fn question(&self) -> Call;

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

/// The question that is asked.
pub const QUESTION: &str = "Which color do you want?";

/// Every agent.
#[must_use]
pub fn agents() -> [&'static dyn Agent; 3] {
    [&claude::Claude, &codex::Codex, &gemini::Gemini]
}

/// An agent that is installed.
#[derive(Clone)]
pub struct Installed {
    /// Which.
    pub agent: &'static dyn Agent,
    /// Its program.
    pub program: PathBuf,
}

impl std::fmt::Debug for Installed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.agent.provider(), self.program.display())
    }
}
