//! The messages that the server and a session's host exchange when the session starts.

use std::path::PathBuf;

use events::{Provider, RunId};
use serde::{Deserialize, Serialize};

/// The arguments that make the program host a session.
pub const HOST_WORDS: [&str; 3] = ["agent", "drive", "--hosted"];

/// The server's message to a session's host, one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// The data directory.
    pub data: PathBuf,
    /// The agent.
    pub agent: Provider,
    /// The working directory.
    pub cwd: PathBuf,
    /// The name of the session's run.
    pub name: Option<String>,
    /// The first prompt.
    pub prompt: Option<String>,
    /// The model, as `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Whether only reads are allowed.
    pub is_plan: bool,
    /// The session to continue.
    pub continues: Option<String>,
    /// How long a permission request waits, seconds.
    pub wait_s: u32,
    /// The user or device that started it, as text.
    pub by: String,
}

/// The host's answer, one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostAnswer {
    /// The session has begun.
    Begun {
        /// The session's run.
        run: RunId,
    },
    /// The session cannot begin, for this reason.
    Refused(String),
}
