//! The runs of a data directory that can be attached to. Each terminal host writes a small file and removes it at the
//! end.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use atomic_file::Durability;
use events::{RunId, Timestamp};
use serde::{Deserialize, Serialize};

/// A run that can be attached to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The run.
    pub run: RunId,
    /// The name set by the user.
    pub name: Option<String>,
    /// Process id of the program.
    pub pid: u32,
    /// Process id of the host.
    pub host_pid: u32,
    /// Start of the host in clock ticks since boot.
    pub host_start_ticks: u64,
    /// The socket to attach to.
    pub socket: PathBuf,
    /// The command, word by word.
    pub command: Vec<String>,
    /// Working directory at the start.
    pub cwd: String,
    /// When it started.
    pub started_at: Timestamp,
}

/// The directory that contains the files of the runs.
#[must_use]
pub fn dir(data: &Path) -> PathBuf {
    data.join("runs")
}

/// Creates the directory, accessible only to its owner.
///
/// # Errors
/// If the directory cannot be created.
pub fn make_dir(data: &Path) -> io::Result<PathBuf> {
    let dir = dir(data);
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(dir)
}

/// The socket of a run.
#[must_use]
pub fn socket(data: &Path, run: RunId) -> PathBuf {
    dir(data).join(format!("{run}.sock"))
}

fn file(data: &Path, run: RunId) -> PathBuf {
    dir(data).join(format!("{run}.json"))
}

impl Description {
    /// Writes the description atomically.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(&self, data: &Path) -> io::Result<()> {
        atomic_file::replace(&file(data, self.run), &serde_json::to_vec(self)?, Durability::Unsynced)
    }
}

/// Changes the name in the description of a run; `written` adjusts the description before it is written.
///
/// # Errors
/// If the description cannot be read or written.
pub fn rename(data: &Path, run: RunId, name: &str, written: fn(&mut Description)) -> io::Result<()> {
    let mut description: Description = serde_json::from_slice(&fs::read(file(data, run))?)?;
    description.name = Some(name.to_owned());
    written(&mut description);
    description.store(data)
}

/// Removes the files of a run.
pub fn remove(data: &Path, run: RunId) {
    fs::remove_file(file(data, run)).ok();
    fs::remove_file(socket(data, run)).ok();
}

/// All runs, newest first. Removes the files of hosts that have ended.
#[must_use]
pub fn list(data: &Path) -> Vec<Description> {
    let Ok(entries) = fs::read_dir(dir(data)) else { return Vec::new() };
    let mut runs = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Ok(run) = serde_json::from_str::<Description>(&text) else { continue };
        if processes::is_alive(run.host_pid, run.host_start_ticks) {
            runs.push(run);
        } else {
            remove(data, run.run);
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.run));
    runs
}

/// Reserves a name until this run has written its description.
#[derive(Debug)]
pub struct NameClaim {
    _lock: File,
}

/// Reserves a name for a run.
///
/// # Errors
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if an active run has the name; another error if that cannot be
/// determined.
pub fn claim_name(data: &Path, name: &str) -> io::Result<NameClaim> {
    let path = make_dir(data)?.join("names.lock");
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    lock.lock()?;
    match list(data).iter().find(|run| run.name.as_deref() == Some(name)) {
        Some(other) => {
            let why = format!("the name `{name}` is used by run {}", other.run);
            Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
        }
        None => Ok(NameClaim { _lock: lock }),
    }
}

/// The runs that match a word typed by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundRun {
    /// Exactly one run.
    One(Box<Description>),
    /// Several runs.
    Several(Vec<RunId>),
    /// No run.
    None,
}

/// Shortest part of an id that identifies a run, as everywhere in capture.
const SHORTEST_PART: usize = 3;
/// Length of a short id: the last characters of an id, as lists show them.
const SHORT_ID: usize = 8;

/// Finds a run by its name, its id, or at least 3 characters from the start or end of its id or of its short id.
#[must_use]
pub fn find(data: &Path, given: &str) -> FoundRun {
    let upper = given.to_ascii_uppercase();
    let all = list(data);
    let named: Vec<&Description> = all.iter().filter(|r| r.name.as_deref() == Some(given)).collect();
    let fits: Vec<&Description> = if named.is_empty() && given.len() >= SHORTEST_PART {
        let fits = |id: &str| id.starts_with(&upper) || id.ends_with(&upper) || is_short_start(id, &upper);
        all.iter().filter(|r| fits(&r.run.to_string())).collect()
    } else {
        named
    };
    match fits.as_slice() {
        [] => FoundRun::None,
        [one] => FoundRun::One(Box::new((*one).clone())),
        several => FoundRun::Several(several.iter().map(|r| r.run).collect()),
    }
}

/// Whether the short id of this id starts with `given`.
fn is_short_start(id: &str, given: &str) -> bool {
    id.get(id.len().saturating_sub(SHORT_ID)..).is_some_and(|short| short.starts_with(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_by_id_prefix_or_name_and_dead_runs_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        make_dir(dir.path()).unwrap();
        let me = std::process::id();
        let describe = |ms: i64, name: &str, ticks: u64| Description {
            run: RunId::mint(Timestamp::from_millisecond(ms), [7; 10]),
            name: Some(name.into()),
            pid: 1,
            host_pid: me,
            host_start_ticks: ticks,
            socket: "s".into(),
            command: vec!["claude".into()],
            cwd: "/".into(),
            started_at: Timestamp::from_millisecond(ms),
        };
        let ticks = processes::start_ticks(me).unwrap();
        let (a, b) = (describe(1_700_000_000_000, "a", ticks), describe(1_700_000_000_001, "b", ticks));
        let dead = describe(1_700_000_000_002, "dead", ticks + 1);
        for run in [&a, &b, &dead] {
            run.store(dir.path()).unwrap();
        }
        assert_eq!(find(dir.path(), "a"), FoundRun::One(Box::new(a.clone())));
        assert_eq!(find(dir.path(), &b.run.to_string().to_lowercase()), FoundRun::One(Box::new(b.clone())));
        assert_eq!(find(dir.path(), &a.run.to_string()[..8]), FoundRun::Several(vec![b.run, a.run]));
        let taken = claim_name(dir.path(), "a").unwrap_err();
        assert_eq!(taken.to_string(), format!("the name `a` is used by run {}", a.run));
        assert!(claim_name(dir.path(), "free").is_ok() && claim_name(dir.path(), "dead").is_ok());
        assert_eq!(find(dir.path(), "dead"), FoundRun::None);
        assert_eq!(find(dir.path(), ""), FoundRun::None);
        let id = a.run.to_string();
        assert_eq!(find(dir.path(), &id[..SHORTEST_PART - 1]), FoundRun::None, "too short");
        assert_eq!(find(dir.path(), &id[..SHORTEST_PART]), FoundRun::Several(vec![b.run, a.run]));
        assert!(!file(dir.path(), dead.run).exists());
    }
}
