//! `capture stop`, `capture restart`, `capture rename`: stop, restart and rename a run.
//!
//! The run's terminal host carries these out. It checks the caller and refuses processes that an agent started.

use std::{
    io::ErrorKind,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use api::{
    routes::{GetRun, GetSession, SessionInput},
    runs::Run,
    steering::{SessionAction, SessionInputRequest},
};
use client::failure::Failed;
use events::RunId;
use host_protocol::runs;
use projections::Session;
use terminal::host::{child::Exit, launch};

use super::{
    active_run::{find, name_of},
    context::{Context, print_line, refuse_agents},
    resume, run as runner,
};
use printing::{print_error_line, safe};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its name, its id, at least 3 characters from the start or end of its id, or the session that it hosts.
    run: String,
    /// Kill the program at once.
    #[arg(long)]
    now: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Restart {
    /// The run: its name, its id, at least 3 characters from the start or end of its id, or the session that it hosts.
    run: String,
    /// Run the same command line again instead of resuming the session.
    #[arg(long)]
    fresh: bool,
    /// Kill the program at once instead of asking it to end.
    #[arg(long)]
    now: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Rename {
    /// The run: its name, its id, at least 3 characters from the start or end of its id, or the session that it hosts.
    run: String,
    /// The new name; no other active run may have it.
    #[arg(value_parser = run_name)]
    name: String,
}

/// Time limit for a program to end: the grace period, after which the host kills it, plus the time to exit.
const END_WITHIN: Duration = Duration::from_secs(20);
/// Time limit for the host to apply a name.
const RENAME_WITHIN: Duration = Duration::from_secs(5);
/// Time limit for the server to list the name.
const KNOWN_WITHIN: Duration = Duration::from_secs(2);
/// Interval between polls.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// The command that ends a session without its own terminal.
const END: &str = "end";
/// The command that ends the session's turn and, with it, a process that works on a single prompt.
const ABORT: &str = "abort";
/// Marks a secret that was removed from a stored command line.
const REDACTED: &str = "[redacted";

pub(super) fn stop(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    refuse_agents("stopping a run")?;
    let run = match find(&context.data, &arguments.run) {
        Ok(run) => run,
        Err(none) => {
            return match without_terminal(context, &arguments.run)? {
                Some(run) => end_session(context, &run),
                None => Err(none.into()),
            };
        }
    };
    let exit = end(&run, arguments.now)?;
    if context.json {
        let value = serde_json::json!({
            "run": run.run, "name": run.name, "exit_code": exit.code, "exit_signal": exit.signal,
        });
        return context.print_json(&value);
    }
    print_line(&format!("run {} {}", name_of(&run), how(exit)))
}

/// Ends the program of a run and waits for it to exit.
fn end(run: &runs::Description, now: bool) -> anyhow::Result<Exit> {
    let name = name_of(run);
    match launch::end(&run.socket, now, END_WITHIN) {
        Ok(Some(exit)) => Ok(exit),
        Ok(None) => {
            let late = format!(
                "run {name} has not ended within {} s; `capture stop {name} --now` kills its program",
                END_WITHIN.as_secs()
            );
            Err(Failed::TimedOut(late).into())
        }
        Err(error) => Err(refused(&error, &format!("cannot stop run {name}")).into()),
    }
}

fn refused(error: &std::io::Error, cannot: &str) -> Failed {
    let text = format!("{cannot}: {}", safe(&error.to_string()));
    if error.kind() == ErrorKind::PermissionDenied { Failed::Refused(text) } else { Failed::Other(text) }
}

fn how(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (_, Some(signal)) => format!("ended (signal {signal})"),
        (Some(code), None) => format!("ended (exit code {code})"),
        (None, None) => "ended".to_owned(),
    }
}

/// A run, as listed by the server, whose host has no terminal and accepts commands.
fn without_terminal(context: &Context, given: &str) -> anyhow::Result<Option<Run>> {
    let Some(client) = context.running()? else { return Ok(None) };
    let run = client.one::<GetRun>(given).ok();
    Ok(run.filter(|run| run.ended_at.is_none() && (takes(run, END) || takes(run, ABORT))))
}

fn takes(run: &Run, command: &str) -> bool {
    run.hello.takes.iter().any(|name| name == command)
}

fn end_session(context: &Context, run: &Run) -> anyhow::Result<()> {
    let (Some(client), Some(session)) = (context.running()?, run.session_id) else {
        return Err(Failed::Refused(format!("capture does not know the session of run {} yet", run.id)).into());
    };
    let ends = takes(run, END);
    let action = if ends { SessionAction::End } else { SessionAction::Abort };
    let request = SessionInputRequest { action: Some(action), ..SessionInputRequest::default() };
    let sent = client.send::<SessionInput>(&session.to_string(), &request)?;
    if context.json {
        return context.print_json(&sent);
    }
    let told = if ends { "was asked to end" } else { "was asked to end its turn" };
    print_line(&format!("run {} {told}", run.hello.name.as_deref().map_or_else(|| run.id.to_string(), safe)))
}

/// The program to start again.
struct NextStart {
    words: Vec<String>,
    /// The working directory.
    cwd: String,
    /// Why the session is not resumed, if the user should know.
    note: Option<String>,
    is_resumed: bool,
}

pub(super) fn restart(context: &Context, arguments: &Restart) -> anyhow::Result<ExitCode> {
    refuse_agents("restarting a run")?;
    let run = find(&context.data, &arguments.run)?;
    let name = name_of(&run);
    // Detect every error before anything is stopped.
    let next = next_start(&run, session_of(context, run.run)?.as_ref(), arguments.fresh)?;
    if !Path::new(&next.cwd).is_dir() {
        let gone = format!("run {name} was not stopped: its directory no longer exists: {}", safe(&next.cwd));
        return Err(Failed::NotFound(gone).into());
    }
    end(&run, arguments.now)?;
    if let Some(note) = &next.note {
        print_error_line(&format!("capture: {note}"));
    }
    let line = shlex::try_join(next.words.iter().map(String::as_str)).unwrap_or_default();
    let what = if next.is_resumed { "resuming it with" } else { "starting" };
    print_error_line(&format!("capture: run {name} has ended; {what} `{}` in {}", safe(&line), safe(&next.cwd)));
    std::env::set_current_dir(&next.cwd)?;
    let arguments = runner::Arguments::detached(next.words, run.name.clone());
    runner::run(Some(&context.data), context.json, arguments)
}

/// The session that a run hosts, if a server lists it.
fn session_of(context: &Context, run: RunId) -> anyhow::Result<Option<Session>> {
    let Some(client) = context.running()? else { return Ok(None) };
    let session = client.one::<GetRun>(&run.to_string()).ok().and_then(|run| run.session_id);
    Ok(session.and_then(|id| client.one::<GetSession>(&id.to_string()).ok()))
}

fn next_start(run: &runs::Description, session: Option<&Session>, fresh: bool) -> Result<NextStart, Failed> {
    let resumed = session.filter(|_| !fresh).map(resume::command_of);
    let note = match resumed {
        Some(Ok((words, cwd))) => return Ok(NextStart { words, cwd, note: None, is_resumed: true }),
        Some(Err(why)) => Some(format!("the session is not resumed: {why}")),
        None => None,
    };
    let words = run.command.clone();
    let is_whole = |word: &String| !word.contains(REDACTED) && !word.contains(char::REPLACEMENT_CHARACTER);
    if words.is_empty() || !words.iter().all(is_whole) {
        let why = "capture did not store its exact command line; start the program with `capture run`";
        return Err(Failed::Refused(format!("run {} was not stopped: {why}", name_of(run))));
    }
    Ok(NextStart { words, cwd: run.cwd.clone(), note, is_resumed: false })
}

/// Checks the name of a run.
pub(super) fn run_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err("a name must contain a character other than spaces, and no control characters".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn rename(context: &Context, arguments: &Rename) -> anyhow::Result<()> {
    refuse_agents("renaming a run")?;
    let (new, run) = (&arguments.name, find(&context.data, &arguments.run)?);
    // Held until the host has written the name, so that no other run claims it.
    let claim = runs::claim_name(&context.data, new).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            Failed::Refused(error.to_string())
        } else {
            Failed::Other(format!("cannot check whether another run has this name: {error}"))
        }
    })?;
    let before = name_of(&run);
    launch::rename(&run.socket, new, RENAME_WITHIN)
        .map_err(|error| refused(&error, &format!("cannot rename run {before}")))?;
    drop(claim);
    wait_until_known(context, run.run, new);
    if context.json {
        return context.print_json(&serde_json::json!({ "run": run.run, "name": new }));
    }
    print_line(&format!("run {before} is now {}", safe(new)))
}

/// Waits until the server lists the name, so that the next command finds the run by it. If there is no server or it
/// takes too long, the run has its new name anyway.
fn wait_until_known(context: &Context, run: RunId, name: &str) {
    let until = Instant::now() + KNOWN_WITHIN;
    while Instant::now() < until {
        let Ok(Some(client)) = context.running() else { return };
        match client.one::<GetRun>(&run.to_string()) {
            Ok(found) if found.hello.name.as_deref() != Some(name) => {}
            Ok(_) | Err(_) => return,
        }
        // The channel never receives a message; this only waits.
        crossbeam_channel::after(ASK_EVERY).recv().ok();
    }
}

#[cfg(test)]
mod tests {
    use events::Timestamp;

    use super::*;

    #[test]
    fn a_run_with_an_incomplete_command_line_is_not_restarted() {
        let of = |words: &[&str]| {
            let run = runs::Description {
                run: RunId::mint(Timestamp::from_millisecond(1), [7; 10]),
                name: Some("api".into()),
                pid: 1,
                host_pid: 1,
                host_start_ticks: 1,
                socket: "s".into(),
                command: words.iter().map(|word| (*word).to_owned()).collect(),
                cwd: "/w".into(),
                started_at: Timestamp::MIN,
            };
            next_start(&run, None, false).map(|next| (next.words, next.cwd, next.is_resumed))
        };
        let whole = of(&["claude", "--model", "opus"]).unwrap();
        assert_eq!(whole, (vec!["claude".into(), "--model".into(), "opus".into()], "/w".into(), false));
        for broken in [&["claude", "--key", "[redacted:secret]"][..], &["x\u{fffd}"], &[]] {
            let error = of(broken).unwrap_err().to_string();
            assert!(
                error.starts_with("run api was not stopped: capture did not store its exact command line"),
                "{error}"
            );
        }
    }
}
