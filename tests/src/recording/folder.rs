//! The only reader of the format of recordings, which `fixtures/recordings/FORMAT.md` documents.
//!
//! A [`Folder`] contains the files of a recording unchanged: times in seconds, in the order of the lines. Each player
//! uses a part: [`super::Recording`] files and processes, [`crate::terminal::Terminal`] the terminal,
//! [`crate::statusbench::case::Case`] everything. Nothing is played or judged here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use events::{Provider, Reason, State};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// `recording.json`. Absent fields were not recorded.
#[derive(Debug, Clone, Deserialize)]
pub struct Meta {
    /// The agent.
    pub provider: Provider,
    /// The name of the scenario.
    pub scenario: String,
    /// The agent user's home when it was recorded.
    pub home: Option<String>,
    /// The agent's working directory when it was recorded.
    pub cwd: Option<String>,
    /// The wall clock at second 0, ms.
    pub started_at: Option<i64>,
    /// The width of its terminal.
    #[serde(default = "columns")]
    pub columns: u16,
    /// The height of its terminal.
    #[serde(default = "rows")]
    pub rows: u16,
    /// Whether the truth can be seen neither from files nor from hooks.
    #[serde(default)]
    pub needs_pty: bool,
}

const fn columns() -> u16 {
    120
}

const fn rows() -> u16 {
    40
}

/// One line of `timeline.jsonl`.
#[derive(Debug, Clone, Deserialize)]
pub struct Line {
    /// The time, seconds.
    pub at: f64,
    /// The event.
    #[serde(flatten)]
    pub what: FolderStep,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum FolderStep {
    /// The program started.
    Spawn {
        /// The run, from 0.
        run: usize,
    },
    /// The program ended.
    Exit {
        /// The run, from 0.
        run: usize,
        /// The exit status; negative: the signal; `None` if unknown.
        code: Option<i32>,
    },
    /// The program wrote to its terminal.
    Out {
        /// The run, from 0.
        run: usize,
        /// The bytes as text.
        data: String,
    },
    /// The user typed.
    In {
        /// The run, from 0.
        run: usize,
        /// The bytes as text.
        data: String,
    },
    /// Data was appended to a file.
    Append {
        /// The path below the home.
        path: String,
        /// The data.
        data: String,
    },
    /// A file was rewritten.
    Write {
        /// The path below the home.
        path: String,
        /// The whole contents.
        data: String,
    },
    /// A file was removed.
    Remove {
        /// The path below the home.
        path: String,
    },
    /// The agent called its hooks for this event.
    Hook {
        /// The agent's name of the event.
        event: String,
        /// The input of the hook.
        payload: Value,
    },
    /// The agent sent telemetry. A line of `otlp.jsonl`, not of the timeline.
    Otlp {
        /// `/v1/logs`, `/v1/traces` or `/v1/metrics`.
        path: String,
        /// The request.
        payload: Value,
    },
    /// A kind of event that is not played.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Sent {
    at: f64,
    path: String,
    payload: Value,
}

/// A line of `truth.jsonl`: the true status from this time on.
#[derive(Debug, Clone, Deserialize)]
pub struct Truth {
    /// The time, seconds.
    pub at: f64,
    /// The state.
    pub state: State,
    /// The reason, where it matters.
    pub reason: Option<Reason>,
}

/// The contents of a recording's files.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The description.
    pub meta: Meta,
    /// The timeline.
    pub timeline: Vec<Line>,
    /// The telemetry that was sent.
    pub telemetry: Vec<Line>,
    /// The true statuses.
    pub truth: Vec<Truth>,
}

impl Folder {
    /// Reads the folder of a recording.
    ///
    /// # Errors
    /// If a file cannot be read or is not in the format; the text names file and line.
    pub fn read(dir: &Path) -> Result<Self, String> {
        let about = dir.join("recording.json");
        let meta = serde_json::from_str(&read(&about)?).map_err(|error| format!("{}: {error}", about.display()))?;
        let telemetry = dir.join("otlp.jsonl");
        let sent: Vec<Sent> = if telemetry.exists() { lines(&telemetry)? } else { Vec::new() };
        let line = |Sent { at, path, payload }| Line { at, what: FolderStep::Otlp { path, payload } };
        Ok(Self {
            meta,
            timeline: lines(&dir.join("timeline.jsonl"))?,
            telemetry: sent.into_iter().map(line).collect(),
            truth: lines(&dir.join("truth.jsonl"))?,
        })
    }

    /// `provider/scenario`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.meta.provider, self.meta.scenario)
    }

    /// The folders of recordings in `<dir>/<provider>/<scenario>`, sorted.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn all(dir: &Path) -> Result<Vec<PathBuf>, String> {
        let mut all = Vec::new();
        for provider in folders(dir)? {
            all.extend(folders(&provider)?.into_iter().filter(|recording| recording.join("truth.jsonl").exists()));
        }
        Ok(all)
    }
}

/// Converts the seconds in a line to milliseconds.
#[must_use]
pub fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, String> {
    let text = read(path)?;
    let whole = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    whole
        .map(|(i, line)| serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", path.display(), i + 1)))
        .collect()
}

fn folders(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()).collect();
    paths.sort();
    Ok(paths)
}
