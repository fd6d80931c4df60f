//! Print mode: runs one prompt in a session and prints the result to standard output.

use std::{
    io::{IsTerminal, Write},
    sync::Arc,
};

use engine::{EngineInput, MessageOrigin, UserMessage};
use executor::{PrintDetail, PrintExit, PrintFormat, PrintGate, PrintStreams, SessionHandle, print, way_on};
use jiff::{Timestamp, tz::TimeZone};
use session_setup::{OpenSession, PermissionAsker, RunError, SessionOpener, SessionOptions, SessionPlace, WORKERS};
use session_tree::{Json, Object, Session};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};
use tools::BackgroundState;

use super::{
    person::{Person, is_at_terminal},
    warn,
};

/// Exit codes as a shell reports them.
pub(super) const BY_INTERRUPT: u8 = 130;
pub(super) const BY_TERMINATE: u8 = 143;

/// The sandbox of commands, for the first line.
const SANDBOX_NOTE: &str = "no sandbox";

/// The options of print mode.
pub(super) struct RunOptions {
    /// The session.
    pub(super) session: SessionOptions,
    /// Whether to print lines of JSON instead of text.
    pub(super) json: bool,
    /// Whether to omit the first line and the agent's actions.
    pub(super) quiet: bool,
    /// The piped text.
    pub(super) context: Option<String>,
    /// The prompt.
    pub(super) prompt: String,
}

/// Runs one prompt and prints the result; returns the exit code.
///
/// # Errors
/// If the session cannot begin: an agent started this process, the settings are incomplete, or the session cannot be
/// opened.
pub(super) fn run(options: RunOptions) -> Result<u8, RunError> {
    let at_terminal = is_at_terminal() && !options.json;
    // A user may be watching who cannot be asked: standard input may be a file or another program.
    let is_watched = std::io::stderr().is_terminal() && !options.json && !options.quiet;
    let opener = SessionOpener::new(options.session, place(at_terminal))?;
    let file = opener.first_file()?;
    let turns = turns_of(&file);
    let (gate, pass) = PrintGate::new();
    let person = if at_terminal { Some(Arc::new(Person::at_terminal(pass)?)) } else { None };
    let person = person.map(|person| -> Arc<dyn PermissionAsker> { person });

    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let message = UserMessage {
        id: format!("{:032x}", opener.clock.random()),
        content: content_of(options.prompt, options.context),
        origin: MessageOrigin::Person,
    };
    let format = if options.json { PrintFormat::JsonLines } else { PrintFormat::Text };
    let (exit, message) = runtime.block_on(async {
        let session = opener.open(file, &opener.model, opener.thinking, person).await?;
        if !options.quiet {
            printing::print_error_line(&printing::safe(&header(&opener, &session, turns).await?));
        }
        let attempts = opener.turns().retries.saturating_add(1);
        let ended = print_until_signal(&session.handle, message, format, gate, is_watched, attempts).await;
        let stopped = session.end(ended.as_ref().map_or(1, |(ended, _)| ended.code())).await;
        if let Some(line) = stopped_in_words(&stopped) {
            printing::print_error_line(&format!("capture: {}", printing::safe(&line)));
        }
        ended.map_err(RunError::from)
    })?;
    if let Some(message) = message {
        printing::print_error_line(&format!("capture: {}", printing::safe(&message)));
    }
    Ok(exit.code())
}

/// The first line of a run, which describes its session.
async fn header(opener: &SessionOpener, session: &OpenSession, turns: usize) -> Result<String, RunError> {
    let id = short_id(&session.id);
    let what = match turns {
        0 => id.to_owned(),
        1 => format!("continues {id} (1 turn)"),
        many => format!("continues {id} ({many} turns)"),
    };
    let limits = opener.limits_in_words().map(|limits| format!(" · {limits}")).unwrap_or_default();
    let (model, mode) = (&opener.model, opener.mode);
    let rules = session.rules_in_short(mode).await;
    // The vendor's own address is not shown.
    let elsewhere = opener.models.other_address_in_words(model)?;
    let address = elsewhere.map(|address| format!(" at {address}")).unwrap_or_default();
    Ok(format!("capture: {what} · {model}{address} · {mode} ({rules}) · {SANDBOX_NOTE}{limits}"))
}

/// The last letters of a session's id, which `--session` accepts.
fn short_id(id: &str) -> &str {
    const LETTERS: usize = 8;
    id.char_indices().nth_back(LETTERS - 1).map_or(id, |(at, _)| &id[at..])
}

/// The number of prompts in the conversation.
fn turns_of(session: &Session) -> usize {
    session.tree().leaf_path().iter().filter(|entry| entry.role() == Some("user")).count()
}

/// The place of a session with one prompt from the command line. It cannot be paused, because there is no way to resume
/// it.
const fn place(at_terminal: bool) -> SessionPlace {
    const TAKES: &[&str] = &["prompt", "steer", "follow_up", "abort", "compact", "set_model", "limit"];
    SessionPlace {
        command: &["capture", "agent", "run"],
        name: None,
        takes: TAKES,
        end: None,
        warn,
        at_terminal,
        no_person: "the mode accept-edits needs you at a terminal: standard input and standard error must be a \
                    terminal, without --json",
    }
}

/// Why printing ended.
#[derive(Debug, Clone, Copy)]
enum EndedBy {
    Turn(PrintExit),
    Signal(u8),
}

impl EndedBy {
    /// The exit code.
    const fn code(self) -> u8 {
        match self {
            Self::Turn(exit) => exit.code(),
            Self::Signal(code) => code,
        }
    }
}

/// Prints until the turn ends. The first signal aborts the turn; the second one exits without waiting for it.
async fn print_until_signal(
    session: &SessionHandle,
    message: UserMessage,
    format: PrintFormat,
    gate: PrintGate,
    is_watched: bool,
    attempts: u32,
) -> std::io::Result<(EndedBy, Option<String>)> {
    let file = session.snapshot().await.map_err(std::io::Error::other)?.path;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut out = output();
    let mut err = ErrorLines::default();
    let detail = match (is_watched, std::io::stdout().is_terminal()) {
        (true, true) => PrintDetail::Streamed,
        (true, false) => PrintDetail::All,
        (false, _) => PrintDetail::Trouble,
    };
    // With `--json`, all output is lines on standard output.
    let progress = (format == PrintFormat::Text).then_some((&mut err as &mut (dyn Write + Send), detail));
    let streams = PrintStreams { out: &mut *out, progress, clock: clock_time, now: now_ms, attempts, gate };
    let printing = print(session, message, format, streams);
    tokio::pin!(printing);
    let mut by_signal = None;
    loop {
        let (code, end) = tokio::select! {
            ended = &mut printing => {
                let (exit, message) = ended?;
                let how = format!("interrupted; {}", way_on(&file));
                // Also report output that could not be written.
                let why = message.as_deref().filter(|_| exit == PrintExit::Failed).map(|why| format!(" ({why})"));
                let how = format!("{how}{}", why.unwrap_or_default());
                let message = match message {
                    _ if by_signal.is_some() => Some(how),
                    None if exit == PrintExit::Failed => Some(format!("the turn was stopped; {}", way_on(&file))),
                    message => message,
                };
                return Ok((by_signal.map_or(EndedBy::Turn(exit), EndedBy::Signal), message));
            }
            _ = interrupted.recv() => (BY_INTERRUPT, EngineInput::Abort),
            // Sent, for example, when the system shuts down.
            _ = terminated.recv() => (BY_TERMINATE, EngineInput::Stop),
        };
        if by_signal.replace(code).is_some() {
            return Ok((EndedBy::Signal(code), None));
        }
        // If the session is closed, it is not running.
        let _ = session.input(end).await;
    }
}

/// Standard error, written line by line, escaped and wrapped between words.
#[derive(Debug, Default)]
struct ErrorLines(Vec<u8>);

impl Write for ErrorLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        if let Some(end) = self.0.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.0.split_off(end + 1);
            let lines = std::mem::replace(&mut self.0, rest);
            for line in String::from_utf8_lossy(&lines[..end]).split('\n') {
                printing::print_error_line(&printing::safe(line));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A time in milliseconds since 1970 as local clock time, with the date if it is on another day.
fn clock_time(at_ms: i64) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or_default().to_zoned(TimeZone::system());
    let is_today = at.date() == jiff::Zoned::now().date();
    at.strftime(if is_today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" }).to_string()
}

/// A sentence about background commands that ended with this process; `None` if there were none.
fn stopped_in_words(stopped: &[BackgroundState]) -> Option<String> {
    const LETTERS: usize = 60;
    let one = |one: &BackgroundState| {
        let line = one.command.lines().next().unwrap_or_default();
        let cut = if line.len() < one.command.trim_end().len() || line.chars().count() > LETTERS { "…" } else { "" };
        format!("{} ({}{cut})", one.id, line.chars().take(LETTERS).collect::<String>())
    };
    let all: Vec<String> = stopped.iter().map(one).collect();
    let were = match stopped {
        [] => return None,
        [_] => "was",
        [..] => "were",
    };
    Some(format!("{} {were} stopped; background commands end with each `capture agent run`", all.join(", ")))
}

/// Standard output, escaped if it is a terminal.
fn output() -> Box<dyn Write + Send> {
    let stdout = std::io::stdout();
    if stdout.is_terminal() { Box::new(printing::Screen::escaping(stdout)) } else { Box::new(stdout) }
}

/// The message. Piped text becomes a separate block before the prompt.
fn content_of(prompt: String, context: Option<String>) -> Json {
    let block = |text: String| Json::from(Object::new().with("type", "text").with("text", text));
    match context {
        None => Json::from(prompt),
        Some(context) => Json::from(vec![block(format!("Standard input of the command:\n{context}")), block(prompt)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_commands_that_end_with_the_process_are_named() {
        let state = |id: &str, command: &str| BackgroundState {
            id: id.to_owned(),
            call: "1.0".to_owned(),
            command: command.to_owned(),
            exit: None,
            printed_bytes: 0,
        };
        assert_eq!(stopped_in_words(&[]), None);
        let one = stopped_in_words(&[state("p1", "npm run dev")]).unwrap();
        assert_eq!(one, "p1 (npm run dev) was stopped; background commands end with each `capture agent run`");
        let two = stopped_in_words(&[state("p1", "a\nb"), state("p2", &"x".repeat(70))]).unwrap();
        assert!(two.starts_with(&format!("p1 (a…), p2 ({}…) were stopped; ", "x".repeat(60))), "{two}");
    }
}
