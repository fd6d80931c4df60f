//! A recording as input of the benchmark: reads its folder, determines its possible modes, and transfers it to the
//! benchmark's machine and time.

use std::path::Path;

use events::{Provider, State, Timestamp};
use host_protocol::screen::Size;
use serde_json::Value;

use super::{Mode, Source};
pub use crate::recording::folder::FolderStep;
use crate::{
    recording::{
        Names,
        folder::{Folder, Meta, ms},
    },
    terminal::{Op, ScreenStatus, Terminal},
};

/// A recording.
#[derive(Debug, Clone)]
pub struct Case {
    /// `provider/scenario`.
    pub name: String,
    /// The agent.
    pub provider: Provider,
    /// The size of its terminal.
    pub size: Size,
    /// The time, ms, and the event; in order.
    pub ops: Vec<(i64, FolderStep)>,
    /// The true statuses.
    pub truth: Vec<ScreenStatus>,
    meta: Meta,
}

impl Case {
    /// Reads the folder of a recording.
    ///
    /// # Errors
    /// If it cannot be read or a line is not in the format.
    pub fn load(dir: &Path) -> Result<Self, String> {
        let folder = Folder::read(dir)?;
        if folder.truth.len() < 2 {
            return Err(format!("{}/truth.jsonl: two lines at least are needed", dir.display()));
        }
        let name = folder.name();
        let Folder { meta, timeline, telemetry, truth } = folder;
        let mut ops: Vec<(i64, FolderStep)> =
            timeline.into_iter().chain(telemetry).map(|line| (ms(line.at), line.what)).collect();
        ops.sort_by_key(|(at, _)| *at);
        let size = Size { rows: meta.rows, columns: meta.columns };
        let truth = truth.iter().map(ScreenStatus::of).collect();
        Ok(Self { name, provider: meta.provider, size, ops, truth, meta })
    }

    /// Every recording in `<dir>/<provider>/<scenario>` of these folders. The files of a recording in one folder and
    /// the terminal of one in another are merged if provider, scenario and truth are equal.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn load_all(dirs: &[&Path]) -> Result<Vec<Self>, String> {
        let mut cases: Vec<Self> = Vec::new();
        for dir in dirs {
            for recording in Folder::all(dir)? {
                let case = Self::load(&recording)?;
                match cases.iter_mut().find(|other| other.is_other_half_of(&case)) {
                    Some(other) => other.merge(case),
                    None => cases.push(case),
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
        let lifecycle = |what: &FolderStep| matches!(what, FolderStep::Spawn { .. } | FolderStep::Exit { .. });
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
        self.any(|what| matches!(what, FolderStep::Out { .. }))
    }

    /// Whether the recording has the sources that this mode plays.
    #[must_use]
    pub fn fits(&self, mode: Mode) -> bool {
        let has = |source: Source| match source {
            Source::Files => self.any(|what| matches!(what, FolderStep::Append { .. } | FolderStep::Write { .. })),
            Source::Hooks => self.any(|what| matches!(what, FolderStep::Hook { .. })),
            Source::Pty => self.has_terminal(),
            Source::Otlp => self.any(|what| matches!(what, FolderStep::Otlp { .. })),
        };
        let shown = mode.has(Source::Pty) || !self.meta.needs_pty;
        match mode {
            Mode::Files | Mode::Hooks | Mode::Pty | Mode::Of(_) => {
                shown && Source::ALL.into_iter().all(|source| !mode.has(source) || has(source))
            }
            Mode::All => has(Source::Pty) && (has(Source::Files) || has(Source::Hooks)),
        }
    }

    fn any(&self, wanted: fn(&FolderStep) -> bool) -> bool {
        self.ops.iter().any(|(_, what)| wanted(what))
    }

    /// The recording in the form the judge expects. If the agent writes nothing before the first prompt, the time
    /// before it is not judged.
    #[must_use]
    pub fn judged_as(&self, mode: Mode) -> Terminal {
        let silent = !mode.has(Source::Pty) && self.provider != Provider::Claude;
        let first = self.truth.iter().position(|t| t.state == Some(State::Running)).filter(|_| silent).unwrap_or(0);
        let spawns = self.ops.iter().filter_map(|(at, what)| match what {
            FolderStep::Spawn { run } => Some((*at, *run, Op::Spawn)),
            FolderStep::Exit { .. }
            | FolderStep::Out { .. }
            | FolderStep::In { .. }
            | FolderStep::Append { .. }
            | FolderStep::Write { .. }
            | FolderStep::Remove { .. }
            | FolderStep::Hook { .. }
            | FolderStep::Otlp { .. }
            | FolderStep::Other => None,
        });
        Terminal {
            name: self.name.clone(),
            provider: self.provider,
            size: self.size,
            ops: spawns.collect(),
            truth: self.truth[first..].to_vec(),
        }
    }

    /// The times of hooks that ask for permission, ms: by these an approval can be detected.
    #[must_use]
    pub fn permission_hooks(&self) -> Vec<i64> {
        let asks = |what: &FolderStep| match what {
            FolderStep::Hook { event, payload } => {
                event == "PermissionRequest"
                    || event == "Notification" && payload["notification_type"] == "ToolPermission"
            }
            FolderStep::Spawn { .. }
            | FolderStep::Exit { .. }
            | FolderStep::Out { .. }
            | FolderStep::In { .. }
            | FolderStep::Append { .. }
            | FolderStep::Write { .. }
            | FolderStep::Remove { .. }
            | FolderStep::Otlp { .. }
            | FolderStep::Other => false,
        };
        self.ops.iter().filter(|(_, what)| asks(what)).map(|(at, _)| *at).collect()
    }

    /// The recording on another machine and at another time: replaces paths and recorded times. `now` is second 0, ms
    /// of the wall clock.
    #[must_use]
    pub fn moved(&self, home: &Path, project: &Path, now: i64) -> Self {
        let names = self.meta.cwd.as_deref().zip(self.meta.home.as_deref());
        let names = names.map(|(cwd, old)| Names::between(cwd, project, old, home));
        let path = |text: &str| names.as_ref().map_or_else(|| text.to_owned(), |names| names.rewrite(text));
        let data = |text: &str| match self.meta.started_at {
            Some(then) => shift(&path(text), then, now - then),
            None => path(text),
        };
        let tree = |value: &Value| serde_json::from_str(&data(&value.to_string())).unwrap_or_else(|_| value.clone());
        let ops = self.ops.iter().map(|(at, what)| {
            let what = match what {
                FolderStep::Append { path: p, data: d } => FolderStep::Append { path: path(p), data: data(d) },
                FolderStep::Write { path: p, data: d } => FolderStep::Write { path: path(p), data: data(d) },
                FolderStep::Remove { path: p } => FolderStep::Remove { path: path(p) },
                FolderStep::Hook { event, payload } => {
                    FolderStep::Hook { event: event.clone(), payload: tree(payload) }
                }
                FolderStep::Otlp { path, payload } => FolderStep::Otlp { path: path.clone(), payload: tree(payload) },
                FolderStep::Spawn { .. }
                | FolderStep::Exit { .. }
                | FolderStep::Out { .. }
                | FolderStep::In { .. }
                | FolderStep::Other => what.clone(),
            };
            (*at, what)
        });
        Self { ops: ops.collect(), ..self.clone() }
    }
}

const DAY_MS: i64 = 86_400_000;

/// Shifts the times in a text by `by` ms: RFC 3339 in UTC with milliseconds, and numbers of 13 digits (ms) and 19 (ns)
/// within a day of `then`. The length stays the same.
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
            } else if let Some(unit) = [(13, 1), (19, 1_000_000)].iter().find(|u| u.0 == digits).map(|u| u.1) {
                let number: Option<i64> = text[at..at + digits].parse().ok();
                number.filter(|n| (n / unit - then).abs() < DAY_MS).map(|n| (digits, (n + by * unit).to_string()))
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
