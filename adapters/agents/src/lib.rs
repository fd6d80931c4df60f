//! Facts about the agents, and how capture starts them: home directories, program names, environment variables, and the
//! form of a decision.
//!
//! Start at [`Agent`]: every difference between agents that can be expressed as data is a field of it.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod agent;
pub mod aider;
pub mod amp;
pub mod borrowed;
pub mod claude;
pub mod codex;
pub mod crush;
pub mod directory;
mod facts;
pub mod gemini;
pub mod goose;
pub mod hooks;
pub mod opencode;
pub mod pi;
pub mod qwen;
pub mod telemetry;

use std::{collections::BTreeMap, ffi::OsStr, io, path::PathBuf};

use events::Provider;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agent::Agent;

/// The hidden subcommand of the host of a run.
pub const HOST: &str = "run-host";
/// The hidden subcommand with which our own executable becomes the program of a run.
pub const RUN_CHILD: &str = "run-child";
/// The hidden subcommand with which our own executable becomes an agent that is driven over its protocol.
pub const DRIVE_CHILD: &str = "drive-child";
/// The hidden subcommand of the host of a command that our own agent runs.
pub const TOOL_HOST: &str = "tool-host";
/// The variable with the id of a program's run.
pub const RUN_VARIABLE: &str = "CAPTURE_RUN_ID";
/// The variable, set for an agent that is driven over its protocol, with the process that drives it.
pub const DRIVEN: &str = "CAPTURE_DRIVEN_BY";

/// The receiver has stopped and accepts nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// The agents' homes that are read: the usual ones, and additional ones from the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Homes(BTreeMap<Provider, Vec<PathBuf>>);

impl Homes {
    /// The homes of one agent, the agent's default first.
    #[must_use]
    pub fn of(&self, provider: Provider) -> &[PathBuf] {
        self.0.get(&provider).map_or(&[], Vec::as_slice)
    }
}

impl FromIterator<(Provider, Vec<PathBuf>)> for Homes {
    fn from_iter<I: IntoIterator<Item = (Provider, Vec<PathBuf>)>>(homes: I) -> Self {
        Self(homes.into_iter().collect())
    }
}

/// A decision, as the answer to an agent that waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HookAnswer")]
pub struct AgentAnswer {
    /// Allowed or denied.
    pub allow: bool,
    /// The message to the agent if the request is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The command to run instead of the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<String>,
    /// The answers to questions, by question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<BTreeMap<String, String>>,
}

/// Why a command cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotRun {
    /// There is no command of this name.
    #[error("{}: command not found", .0.display())]
    NotFound(PathBuf),
    /// The file exists but may not be executed.
    #[error("{}: {why}", .path.display())]
    NotExecutable {
        /// The command as given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl CannotRun {
    /// The exit code a shell would report.
    #[must_use]
    pub fn shell_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable { .. } => 126,
        }
    }

    /// The error for a failed start of `word`.
    #[must_use]
    pub fn of(word: &OsStr, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::NotFound(word.into());
        }
        Self::NotExecutable { path: word.into(), why: reason(error) }
    }
}

/// The text of a system error, without the number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
