//! Recordings of real sessions with the true status: `fixtures/recordings`. This module covers the files and processes
//! of a recording; [`folder`] reads the format.

pub mod folder;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use events::{Provider, State};

use self::folder::Folder;
use crate::rows;

/// The description of a recording.
#[derive(Debug, Clone)]
pub struct About {
    /// The agent.
    pub provider: Provider,
    /// The name of the scenario.
    pub scenario: String,
    /// The agent's working directory when it was recorded.
    pub cwd: String,
    /// The agent user's home when it was recorded.
    pub home: String,
    /// The wall clock at second 0, ms.
    pub started_at: i64,
}

/// An event with its time.
#[derive(Debug, Clone)]
pub struct Op {
    /// The time, seconds.
    pub at: f64,
    /// The event.
    pub what: What,
}

/// An event of processes or files.
#[derive(Debug, Clone)]
pub enum What {
    /// The program started for the `run`-th time.
    Spawn {
        /// The run, from 0.
        run: usize,
    },
    /// The run ended.
    Exit {
        /// The run, from 0.
        run: usize,
    },
    /// Bytes were appended to a file.
    Append {
        /// The path below the home.
        path: String,
        /// The bytes.
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
}

impl What {
    /// The event of a line; `None` for lines of other kinds.
    fn of(what: folder::FolderStep) -> Option<Self> {
        match what {
            folder::FolderStep::Spawn { run } => Some(Self::Spawn { run }),
            folder::FolderStep::Exit { run, .. } => Some(Self::Exit { run }),
            folder::FolderStep::Append { path, data } => Some(Self::Append { path, data }),
            folder::FolderStep::Write { path, data } => Some(Self::Write { path, data }),
            folder::FolderStep::Remove { path } => Some(Self::Remove { path }),
            folder::FolderStep::Out { .. }
            | folder::FolderStep::In { .. }
            | folder::FolderStep::Hook { .. }
            | folder::FolderStep::Otlp { .. }
            | folder::FolderStep::Other => None,
        }
    }
}

/// The true status from a certain time on.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The time, seconds.
    pub at: f64,
    /// The state.
    pub state: State,
    /// The reason, where it matters.
    pub reason: Option<String>,
}

/// One recording.
#[derive(Debug, Clone)]
pub struct Recording {
    /// `provider/scenario`.
    pub name: String,
    /// Its description.
    pub about: About,
    /// The events, in order.
    pub timeline: Vec<Op>,
    /// The true statuses, in order.
    pub truth: Vec<Truth>,
}

/// The folder of recorded data.
#[must_use]
pub fn fixtures() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures"))
}

impl Recording {
    /// Reads `fixtures/recordings/<name>`.
    #[must_use]
    pub fn load(name: &str) -> Self {
        Self::of(
            name,
            Folder::read(&fixtures().join("recordings").join(name)).unwrap_or_else(|words| panic!("{words}")),
        )
    }

    /// The files and processes of a folder.
    #[must_use]
    pub fn of(name: &str, folder: Folder) -> Self {
        let Folder { meta, timeline, truth, .. } = folder;
        let told = |field: Option<String>, of: &str| field.unwrap_or_else(|| panic!("{name}: {of} is not told"));
        let about = About {
            provider: meta.provider,
            scenario: meta.scenario,
            cwd: told(meta.cwd, "cwd"),
            home: told(meta.home, "home"),
            started_at: meta.started_at.unwrap_or_else(|| panic!("{name}: started_at is not told")),
        };
        let op = |line: folder::Line| Some(Op { at: line.at, what: What::of(line.what)? });
        let truth = truth.into_iter().map(|t| Truth {
            at: t.at,
            state: t.state,
            reason: t.reason.map(|reason| reason.as_str().to_owned()),
        });
        Self {
            name: name.to_owned(),
            about,
            timeline: timeline.into_iter().filter_map(op).collect(),
            truth: truth.collect(),
        }
    }
}

/// Recorded paths and their replacements on another machine.
#[derive(Debug, Clone)]
pub struct Names(Vec<(String, String)>);

impl Names {
    /// Replaces the recorded home and working directory by these, also in the spelling of Claude's folder names.
    #[must_use]
    pub fn new(about: &About, home: &Path, project: &Path) -> Self {
        Self::between(&about.cwd, project, &about.home, home)
    }

    /// Like [`Names::new`], with an explicit working directory and home.
    #[must_use]
    pub fn between(cwd: &str, project: &Path, old_home: &str, home: &Path) -> Self {
        let mut names = Vec::new();
        for (old, new) in [(cwd, project), (old_home, home)] {
            let new = new.to_string_lossy().into_owned();
            names.push((old.to_owned(), new.clone()));
            names.push((old.replace('/', "-"), new.replace('/', "-")));
        }
        Self(names)
    }

    /// Replaces the recorded paths in a text.
    #[must_use]
    pub fn rewrite(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    }
}

impl Recording {
    /// Writes the files in their final state.
    pub fn lay_down(&self, home: &Path, project: &Path) {
        let names = Names::new(&self.about, home, project);
        for op in &self.timeline {
            match &op.what {
                What::Spawn { .. } | What::Exit { .. } => {}
                What::Append { path, data } | What::Write { path, data } => {
                    let path = home.join(names.rewrite(path));
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    if rows::is_database(&path) {
                        rows::append(&rows::open(&path), &names.rewrite(data));
                        continue;
                    }
                    let append = matches!(op.what, What::Append { .. });
                    let mut file = fs::OpenOptions::new()
                        .create(true)
                        .write(true)
                        .append(append)
                        .truncate(!append)
                        .open(path)
                        .unwrap();
                    file.write_all(names.rewrite(data).as_bytes()).unwrap();
                }
                What::Remove { path } => drop(fs::remove_file(home.join(names.rewrite(path)))),
            }
        }
    }
}
