//! Our own agent on a separate machine, configured for a model on loopback.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tests::{
    models::Api,
    program::Machine,
    terminal_user::{User, end_all},
};

use crate::{Bench, Outcome};

/// The variable with the key of the model.
pub(crate) const KEY: &str = "OWN_AGENT";
/// The texts with which the agent asks for permission, and asks a question.
pub(crate) const MAY_I: &str = "or say what to do instead: ";
pub(crate) const ANSWER: &str = "Answer: ";

/// All four APIs.
pub(crate) const APIS: [Api; 4] = [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini];

/// The name of an API in the settings.
pub(crate) fn api_name(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "anthropic",
        Api::Responses => "responses",
        Api::Chat => "chat",
        Api::Gemini => "gemini",
    }
}

/// A separate machine for the agent.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) machine: Machine,
    /// Directory for copies of its sessions.
    keep: Option<PathBuf>,
}

impl Drop for Place {
    fn drop(&mut self) {
        end_all(&self.machine.data());
        for file in self.sessions() {
            if let (Some(keep), Some(name)) = (&self.keep, file.file_name())
                && let Err(error) = fs::copy(&file, keep.join(name))
            {
                eprintln!("{}: {error}", file.display());
            }
        }
    }
}

impl Place {
    /// A machine whose program uses the model at this address. `more` is added to the table `[agent]`, `provider` to
    /// the table of the provider.
    pub(crate) fn new(bench: &Bench, api: Api, url: &str, more: &str, provider: &str) -> Outcome<Self> {
        let program = &bench.binary;
        let program = program.to_str().ok_or_else(|| format!("{}: not valid UTF-8", program.display()))?;
        let machine = Machine::new(program);
        let place = Self { machine, keep: bench.keep.clone() };
        place.point_to(api, url, more, provider);
        Ok(place)
    }

    /// Configures the program for the model at this address.
    pub(crate) fn point_to(&self, api: Api, url: &str, more: &str, provider: &str) {
        let (version, model) = match api {
            Api::Anthropic => ("", "claude-sonnet-4-5"),
            Api::Responses => ("/v1", "gpt-5"),
            Api::Chat => ("/v1", "local"),
            Api::Gemini => ("", "gemini-3-flash-preview"),
        };
        self.machine.configure(&format!(
            "autostart = false\n[agent]\nmodel = \"mine/{model}\"\n{more}\n[agent.providers.mine]\napi = \"{}\"\n\
             base_url = \"{url}{version}\"\nkey_env = \"{KEY}\"\n{provider}\n",
            api_name(api)
        ));
    }

    /// `capture agent` with these arguments, to be run in the project.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.machine.command(&[&["agent"], words].concat());
        command.env(KEY, "sk-bench").current_dir(self.machine.project());
        command
    }

    /// Runs a prompt without a terminal.
    pub(crate) fn run(&self, words: &[&str]) -> Outcome<Ran> {
        let output = self.command(&[&["run"], words].concat()).output().map_err(|error| error.to_string())?;
        Ok(Ran::of(output))
    }

    /// Runs a prompt of plain words with a user at a terminal.
    pub(crate) fn at_terminal(&self, words: &str) -> User {
        let script = format!("\"$PROGRAM\" agent run {words}");
        User::start_with(&self.machine, &script, &[(KEY, "sk-bench")])
    }

    /// The files of its sessions, sorted by name.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let below = |directory: PathBuf| {
            let entries = fs::read_dir(directory).into_iter().flatten();
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>()
        };
        let mut files: Vec<PathBuf> =
            below(self.machine.data().join("agent/sessions")).into_iter().flat_map(below).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
        files.sort();
        files
    }

    /// The complete lines of its only session.
    pub(crate) fn entries(&self) -> Outcome<Vec<Value>> {
        match self.sessions().as_slice() {
            [] => Ok(Vec::new()),
            [file] => entries(file),
            several => Err(format!("there are {} sessions", several.len())),
        }
    }

    /// The output of `capture agent cache` for the only session.
    pub(crate) fn cache_table(&self) -> Outcome<Value> {
        let sessions = self.sessions();
        let file = sessions.last().ok_or("no session was written")?;
        let words = ["cache", file.to_str().unwrap_or_default(), "--json"];
        let output = self.command(&words).output().map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout).map_err(|error| format!("capture agent cache: {error}: {output:?}"))
    }

    /// A file in the project; empty if it does not exist.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.machine.project().join(name)).unwrap_or_default()
    }

    /// Writes a file in the project.
    pub(crate) fn write(&self, name: &str, text: &str) -> Outcome<()> {
        fs::write(self.machine.project().join(name), text).map_err(|error| format!("{name}: {error}"))
    }
}

/// The complete lines of a session's file.
pub(crate) fn entries(file: &Path) -> Outcome<Vec<Value>> {
    let text = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    // A line torn by a kill is reported by the program and is not part of the session.
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// The output of a prompt and its exit code.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// An error unless the prompt succeeded.
    pub(crate) fn done(self) -> Outcome<Self> {
        if self.code == Some(0) { Ok(self) } else { Err(format!("exit {:?}: {}{}", self.code, self.out, self.err)) }
    }
}
