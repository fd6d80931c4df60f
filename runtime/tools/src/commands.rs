//! `bash` and `process`: commands in the foreground and in the background.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crate::{
    arguments::{BashArguments, ProcessAction, ProcessArguments},
    cancel::Cancel,
    environment::{Withheld, answers_no, missed},
    limits,
    output::{Kept, Window},
    result::{Exit, OutputFile, ToolResult},
    shell::{CommandRunner, Ended, Running},
    text,
};

/// Maximum number of possibly missing variables named in a result.
const NAMED_VARIABLES: usize = 3;
/// Maximum number of ended commands remembered.
const REMEMBERED: usize = 32;

/// The commands of a session.
pub(crate) struct Commands {
    shell: CommandRunner,
    /// Variables not passed to commands.
    withheld: Vec<Withheld>,
    outputs: PathBuf,
    background: Mutex<Vec<Arc<Background>>>,
    next: AtomicU64,
}

/// A background command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundState {
    /// The id by which the model refers to it: `p1`.
    pub id: String,
    /// The id of the call that started it.
    pub call: String,
    /// The command line.
    pub command: String,
    /// How it ended; `None` while it runs.
    pub exit: Option<Exit>,
    /// Bytes printed so far.
    pub printed_bytes: u64,
}

struct Background {
    id: String,
    call: String,
    command: String,
    stop: Cancel,
    output: Mutex<BackgroundOutput>,
    reader: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct BackgroundOutput {
    unread: Window,
    printed: u64,
    kept: Option<Kept>,
    ended: Option<Result<Ended, String>>,
    file: Option<OutputFile>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Commands {
    pub(crate) const fn new(shell: CommandRunner, withheld: Vec<Withheld>, outputs: PathBuf) -> Self {
        Self { shell, withheld, outputs, background: Mutex::new(Vec::new()), next: AtomicU64::new(1) }
    }

    pub(crate) fn bash(&self, call: &str, arguments: &BashArguments, cancel: &Cancel) -> ToolResult {
        if cancel.is_cancelled() {
            return ToolResult::error("cancelled; the command was not started");
        }
        if arguments.background == Some(true) {
            return self.begin(call, &arguments.command);
        }
        let limit_s = arguments.timeout_s.unwrap_or(limits::TIMEOUT_S);
        let running = match self.shell.start(&arguments.command, Some(Duration::from_secs(limit_s.into()))) {
            Ok(running) => running,
            Err(error) => return ToolResult::error(format!("cannot start the command: {error}")),
        };
        let (mut window, mut kept) = (Window::default(), Kept::new(&self.outputs, call));
        let ended = running.finish(cancel.readable(), |bytes| {
            window.push(bytes);
            kept.push(bytes);
        });
        let (mut said, removed) = window.shown(kept.path());
        let mut result = match ended {
            Ok(ended) => {
                let missed = match ended.exit {
                    Exit::Code(1) if answers_no(&arguments.command) => Vec::new(),
                    Exit::Code(1..) => missed(&self.withheld, &arguments.command, &said),
                    Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::Cancelled => Vec::new(),
                };
                said = with_end(said, &ended, limit_s);
                let notes: Vec<String> = missed.iter().take(NAMED_VARIABLES).map(|one| not_passed(one)).collect();
                for note in &notes {
                    write!(said, "\n[{note}]").ok();
                }
                let mut result = ToolResult::text(said);
                result.is_error = ended.exit != Exit::Code(0);
                result.details.exit = Some(ended.exit);
                result.details.notes = notes;
                result
            }
            Err(why) => ToolResult::error(format!("{said}\n[{why}]")),
        };
        (result.details.masked, result.details.removed) = (removed.masked, removed.removed);
        result.details.output = kept.finish(window.total());
        result
    }

    /// Starts a background command.
    fn begin(&self, call: &str, command: &str) -> ToolResult {
        let mut all = locked(&self.background);
        let running = all.iter().filter(|one| locked(&one.output).ended.is_none()).count();
        if running >= limits::BACKGROUND {
            return ToolResult::error(format!(
                "{running} commands run in the background, which is the limit; stop one with process"
            ));
        }
        let started = Cancel::new().and_then(|stop| Ok((stop, self.shell.start(command, None)?)));
        let (stop, running) = match started {
            Ok(started) => started,
            Err(error) => return ToolResult::error(format!("cannot start the command: {error}")),
        };
        let id = format!("p{}", self.next.fetch_add(1, Ordering::Relaxed));
        let one = Arc::new(Background {
            id: id.clone(),
            call: call.to_owned(),
            command: command.to_owned(),
            stop,
            output: Mutex::new(BackgroundOutput { kept: Some(Kept::new(&self.outputs, call)), ..Default::default() }),
            reader: Mutex::new(None),
        });
        let reader = Arc::clone(&one);
        let spawned = std::thread::Builder::new().name("background".to_owned()).spawn(move || reader.follow(running));
        match spawned {
            Ok(handle) => *locked(&one.reader) = Some(handle),
            Err(error) => return ToolResult::error(format!("cannot start the command: {error}")),
        }
        while all.len() >= REMEMBERED {
            let Some(over) = all.iter().position(|one| locked(&one.output).ended.is_some()) else { break };
            all.remove(over);
        }
        all.push(one);
        let mut result = ToolResult::text(format!(
            "{id} runs in the background; read its output with `process` and the action `output`. It ends with the \
             agent's process: at the latest with the session, often with this turn. Do not promise the user that it \
             keeps running"
        ));
        result.details.background = Some(id);
        result
    }

    pub(crate) fn process(&self, arguments: &ProcessArguments) -> ToolResult {
        let one = match &arguments.id {
            None => return self.list(),
            Some(id) => locked(&self.background).iter().find(|one| one.id == *id).cloned(),
        };
        let Some(one) = one else {
            return ToolResult::error(format!(
                "no background command has the id `{}`; list them with action `list`",
                arguments.id.as_deref().unwrap_or_default().chars().take(64).collect::<String>()
            ));
        };
        match arguments.action {
            ProcessAction::List => self.list(),
            ProcessAction::Output => one.new_output(),
            ProcessAction::Stop => {
                one.end();
                one.new_output()
            }
        }
    }

    fn list(&self) -> ToolResult {
        let all = self.states();
        if all.is_empty() {
            return ToolResult::text("no commands in the background".to_owned());
        }
        let mut said = String::new();
        for one in all {
            let state = one.exit.map_or_else(|| "running".to_owned(), described);
            let command: String = one.command.chars().take(200).collect();
            writeln!(said, "{}: {state}, {} bytes printed: {command}", one.id, one.printed_bytes).ok();
        }
        let (said, removed) = text::clean(said.as_bytes());
        let mut result = ToolResult::text(said);
        (result.details.masked, result.details.removed) = (removed.masked, removed.removed);
        result
    }

    pub(crate) fn states(&self) -> Vec<BackgroundState> {
        let all = locked(&self.background);
        let state = |one: &Arc<Background>| {
            let output = locked(&one.output);
            BackgroundState {
                id: one.id.clone(),
                call: one.call.clone(),
                command: one.command.clone(),
                exit: output.ended.as_ref().map(|ended| ended.as_ref().map_or(Exit::Signal(0), |ended| ended.exit)),
                printed_bytes: output.printed,
            }
        };
        all.iter().map(state).collect()
    }

    /// Ends all background commands and waits for them.
    pub(crate) fn stop(&self) {
        let all = locked(&self.background).clone();
        // All at once, so that they share the grace period.
        all.iter().for_each(|one| one.stop.cancel());
        all.iter().for_each(|one| one.end());
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Background {
    /// Reads the output until the command ends.
    fn follow(&self, running: Running) {
        let ended = running.finish(self.stop.readable(), |bytes| {
            let mut output = locked(&self.output);
            output.printed += bytes.len() as u64;
            output.unread.push(bytes);
            if let Some(kept) = &mut output.kept {
                kept.push(bytes);
            }
        });
        let mut output = locked(&self.output);
        let printed = output.printed;
        output.file = output.kept.take().and_then(|kept| kept.finish(printed));
        output.ended = Some(ended);
    }

    fn end(&self) {
        self.stop.cancel();
        let reader = locked(&self.reader).take();
        // The reader does not panic; a panic would add nothing to report.
        reader.map(JoinHandle::join);
    }

    /// The output since the last call of this function.
    fn new_output(&self) -> ToolResult {
        let mut output = locked(&self.output);
        let window = std::mem::take(&mut output.unread);
        let path = output.kept.as_ref().and_then(|kept| kept.path().map(ToOwned::to_owned));
        let path = path.or_else(|| output.file.as_ref().map(|file| file.path.clone()));
        let (mut said, removed) = window.shown(path.as_deref());
        if window.total() == 0 {
            said.push_str("(no new output)");
        }
        let state = match &output.ended {
            None => "running".to_owned(),
            Some(Ok(ended)) => described(ended.exit),
            Some(Err(why)) => why.clone(),
        };
        let break_line = if said.ends_with('\n') { "" } else { "\n" };
        write!(said, "{break_line}[{}: {state}]", self.id).ok();
        let mut result = ToolResult::text(said);
        (result.details.masked, result.details.removed) = (removed.masked, removed.removed);
        result.details.output.clone_from(&output.file);
        result.details.background = output.ended.is_none().then(|| self.id.clone());
        if let Some(Ok(ended)) = &output.ended {
            result.details.exit = Some(ended.exit);
        }
        result
    }
}

/// The note about a variable that a command may have missed.
fn not_passed(variable: &Withheld) -> String {
    let name = &variable.name;
    if variable.can_be_named {
        format!("{name} is set but not passed to commands; agent.pass = [\"{name}\"] in the configuration passes it")
    } else {
        format!("{name} is set but not passed to commands, and cannot be, because its name is that of a secret")
    }
}

fn described(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::TimedOut => "ended at its time limit".to_owned(),
        Exit::Cancelled => "stopped".to_owned(),
    }
}

/// The output of a command, with a note on how it ended.
fn with_end(mut said: String, ended: &Ended, limit_s: u32) -> String {
    let mut notes = Vec::new();
    match ended.exit {
        Exit::Code(0) if said.is_empty() => said.push_str("(no output)"),
        Exit::Code(0) => {}
        Exit::TimedOut => notes.push(format!(
            "ended at its time limit of {limit_s} s; use timeout_s (at most {}) or background",
            limits::TIMEOUT_MAX_S
        )),
        Exit::Cancelled => notes.push("cancelled".to_owned()),
        Exit::Code(_) | Exit::Signal(_) => notes.push(described(ended.exit)),
    }
    if ended.left_behind > 0 {
        notes.push(format!(
            "ended {} that the shell left running; use background for commands that must continue",
            processes(ended.left_behind)
        ));
    }
    if ended.remaining > 0 {
        notes.push(format!("{} could not be ended", processes(ended.remaining)));
    }
    for note in notes {
        if !said.is_empty() && !said.ends_with('\n') {
            said.push('\n');
        }
        write!(said, "[{note}]").ok();
    }
    said
}

fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}
