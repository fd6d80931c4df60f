//! The tools of one session.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use outbound::{AllowedHost, Lookup};

use crate::{
    arguments::{BashArguments, TodoState},
    call::Call,
    cancel::Cancel,
    commands::{BackgroundState, Commands},
    environment,
    fetch::{self, Fetcher},
    files::{self, Files},
    glob, grep,
    intent::{Intent, IntentKind},
    preview::Preview,
    result::ToolResult,
    seen::SeenFile,
    shell::CommandRunner,
    workspace::Workspace,
};

/// The settings of a session's tools.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The working directory.
    pub cwd: PathBuf,
    /// The directory whose files belong to the session: the top of the repository, or the working directory.
    pub workspace: PathBuf,
    /// The directory for full outputs of this session only: files are named after calls. Created with mode 0700 when
    /// needed.
    pub outputs: PathBuf,
    /// The environment of this process. Commands get only known variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of further variables passed to commands.
    pub pass: Vec<String>,
    /// The command line that starts this program as the host of a command: its path, and
    /// [`host::VERB`](crate::host::VERB).
    pub host: Vec<OsString>,
    /// Hosts on this machine or a private network that may be fetched from.
    pub allow_hosts: Vec<String>,
    /// Resolves names to addresses.
    pub lookup: Arc<dyn Lookup>,
}

/// The tools of a session. Their methods block; call them only from threads that may block.
pub struct Tools {
    files: Files,
    commands: Commands,
    fetcher: Fetcher,
    outputs: PathBuf,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools").field("cwd", &self.files.workspace.cwd()).finish_non_exhaustive()
    }
}

impl Tools {
    /// The tools for a session.
    ///
    /// # Errors
    /// If a directory does not exist, or a host is not `host` or `host:port`.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let workspace = Workspace::new(&settings.workspace, &settings.cwd)?;
        let invalid = |host: &String| io::Error::new(io::ErrorKind::InvalidInput, format!("invalid host `{host}`"));
        let allowed: Vec<AllowedHost> = settings
            .allow_hosts
            .iter()
            .map(|host| AllowedHost::parse(host).map_err(|_| invalid(host)))
            .collect::<io::Result<_>>()?;
        let shell = CommandRunner {
            host: settings.host,
            environment: environment::for_commands(&settings.environment, &settings.pass),
            cwd: workspace.cwd().to_owned(),
        };
        Ok(Self {
            files: Files::new(workspace),
            commands: Commands::new(
                shell,
                environment::withheld(&settings.environment, &settings.pass),
                settings.outputs.clone(),
            ),
            fetcher: Fetcher { allowed: allowed.into(), lookup: settings.lookup },
            outputs: settings.outputs,
        })
    }

    /// The effects a call would have now. Changes nothing and reads no file.
    ///
    /// # Errors
    /// Why the call cannot have an effect, such as reading a missing file: the text of its result. It needs no
    /// decision.
    pub fn intent(&self, call: &Call) -> Result<Intent, String> {
        let workspace = &self.files.workspace;
        let intent =
            |kind| Intent { kind, cwd: workspace.cwd().to_owned(), paths: Vec::new(), command: None, url: None };
        let read = |path: &Path| {
            if workspace.contains(path) { IntentKind::ReadInWorkspace } else { IntentKind::ReadOutside }
        };
        let there = |text: &str, otherwise: &str| {
            let resolved = workspace.resolve(text)?;
            if resolved.exists {
                Ok(resolved.path)
            } else {
                Err(format!("{} does not exist{otherwise}", workspace.shown(&resolved.path)))
            }
        };
        match call {
            Call::Ask(_) => Ok(intent(IntentKind::Question)),
            Call::Bash(bash) => Ok(Intent { command: Some(bash.command.clone()), ..intent(IntentKind::Command) }),
            Call::Edit(edit) => {
                let path = there(&edit.path, "; create it with write")?;
                Ok(Intent { paths: vec![path], ..intent(IntentKind::Edit) })
            }
            Call::Write(write) => {
                let resolved = workspace.resolve(&write.path)?;
                if resolved.path.is_dir() {
                    return Err(format!("{} is a directory", workspace.shown(&resolved.path)));
                }
                Ok(Intent { paths: vec![resolved.path], ..intent(IntentKind::Write) })
            }
            Call::Read(arguments) => {
                let path = there(&arguments.path, "")?;
                Ok(Intent { paths: vec![path.clone()], ..intent(read(&path)) })
            }
            Call::Glob(arguments) => {
                let path = there(arguments.path.as_deref().unwrap_or("."), "")?;
                Ok(Intent { paths: vec![path.clone()], ..intent(read(&path)) })
            }
            Call::Grep(arguments) => {
                let path = there(arguments.path.as_deref().unwrap_or("."), "")?;
                Ok(Intent { paths: vec![path.clone()], ..intent(read(&path)) })
            }
            Call::Fetch(arguments) => {
                let url = fetch::parse_url(&arguments.url).map_err(|why| format!("the URL {why}"))?;
                Ok(Intent { url: Some(url.into()), ..intent(IntentKind::Fetch) })
            }
            Call::Process(_) | Call::Todo(_) => Ok(intent(IntentKind::Session)),
        }
    }

    /// Performs a call that was approved with this intent. It touches only the paths and the address of the intent.
    ///
    /// `id` is the id of the call; the name of its output file is derived from it.
    pub fn run(&self, id: &str, call: &Call, intent: &Intent, cancel: &Cancel) -> ToolResult {
        if cancel.is_cancelled() {
            return ToolResult::error("cancelled before it began");
        }
        let path = match path_of(call, intent) {
            Ok(path) => path,
            Err(why) => return ToolResult::error(why),
        };
        match call {
            Call::Ask(_) => ToolResult::error("a question is asked by the session, not run as a call"),
            Call::Bash(arguments) => match &intent.command {
                // The decision may have replaced the command.
                Some(command) => {
                    let arguments = BashArguments { command: command.clone(), ..arguments.clone() };
                    self.commands.bash(id, &arguments, cancel)
                }
                None => ToolResult::error("internal error: the checked call has no command"),
            },
            Call::Edit(arguments) => self.files.edit(path, arguments),
            Call::Fetch(_) => match &intent.url {
                Some(url) => self.fetcher.fetch(id, url, &self.outputs, cancel),
                None => ToolResult::error("internal error: the checked call has no address"),
            },
            Call::Glob(arguments) => glob::glob(&self.files.workspace, path, arguments, cancel),
            Call::Grep(arguments) => grep::grep(&self.files.workspace, path, arguments, cancel),
            Call::Process(arguments) => self.commands.process(arguments),
            Call::Read(arguments) => files::read(&self.files, path, arguments, cancel),
            Call::Todo(arguments) => {
                let done = arguments.items.iter().filter(|item| item.state == TodoState::Done).count();
                ToolResult::text(format!("the list has {} items, {done} of them done", arguments.items.len()))
            }
            Call::Write(arguments) => self.files.write(path, arguments),
        }
    }

    /// Previews a call in the current state, for the approver: what [`run`](Self::run) would do, to the extent that can
    /// be determined without trying. `None` for calls fully described by their arguments. Changes and records nothing.
    #[must_use]
    pub fn preview(&self, call: &Call, intent: &Intent) -> Option<Preview> {
        let path = match path_of(call, intent) {
            Ok(path) => path,
            Err(why) => return Some(Preview::Refused(why.to_owned())),
        };
        match call {
            Call::Edit(arguments) => Some(self.files.preview_edit(path, arguments)),
            Call::Write(arguments) => Some(self.files.preview_write(path, arguments)),
            Call::Ask(_)
            | Call::Bash(_)
            | Call::Fetch(_)
            | Call::Glob(_)
            | Call::Grep(_)
            | Call::Process(_)
            | Call::Read(_)
            | Call::Todo(_) => None,
        }
    }

    /// The result of a call whose [`preview`](Self::preview) changes nothing, without a decision. If the call would now
    /// change something, it is not made, and the result says so.
    pub fn run_without_effect(&self, call: &Call, intent: &Intent) -> ToolResult {
        let path = match path_of(call, intent) {
            Ok(path) => path,
            Err(why) => return ToolResult::error(why),
        };
        match call {
            Call::Edit(arguments) => self.files.edit_without_effect(path, arguments),
            Call::Write(arguments) => self.files.write_without_effect(path, arguments),
            Call::Ask(_)
            | Call::Bash(_)
            | Call::Fetch(_)
            | Call::Glob(_)
            | Call::Grep(_)
            | Call::Process(_)
            | Call::Read(_)
            | Call::Todo(_) => ToolResult::error("no decision was made about this call, so it was not run"),
        }
    }

    /// Restores what the model saw before a restart: the `seen` of each result, in order.
    pub fn restore(&self, seen: SeenFile) {
        self.files.seen().record(seen, None);
    }

    /// Forgets what the model saw, for when its context no longer contains it.
    pub fn forget_seen(&self) {
        self.files.seen().clear();
    }

    /// The background commands, and those that ended recently.
    #[must_use]
    pub fn background(&self) -> Vec<BackgroundState> {
        self.commands.states()
    }

    /// Ends all background commands, and waits up to 3 s for them.
    pub fn stop_background(&self) {
        self.commands.stop();
    }
}

/// The path of a call that needs one. Fails if it was not resolved.
fn path_of<'a>(call: &Call, intent: &'a Intent) -> Result<&'a Path, &'static str> {
    let path = intent.paths.first().map_or(Path::new(""), PathBuf::as_path);
    let needs_path = matches!(call, Call::Read(_) | Call::Edit(_) | Call::Write(_) | Call::Glob(_) | Call::Grep(_));
    if needs_path && !path.is_absolute() { Err("internal error: the checked call has no path") } else { Ok(path) }
}

/// The user's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonAnswer {
    /// The user answered.
    Text(String),
    /// No answer came in time, or none is possible.
    Nobody,
}

/// The result of a question.
#[must_use]
pub fn answer(answer: &PersonAnswer) -> ToolResult {
    match answer {
        PersonAnswer::Text(text) => {
            let (text, removed) = crate::text::clean(text.as_bytes());
            let mut result = ToolResult::text(if text.is_empty() { "(an empty answer)".to_owned() } else { text });
            (result.details.masked, result.details.removed) = (removed.masked, removed.removed);
            result
        }
        PersonAnswer::Nobody => {
            ToolResult::error("the user did not answer; go ahead without it, or reply with what you need to know")
        }
    }
}

#[cfg(test)]
mod tests;
