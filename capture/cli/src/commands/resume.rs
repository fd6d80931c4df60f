//! `capture resume`: resumes a session with its agent, in its directory, under `capture run`.

use std::{fs, path::Path, process::ExitCode};

use agents::Agent;
use api::{
    list::Limit,
    routes::{ListRuns, ListSessions},
    runs::RunState,
    sessions::{ActiveFilter, SessionsQuery},
};
use client::{Client, failure::Failed};
use events::{Provider, Reason, State};
use printing::style;
use projections::Session;

use super::{
    context::{Context, find, print_line},
    run as runner,
};
use printing::{print_error_line, safe};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    #[arg(required_unless_present = "last")]
    session: Option<String>,
    /// Resume the session whose run was interrupted by a reboot or a crash. If there are several, list them.
    #[arg(long, conflicts_with = "session")]
    last: bool,
    /// Print the command instead of running it.
    #[arg(long)]
    print: bool,
}

/// Maximum number of sessions searched for interrupted ones.
const LOOKED_AT: usize = 200;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let session = match &arguments.session {
        Some(given) => find(&client, given)?,
        None => {
            let mut cut_off = cut_off(&client)?;
            match cut_off.len() {
                0 => return Err(Failed::NotFound("no run was interrupted by a reboot or a crash".into()).into()),
                1 => cut_off.remove(0),
                _ if context.json => {
                    let offers: Vec<_> = cut_off.iter().map(offer_json).collect();
                    context.print_json(&serde_json::json!({ "sessions": offers }))?;
                    return Ok(ExitCode::SUCCESS);
                }
                _ => {
                    cut_off.iter().try_for_each(|session| print_line(&offer(session)))?;
                    return Ok(ExitCode::SUCCESS);
                }
            }
        }
    };
    let (words, cwd) = command(&session)?;
    let line = shlex::try_join(words.iter().map(String::as_str))?;
    let cd = shlex::try_quote(&cwd)?;
    if context.json {
        context.print_json(&serde_json::json!({ "id": session.id, "command": words, "cwd": cwd }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(then), Some(now)) = (&session.git_branch, branch(Path::new(&cwd)))
        && *then != now
    {
        print_error_line(&safe(&format!("capture: {cwd} is on branch {now}; the session worked on {then}")));
    }
    if arguments.print {
        print_line(&safe(&format!("cd {cd} && {line}")))?;
        return Ok(ExitCode::SUCCESS);
    }
    std::env::set_current_dir(&cwd)?;
    runner::run(Some(&context.data), false, runner::Arguments::of(words))
}

/// The command that resumes a session, and its directory.
fn command(session: &Session) -> Result<(Vec<String>, String), Failed> {
    let id = style::short(&session.id);
    if session.pid.is_some() && session.status.state != State::Exited {
        return Err(Failed::Refused(format!("session {id} is running; `capture jump {id}` shows its terminal")));
    }
    command_of(session)
}

/// The command that resumes a session once no process runs it, and its directory.
pub(super) fn command_of(session: &Session) -> Result<(Vec<String>, String), Failed> {
    let id = style::short(&session.id);
    let agent = Agent::of(session.provider);
    if let Some(harm) = agent.and_then(|agent| agent.resume_harm) {
        let instead = format!(
            "start the agent in the session's directory and give it the output of `capture handoff \
                               {id}`"
        );
        return Err(Failed::Refused(format!("{harm}; {instead}")));
    }
    let words =
        session.provider_session_id.as_deref().and_then(|own| agent?.resume_words(own, session.model.as_deref()));
    let mut words = words.ok_or_else(|| {
        Failed::Refused(if session.provider == Provider::Capture {
            format!(
                "the agent runs one prompt at a time; `capture agent run --session {id} PROMPT` continues the session"
            )
        } else {
            format!("{} has no command that resumes session {id}", session.provider)
        })
    })?;
    if let (Some(program), Some(first)) = (program_of(session), words.first_mut()) {
        program.clone_into(first);
    }
    let cwd = session.began_in.clone().or_else(|| session.cwd.clone());
    let cwd = cwd.ok_or_else(|| Failed::Refused(format!("capture does not know the directory of session {id}")))?;
    if !Path::new(&cwd).is_dir() {
        return Err(Failed::NotFound(format!("the directory of session {id} no longer exists: {}", safe(&cwd))));
    }
    Ok((words, cwd))
}

/// The program that resumes a session, if it is not the first program of its agent.
pub(super) fn program_of(session: &Session) -> Option<&'static str> {
    let program = |path: &str| agents::directory::program(session.provider, Path::new(path));
    session.transcripts.iter().find_map(|transcript| program(&transcript.path))
}

/// The sessions whose runs disappeared without ending normally, newest first.
fn cut_off(client: &Client) -> anyhow::Result<Vec<Session>> {
    let runs = client.one::<ListRuns>("")?.runs;
    let is_alive =
        |session: &Session| runs.iter().any(|run| Some(run.id) == session.run_id && run.state == RunState::Running);
    let query = SessionsQuery {
        active: Some(ActiveFilter::All),
        limit: Some(Limit::of(LOOKED_AT)),
        ..SessionsQuery::default()
    };
    let mut sessions = client.get::<ListSessions>("", &query)?.sessions;
    sessions.retain(|session| {
        let ended = matches!(session.status.reason, Some(Reason::Clean | Reason::Failed));
        session.run_id.is_some() && session.parent_session_id.is_none() && !is_alive(session) && !ended
    });
    sessions.retain(|session| command(session).is_ok());
    Ok(sessions)
}

/// What a session was doing. Its current activity would only be that its process is gone.
fn doing(session: &Session) -> Option<&str> {
    [&session.summary.recent, &session.title].into_iter().flatten().next().map(String::as_str)
}

fn offer_json(session: &Session) -> serde_json::Value {
    let (words, cwd) = command(session).unwrap_or_default();
    serde_json::json!({ "id": session.id, "command": words, "cwd": cwd, "doing": doing(session) })
}

/// One line about a session that can be resumed: what it was doing, its directory, and the command.
fn offer(session: &Session) -> String {
    let (words, cwd) = command(session).unwrap_or_default();
    let line = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
    let doing = doing(session).unwrap_or_default();
    safe(&format!("{}  {}  {line}  {doing}", style::short(&session.id), style::path(&cwd)))
}

/// The branch of the repository that contains a directory.
fn branch(directory: &Path) -> Option<String> {
    let git = directory.ancestors().map(|above| above.join(".git")).find(|git| git.exists())?;
    let git = match fs::read_to_string(&git) {
        Ok(link) => git.parent()?.join(link.trim().strip_prefix("gitdir: ")?),
        Err(_) => git,
    };
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}
