//! The one reader of the format of recordings, which `fixtures/recordings/FORMAT.md` documents.
//!
//! A [`Folder`] is what the files of a recording say, as they say it: in seconds and in the order of
//! the lines. Who plays a part of it takes that part: files and processes [`super::Recording`], the
//! terminal [`crate::terminal::Terminal`], all of it [`crate::statusbench::case::Case`]. Nothing is
//! played or judged here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use events::{Provider, Reason, State};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// `recording.json`. What is not there was not recorded.
#[derive(Debug, Clone, Deserialize)]
pub struct Meta {
    /// The agent.
    pub provider: Provider,
    /// The scenario's name.
    pub scenario: String,
    /// The agent user's home when it was recorded.
    pub home: Option<String>,
    /// The agent's working directory when it was recorded.
    pub cwd: Option<String>,
    /// The wall clock at second 0, ms.
    pub started_at: Option<i64>,
    /// Of its terminal.
    #[serde(default = "columns")]
    pub columns: u16,
    /// Of its terminal.
    #[serde(default = "rows")]
    pub rows: u16,
    /// Whether no file and no hook shows what the truth says.
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
    /// When, seconds.
    pub at: f64,
    /// What.
    #[serde(flatten)]
    pub what: FolderStep,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum FolderStep {
    /// The program began.
    Spawn {
        /// Which run, from 0.
        run: usize,
    },
    /// It ended.
    Exit {
        /// Which run, from 0.
        run: usize,
        /// Its status; negative: the signal; nothing when it is not known.
        code: Option<i32>,
    },
    /// It wrote to its terminal.
    Out {
        /// Which run, from 0.
        run: usize,
        /// What.
        data: String,
    },
    /// Somebody typed.
    In {
        /// Into which run.
        run: usize,
        /// What.
        data: String,
    },
    /// Came to the end of a file.
    Append {
        /// Below the home.
        path: String,
        /// What.
        data: String,
    },
    /// A file was rewritten.
    Write {
        /// Below the home.
        path: String,
        /// All of it.
        data: String,
    },
    /// A file was removed.
    Remove {
        /// Below the home.
        path: String,
    },
    /// The agent called its hooks of this event.
    Hook {
        /// The agent's name of the event.
        event: String,
        /// What the hook is given.
        payload: Value,
    },
    /// It sent telemetry. A line of `otlp.jsonl`, not of the timeline.
    Otlp {
        /// `/v1/logs`, `/v1/traces`, `/v1/metrics`.
        path: String,
        /// The request.
        payload: Value,
    },
    /// Something that is not played.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Sent {
    at: f64,
    path: String,
    payload: Value,
}

/// One line of `truth.jsonl`: from then on this was true.
#[derive(Debug, Clone, Deserialize)]
pub struct Truth {
    /// When, seconds.
    pub at: f64,
    /// The state.
    pub state: State,
    /// Why, where it matters.
    pub reason: Option<Reason>,
}

/// What the files of a recording say.
#[derive(Debug, Clone)]
pub struct Folder {
    /// What it is.
    pub meta: Meta,
    /// What happened, as the timeline has it.
    pub timeline: Vec<Line>,
    /// What was sent as telemetry.
    pub telemetry: Vec<Line>,
    /// What was true.
    pub truth: Vec<Truth>,
}

impl Folder {
    /// Reads the folder of a recording.
    ///
    /// # Errors
    /// In words with the file and the line, when one cannot be read or is not of the format.
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
    /// In words, when a directory cannot be read.
    pub fn all(dir: &Path) -> Result<Vec<PathBuf>, String> {
        let mut all = Vec::new();
        for provider in folders(dir)? {
            all.extend(folders(&provider)?.into_iter().filter(|recording| recording.join("truth.jsonl").exists()));
        }
        Ok(all)
    }
}

/// Milliseconds of the seconds in a line.
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
