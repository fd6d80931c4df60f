//! What the server and the host of a session say to each other when the session starts.

use std::path::PathBuf;

use events::{Provider, RunId};
use serde::{Deserialize, Serialize};

/// The words with which the program is the host of a session.
pub const HOST_WORDS: [&str; 3] = ["agent", "drive", "--hosted"];

/// What the host of a session is told, in one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// The data directory.
    pub data: PathBuf,
    /// The agent.
    pub agent: Provider,
    /// The working directory.
    pub cwd: PathBuf,
    /// The name of its run.
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
    /// For whom it is started, in words.
    pub by: String,
}

/// What the host of a session says, in one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostAnswer {
    /// It has begun.
    Begun {
        /// Its run.
        run: RunId,
    },
    /// It cannot begin, for this reason.
    Refused(String),
}
