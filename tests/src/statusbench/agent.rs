//! The agent of the benchmark: a process with the agent's name that repeats the recorded actions at the same times. The
//! file named in its environment ([`PART`]) contains the actions; the process knows nothing of capture.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{case::FolderStep, wait_until};
use crate::{http::Client, rows};

/// The environment variable with the path of a [`Part`].
pub const PART: &str = "STATUSBENCH_PART";

/// The actions of one process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    /// The home directory.
    pub home: PathBuf,
    /// The settings file with hooks, below the home.
    pub settings: String,
    /// Second 0, ms of the monotonic clock.
    pub zero: i64,
    /// The time of its end, ms from second 0.
    pub end: i64,
    /// Its exit status; negative: the signal that ends it.
    pub code: Option<i32>,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// The time, ms from second 0, and the action.
    pub ops: Vec<(i64, FolderStep)>,
    /// The address and token for telemetry.
    pub telemetry: (String, String),
}

/// Plays the part in the file.
#[must_use]
pub fn main(file: &Path) -> ExitCode {
    let part: Part = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    if part.terminal {
        make_raw();
        // Typed input is read and ignored.
        std::thread::spawn(|| while matches!(std::io::stdin().read(&mut [0; 4096]), Ok(1..)) {});
    }
    let mut files = Files::new(part.home.clone());
    let hooks = Hooks::read(&part.home.join(&part.settings));
    for (at, what) in &part.ops {
        wait_until(part.zero + at);
        match what {
            FolderStep::Out { data, .. } => {
                let mut out = std::io::stdout().lock();
                if out.write_all(data.as_bytes()).and_then(|()| out.flush()).is_err() {
                    return ExitCode::FAILURE;
                }
            }
            FolderStep::Hook { event, payload } => hooks.fire(event, payload),
            FolderStep::Otlp { path, payload } => send(&part.telemetry, path, payload),
            FolderStep::Append { .. } | FolderStep::Write { .. } | FolderStep::Remove { .. } => files.apply(what),
            FolderStep::Spawn { .. } | FolderStep::Exit { .. } | FolderStep::In { .. } | FolderStep::Other => {}
        }
    }
    wait_until(part.zero + part.end);
    match part.code {
        Some(code @ ..0) => {
            if let Some(signal) = rustix::process::Signal::from_named_raw(-code) {
                rustix::process::kill_process(rustix::process::getpid(), signal).ok();
            }
            ExitCode::FAILURE
        }
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::FAILURE,
    }
}

fn make_raw() {
    let input = std::io::stdin();
    if let Ok(mut settings) = tcgetattr(&input) {
        settings.make_raw();
        tcsetattr(&input, OptionalActions::Now, &settings).ok();
    }
}

fn send((address, token): &(String, String), path: &str, payload: &Value) {
    let client = Client { address: address.clone(), token: token.clone() };
    let (path, body) = (path.to_owned(), payload.to_string());
    std::thread::spawn(move || client.send("POST", &path, Some(&body), std::time::Duration::from_secs(5)).ok());
}

/// Writes the files of an agent; files that are appended to stay open.
#[derive(Debug)]
pub struct Files {
    home: PathBuf,
    open: HashMap<PathBuf, File>,
    databases: HashMap<PathBuf, rusqlite::Connection>,
}

impl Files {
    /// Writes below this home.
    #[must_use]
    pub fn new(home: PathBuf) -> Self {
        Self { home, open: HashMap::new(), databases: HashMap::new() }
    }

    /// Applies an action on files; ignores others.
    pub fn apply(&mut self, what: &FolderStep) {
        match what {
            FolderStep::Append { path, data } => {
                let path = self.at(path);
                if rows::is_database(&path) {
                    let database = self.databases.entry(path).or_insert_with_key(|path| rows::open(path));
                    return rows::append(database, data);
                }
                let open = self
                    .open
                    .entry(path)
                    .or_insert_with_key(|path| File::options().create(true).append(true).open(path).unwrap());
                open.write_all(data.as_bytes()).unwrap();
            }
            FolderStep::Write { path, data } => {
                let mine = registry(path).and_then(|path| Some((path, own_registry(data)?)));
                match mine {
                    Some((path, data)) => fs::write(self.at(&path), data).unwrap(),
                    None => fs::write(self.at(path), data).unwrap(),
                }
            }
            FolderStep::Remove { path } => {
                let path = registry(path).unwrap_or_else(|| path.clone());
                fs::remove_file(self.at(&path)).ok();
            }
            FolderStep::Spawn { .. }
            | FolderStep::Exit { .. }
            | FolderStep::Out { .. }
            | FolderStep::In { .. }
            | FolderStep::Hook { .. }
            | FolderStep::Otlp { .. }
            | FolderStep::Other => {}
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

/// The path in Claude's live registry, whose files are named by process id, with the id of this process.
fn registry(path: &str) -> Option<String> {
    let (dir, file) = path.rsplit_once('/')?;
    let pid = file.strip_suffix(".json")?;
    let is_one = dir.ends_with("/sessions") && !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
    is_one.then(|| format!("{dir}/{}.json", std::process::id()))
}

/// The registry entry with the id and start time (ticks since boot) of this process.
fn own_registry(data: &str) -> Option<String> {
    let mut entry: Value = serde_json::from_str(data).ok()?;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let start = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    let fields = entry.as_object_mut()?;
    fields.insert("pid".to_owned(), std::process::id().into());
    fields.insert("procStart".to_owned(), start.into());
    Some(entry.to_string())
}

/// The hooks installed in the agent's settings.
#[derive(Debug, Default)]
struct Hooks(HashMap<String, Vec<(Option<String>, String)>>);

impl Hooks {
    fn read(settings: &Path) -> Self {
        let text = fs::read_to_string(settings).unwrap_or_default();
        let settings: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut hooks = HashMap::new();
        for (event, groups) in settings["hooks"].as_object().into_iter().flatten() {
            let groups = groups.as_array().into_iter().flatten();
            let commands = groups.flat_map(|group| {
                let matcher = group["matcher"].as_str().map(str::to_owned);
                let hooks = group["hooks"].as_array().into_iter().flatten();
                hooks.filter_map(move |hook| Some((matcher.clone(), hook["command"].as_str()?.to_owned())))
            });
            hooks.insert(event.clone(), commands.collect());
        }
        Self(hooks)
    }

    /// Runs the hooks of an event as child processes in parallel, without waiting.
    fn fire(&self, event: &str, payload: &Value) {
        let words = ["tool_name", "notification_type", "source", "trigger"];
        let what = words.iter().find_map(|word| payload[word].as_str().filter(|text| !text.is_empty()));
        for (matcher, command) in self.0.get(event).into_iter().flatten() {
            if matches(matcher.as_deref(), what.unwrap_or_default()) {
                let (command, payload) = (command.clone(), payload.to_string());
                std::thread::spawn(move || call(&command, &payload).ok());
            }
        }
    }
}

/// A matcher is a pattern for the complete subject of the event; an empty one or `*` matches everything.
fn matches(matcher: Option<&str>, what: &str) -> bool {
    match matcher {
        None | Some("" | "*") => true,
        Some(pattern) => regex::Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(what)),
    }
}

fn call(command: &str, payload: &str) -> std::io::Result<()> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(payload.as_bytes())?;
    }
    child.wait()?;
    Ok(())
}
