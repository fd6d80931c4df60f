//! A recording to be played: its folder read, what it can be played as, and put on the machine and
//! into the time of the benchmark.

use std::{
    fs,
    path::{Path, PathBuf},
};

use adapters::screen::Size;
use events::{Provider, Reason, State, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::Mode;
use crate::{
    recording::{About, Names},
    terminal::{Op, Said, Terminal},
};

/// `recording.json`. What is not there was not recorded.
#[derive(Debug, Clone, Deserialize)]
struct Meta {
    provider: Provider,
    scenario: String,
    home: Option<String>,
    cwd: Option<String>,
    started_at: Option<i64>,
    columns: Option<u16>,
    rows: Option<u16>,
    #[serde(default)]
    needs_pty: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct Line {
    at: f64,
    #[serde(flatten)]
    what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum What {
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
    /// A file was written anew.
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
    /// It sent telemetry.
    Otlp {
        /// `/v1/logs`, `/v1/traces`, `/v1/metrics`.
        path: String,
        /// The request.
        payload: Value,
    },
    /// Something the benchmark does not play.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Deserialize)]
struct Sent {
    at: f64,
    path: String,
    payload: Value,
}

#[derive(Debug, Clone, Deserialize)]
struct TruthLine {
    at: f64,
    state: State,
    reason: Option<Reason>,
}

/// A recording.
#[derive(Debug, Clone)]
pub struct Case {
    /// `provider/scenario`.
    pub name: String,
    /// The agent.
    pub provider: Provider,
    /// Of its terminal.
    pub size: Size,
    /// When, ms; what; in order.
    pub ops: Vec<(i64, What)>,
    /// What was true.
    pub truth: Vec<Said>,
    meta: Meta,
}

impl Case {
    /// Reads the folder of a recording.
    ///
    /// # Errors
    /// In words, when it cannot be read or a line is not of the format.
    pub fn load(dir: &Path) -> Result<Self, String> {
        let meta: Meta = serde_json::from_str(&read(&dir.join("recording.json"))?)
            .map_err(|error| format!("{}/recording.json: {error}", dir.display()))?;
        let mut ops: Vec<(i64, What)> =
            lines::<Line>(&dir.join("timeline.jsonl"))?.into_iter().map(|line| (ms(line.at), line.what)).collect();
        let telemetry = dir.join("otlp.jsonl");
        if telemetry.exists() {
            let sent = lines::<Sent>(&telemetry)?.into_iter();
            ops.extend(sent.map(|s| (ms(s.at), What::Otlp { path: s.path, payload: s.payload })));
        }
        ops.sort_by_key(|(at, _)| *at);
        let truth: Vec<Said> = lines::<TruthLine>(&dir.join("truth.jsonl"))?
            .into_iter()
            .map(|t| Said { at: ms(t.at), state: Some(t.state), reason: t.reason })
            .collect();
        if truth.len() < 2 {
            return Err(format!("{}/truth.jsonl: two lines at least are needed", dir.display()));
        }
        let size = Size { rows: meta.rows.unwrap_or(40), columns: meta.columns.unwrap_or(120) };
        let name = format!("{}/{}", meta.provider, meta.scenario);
        Ok(Self { name, provider: meta.provider, size, ops, truth, meta })
    }

    /// Every recording in `<dir>/<provider>/<scenario>` of these folders. The files of one and the
    /// terminal of another folder are one recording when provider, scenario and truth are the same.
    ///
    /// # Errors
    /// In words, when one cannot be read.
    pub fn load_all(dirs: &[&Path]) -> Result<Vec<Self>, String> {
        let mut cases: Vec<Self> = Vec::new();
        for dir in dirs {
            for folder in folders(dir)?.iter().map(|provider| folders(provider)).collect::<Result<Vec<_>, _>>()? {
                for recording in folder.iter().filter(|r| r.join("truth.jsonl").exists()) {
                    let case = Self::load(recording)?;
                    match cases.iter_mut().find(|other| other.is_other_half_of(&case)) {
                        Some(other) => other.merge(case),
                        None => cases.push(case),
                    }
                }
            }
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(cases)
    }

    fn is_other_half_of(&self, other: &Self) -> bool {
        self.name == other.name && self.truth == other.truth && self.has_terminal() != other.has_terminal()
    }

    fn merge(&mut self, other: Self) {
        let lifecycle = |what: &What| matches!(what, What::Spawn { .. } | What::Exit { .. });
        if other.has_terminal() {
            self.size = other.size;
        }
        self.meta.home = self.meta.home.take().or(other.meta.home);
        self.meta.cwd = self.meta.cwd.take().or(other.meta.cwd);
        self.meta.started_at = self.meta.started_at.or(other.meta.started_at);
        self.meta.needs_pty |= other.meta.needs_pty;
        self.ops.extend(other.ops.into_iter().filter(|(_, what)| !lifecycle(what)));
        self.ops.sort_by_key(|(at, _)| *at);
    }

    fn has_terminal(&self) -> bool {
        self.ops.iter().any(|(_, what)| matches!(what, What::Out { .. }))
    }

    /// Whether the recording has what this mode plays.
    #[must_use]
    pub fn fits(&self, mode: Mode) -> bool {
        let has = |wanted: fn(&What) -> bool| self.ops.iter().any(|(_, what)| wanted(what));
        let files = has(|what| matches!(what, What::Append { .. } | What::Write { .. }));
        let hooks = has(|what| matches!(what, What::Hook { .. }));
        match mode {
            Mode::Files => files && !self.meta.needs_pty,
            Mode::Hooks => files && hooks && !self.meta.needs_pty,
            Mode::Pty => self.has_terminal(),
            Mode::All => self.has_terminal() && (files || hooks),
        }
    }

    /// For the judge. What writes nothing before the first prompt is not asked about the time before.
    #[must_use]
    pub fn judged_as(&self, mode: Mode) -> Terminal {
        let silent = !mode.has_terminal() && self.provider != Provider::Claude;
        let first = self.truth.iter().position(|t| t.state == Some(State::Running)).filter(|_| silent).unwrap_or(0);
        let spawns = self.ops.iter().filter_map(|(at, what)| match what {
            What::Spawn { run } => Some((*at, *run, Op::Spawn)),
            What::Exit { .. }
            | What::Out { .. }
            | What::In { .. }
            | What::Append { .. }
            | What::Write { .. }
            | What::Remove { .. }
            | What::Hook { .. }
            | What::Otlp { .. }
            | What::Other => None,
        });
        Terminal {
            name: self.name.clone(),
            provider: self.provider,
            size: self.size,
            ops: spawns.collect(),
            truth: self.truth[first..].to_vec(),
        }
    }

    /// The hooks that ask for permission, ms: those an approval can be seen by.
    #[must_use]
    pub fn permission_hooks(&self) -> Vec<i64> {
        let asks = |what: &What| match what {
            What::Hook { event, payload } => {
                event == "PermissionRequest"
                    || event == "Notification" && payload["notification_type"] == "ToolPermission"
            }
            What::Spawn { .. }
            | What::Exit { .. }
            | What::Out { .. }
            | What::In { .. }
            | What::Append { .. }
            | What::Write { .. }
            | What::Remove { .. }
            | What::Otlp { .. }
            | What::Other => false,
        };
        self.ops.iter().filter(|(_, what)| asks(what)).map(|(at, _)| *at).collect()
    }

    /// On another machine and at another time: paths, and the moments the agent wrote down.
    /// `now` is second 0, ms of the wall clock.
    #[must_use]
    pub fn moved(&self, home: &Path, project: &Path, now: i64) -> Self {
        let names = match (&self.meta.cwd, &self.meta.home) {
            (Some(cwd), Some(old)) => Some(Names::new(
                &About {
                    provider: self.provider,
                    scenario: self.meta.scenario.clone(),
                    cwd: cwd.clone(),
                    home: old.clone(),
                    started_at: self.meta.started_at.unwrap_or(now),
                },
                home,
                project,
            )),
            _ => None,
        };
        let path = |text: &str| names.as_ref().map_or_else(|| text.to_owned(), |names| names.rewrite(text));
        let data = |text: &str| match self.meta.started_at {
            Some(then) => shift(&path(text), then, now - then),
            None => path(text),
        };
        let tree = |value: &Value| serde_json::from_str(&data(&value.to_string())).unwrap_or_else(|_| value.clone());
        let ops = self.ops.iter().map(|(at, what)| {
            let what = match what {
                What::Append { path: p, data: d } => What::Append { path: path(p), data: data(d) },
                What::Write { path: p, data: d } => What::Write { path: path(p), data: data(d) },
                What::Remove { path: p } => What::Remove { path: path(p) },
                What::Hook { event, payload } => What::Hook { event: event.clone(), payload: tree(payload) },
                What::Otlp { path, payload } => What::Otlp { path: path.clone(), payload: tree(payload) },
                What::Spawn { .. } | What::Exit { .. } | What::Out { .. } | What::In { .. } | What::Other => {
                    what.clone()
                }
            };
            (*at, what)
        });
        Self { ops: ops.collect(), ..self.clone() }
    }
}

/// Moves the moments in a text by `by` ms: RFC 3339 in UTC with milliseconds, and numbers of 13
/// digits within a day of `then`. Both keep their length.
fn shift(text: &str, then: i64, by: i64) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    let mut at = 0;
    while at < bytes.len() {
        let alone = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        if alone && bytes[at].is_ascii_digit() {
            let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
            let written = text.get(at..at + 24).filter(|t| digits == 4 && t.ends_with('Z'));
            let moved = if let Some(moment) = written.and_then(Timestamp::parse) {
                Some((24, Timestamp::from_millisecond(moment.as_millisecond() + by).to_string()))
            } else if digits == 13 {
                let number: Option<i64> = text[at..at + 13].parse().ok();
                number.filter(|n| (n - then).abs() < 86_400_000).map(|n| (13, (n + by).to_string()))
            } else {
                None
            };
            if let Some((length, moved)) = moved {
                out.push_str(&text[from..at]);
                out.push_str(&moved);
                at += length;
                from = at;
                continue;
            }
            at += digits;
            continue;
        }
        at += 1;
    }
    out.push_str(&text[from..]);
    out
}

fn ms(seconds: f64) -> i64 {
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
