//! Recordings of real sessions with what was true meanwhile: `fixtures/recordings`.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use events::{Provider, State};
use serde::Deserialize;

/// `recording.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct About {
    /// The agent.
    pub provider: Provider,
    /// The scenario's name.
    pub scenario: String,
    /// The agent's working directory when it was recorded.
    pub cwd: String,
    /// The agent user's home when it was recorded.
    pub home: String,
    /// The wall clock at second 0, ms.
    pub started_at: i64,
}

/// One line of `timeline.jsonl`.
#[derive(Debug, Clone, Deserialize)]
pub struct Op {
    /// When, seconds.
    pub at: f64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum What {
    /// The program began for the `run`-th time.
    Spawn {
        /// Which run, from 0.
        run: usize,
    },
    /// That run ended.
    Exit {
        /// Which run, from 0.
        run: usize,
    },
    /// Bytes came to the end of a file.
    Append {
        /// Below the home.
        path: String,
        /// The bytes.
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
}

/// One line of `truth.jsonl`: from then on this was true.
#[derive(Debug, Clone, Deserialize)]
pub struct Truth {
    /// When, seconds.
    pub at: f64,
    /// The state.
    pub state: State,
    /// Why, where it matters.
    pub reason: Option<String>,
}

/// One recording.
#[derive(Debug, Clone)]
pub struct Recording {
    /// `provider/scenario`.
    pub name: String,
    /// What it is.
    pub about: About,
    /// What happened, in order.
    pub timeline: Vec<Op>,
    /// What was true.
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
        let dir = fixtures().join("recordings").join(name);
        let read =
            |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_else(|e| panic!("{}/{file}: {e}", dir.display()));
        fn lines<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
            text.lines()
                .filter(|l| !l.trim().is_empty())
                .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {:.200}", l)))
                .collect()
        }
        Self {
            name: name.to_owned(),
            about: serde_json::from_str(&read("recording.json")).unwrap(),
            timeline: lines(&read("timeline.jsonl")),
            truth: lines(&read("truth.jsonl")),
        }
    }
}

/// Recorded paths and what they are on another machine.
#[derive(Debug, Clone)]
pub struct Names(Vec<(String, String)>);

impl Names {
    /// The recorded home and working directory become these; also in the spelling of Claude's
    /// folder names.
    #[must_use]
    pub fn new(about: &About, home: &Path, project: &Path) -> Self {
        let mut names = Vec::new();
        for (old, new) in [(&about.cwd, project), (&about.home, home)] {
            let new = new.to_string_lossy().into_owned();
            names.push((old.clone(), new.clone()));
            names.push((old.replace('/', "-"), new.replace('/', "-")));
        }
        Self(names)
    }

    /// Puts the other machine's paths in the place of the recorded ones.
    #[must_use]
    pub fn rewrite(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    }
}

impl Recording {
    /// Leaves the files as the agent left them.
    pub fn lay_down(&self, home: &Path, project: &Path) {
        let names = Names::new(&self.about, home, project);
        for op in &self.timeline {
            match &op.what {
                What::Spawn { .. } | What::Exit { .. } => {}
                What::Append { path, data } | What::Write { path, data } => {
                    let path = home.join(names.rewrite(path));
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
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
