//! What people type. Data goes to standard output, everything else to standard error.

mod agent;
mod approvals;
mod attach;
mod audit;
mod doctor;
mod drive;
mod events;
mod explain;
mod export;
mod findings;
mod fix_tty;
mod hooks;
mod host;
mod label;
mod notify;
mod policy;
mod ps;
mod queue;
mod redact;
mod report;
mod run;
mod screen;
mod send;
mod serve;
mod show;
mod style;
mod telemetry;
mod wait;
mod watch;
mod when;

use std::{
    io::{BufRead, Write},
    path::PathBuf,
    process::ExitCode,
};

use api::routes::GetSession;
use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    client::{self, Client, ClientError, Connection},
    failure::{Failed, REFUSED, code_of},
    terminal,
};
use daemon::{
    config::Config,
    environment::{self, Environment},
    places,
};

/// Observes coding-agent sessions and says, at any moment, which one needs you.
#[derive(Debug, Parser)]
#[command(name = "capture", version, max_term_width = 100, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Verb,
    /// Data directory [default: $XDG_DATA_HOME/capture]
    #[arg(long, global = true, env = "CAPTURE_DATA_DIR", value_name = "DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// Print JSON, with a `schema_version`.
    #[arg(long, global = true)]
    json: bool,
    /// Talk to the server over TCP, where its Unix socket cannot be used.
    #[arg(long, global = true)]
    tcp: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a program, an agent for instance, in a terminal that is watched.
    Run(Box<run::Arguments>),
    /// Attach this terminal to a run that goes on.
    Attach(attach::Arguments),
    /// Put a terminal right that a program left in disorder.
    ///
    /// Sets line editing, echo and signals as `stty sane` does, and leaves the alternate screen, mouse
    /// reports, bracketed paste and keyboard protocols. When what you type is not shown, type it all
    /// the same and press Ctrl-J.
    FixTty,
    #[command(hide = true, name = agents::HOST)]
    RunHost,
    #[command(hide = true, name = agents::RUN_CHILD)]
    RunChild(host::Child),
    #[command(hide = true, name = agents::DRIVE_CHILD)]
    DriveChild(drive::Child),
    /// Serve: observe all sessions and answer over HTTP.
    Serve(serve::Arguments),
    /// List sessions and what each is doing.
    #[command(visible_alias = "status")]
    Ps(ps::Arguments),
    /// Show one session: what it is doing, its turns, its files.
    Show(show::Arguments),
    /// Print a session's events.
    Events(events::Arguments),
    /// Put labels on a session, which your policy may name, and take them off.
    Label(label::Arguments),
    /// Wait until a session is in one of some states.
    Wait(wait::Arguments),
    /// Explain why a session's status is what it is, or was at a past time.
    Explain(explain::Arguments),
    /// List what agents ask leave for.
    Approvals(approvals::Arguments),
    /// Allow what an agent asks leave for.
    Approve(approvals::Approve),
    /// Deny what an agent asks leave for.
    Deny(approvals::Deny),
    /// The record of decisions: verify, show or export it.
    Audit(audit::Arguments),
    /// List what a person should know: who is stuck, who fails, who waits.
    Findings(findings::Arguments),
    /// Queue a prompt: it is typed when the session waits for one.
    Queue(queue::Arguments),
    /// Tell what every session did since a time, by project.
    Standup(report::Standup),
    /// Write a note of a session to go on from.
    Handoff(report::HandoffOf),
    /// The channels people are told by: list and try them.
    Notify(notify::Arguments),
    /// Show what the terminal of a run shows now.
    Screen(screen::Arguments),
    /// Type into a run: text, keys or an interrupt.
    Send(send::Arguments),
    /// Export what a run showed on its terminal.
    Export(export::Arguments),
    /// Print a text without the secrets in it.
    Redact(redact::Arguments),
    /// Let the agents tell what they do: entries in their own settings.
    Hooks(hooks::Arguments),
    /// Have agents send their telemetry here.
    Telemetry(telemetry::Arguments),
    /// The rules for what agents may do unasked: edit, check, try, explain.
    Policy(policy::Arguments),
    /// Agents without a screen, and the sessions of our own.
    Agent(agent::Arguments),
    /// Check that everything works, and say what does not.
    Doctor,
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Version of the shapes `--json` prints.
pub const SCHEMA_VERSION: u32 = 1;

/// What every command gets.
struct Context {
    data: PathBuf,
    config: Config,
    json: bool,
    connection: Connection,
}

impl Context {
    fn client(&self) -> anyhow::Result<Client> {
        client::connect(&self.data, &self.config, self.connection)
    }

    /// The user's policy: the file that the server of this data directory reads.
    fn policy_file(&self) -> anyhow::Result<PathBuf> {
        match Environment::recorded(&self.data)? {
            Some(recorded) => Ok(places::policy_file_in(&recorded.config_dir()?)),
            None => places::policy_file(),
        }
    }

    /// The client of a server that runs; starts none.
    fn running(&self) -> anyhow::Result<Option<Client>> {
        Ok(Client::running(&self.data, self.connection)?)
    }

    /// Prints JSON with the schema's version.
    fn print_json<T: serde::Serialize>(&self, value: &T) -> anyhow::Result<()> {
        print_json(value)
    }
}

/// Refuses what changes how capture works to agents and to what they start, as far as that shows.
fn refuse_agents(doing: &str) -> anyhow::Result<()> {
    match processes::agent_descent(std::process::id()) {
        None => Ok(()),
        Some(descent) => Err(Failed::Refused(format!("{doing} is refused to this process: {descent}")).into()),
    }
}

/// Prints JSON with the schema's version.
fn print_json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    #[derive(serde::Serialize)]
    struct Versioned<'a, T> {
        schema_version: u32,
        #[serde(flatten)]
        value: &'a T,
    }
    print_line(&terminal::safe_json(&serde_json::to_string(&Versioned { schema_version: SCHEMA_VERSION, value })?))
}

/// Prints a line of data.
fn print_line(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(terminal::stdout(), "{text}")?)
}

/// Asks the person at the terminal; only a yes is one.
fn is_agreed(question: &str) -> anyhow::Result<bool> {
    let mut err = terminal::stderr();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return explain_usage(&error),
    };
    match run(arguments) {
        Ok(code) => code,
        // Whoever read our output has enough. What failed by itself is still told.
        Err(error) if terminal::is_reader_gone() && !error.is::<Failed>() && !error.is::<ClientError>() => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&format!("{error:#}"));
            let refused = error.downcast_ref::<environment::Refused>().map(|_| REFUSED);
            let failed = || error.downcast_ref().map(Failed::code);
            let client = || error.downcast_ref().map(code_of);
            ExitCode::from(refused.or_else(failed).or_else(client).unwrap_or(1))
        }
    }
}

/// Says what went wrong.
fn complain(text: &str) {
    for (index, line) in text.lines().enumerate() {
        let line = crate::terminal::safe(line);
        terminal::note(&format!("{}{line}", if index == 0 { "capture: " } else { "  " }));
    }
}

/// Shows help, the version, or what is wrong with the command line. That repeats what was typed, which may be
/// somebody else's text, so it has no colours.
fn explain_usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if error.use_stderr() {
        write!(terminal::stderr().without_colours(), "{text}").ok();
    } else if style::colours() {
        write!(terminal::stdout(), "{}", text.ansi()).ok();
    } else {
        write!(terminal::stdout(), "{text}").ok();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let data = arguments.data_dir.as_deref();
    // Read by those that need it: a run's program does not wait for it.
    let context = || -> anyhow::Result<Context> {
        let config = Config::load(&places::config_file()?)?;
        let connection = if arguments.tcp { Connection::Tcp } else { Connection::Unix };
        Ok(Context { data: places::data_dir(data)?, config, json: arguments.json, connection })
    };
    let json = arguments.json;
    match arguments.command {
        Verb::Run(run) => return run::run(data, arguments.json, *run),
        Verb::Attach(arguments) => return attach::run(data, &arguments),
        Verb::FixTty => return fix_tty::run(),
        Verb::Agent(agent) => return agent::run(arguments.json, agent, context),
        Verb::RunHost => return host::host(),
        Verb::RunChild(arguments) => return Ok(host::child(&arguments)),
        Verb::DriveChild(arguments) => return Ok(drive::child(&arguments)),
        Verb::Serve(arguments) => serve::run(&context()?, &arguments),
        Verb::Ps(arguments) => ps::run(&context()?, &arguments),
        Verb::Show(arguments) => show::run(&context()?, &arguments),
        Verb::Events(arguments) => events::run(&context()?, &arguments),
        Verb::Label(arguments) => label::run(&context()?, &arguments),
        Verb::Wait(arguments) => wait::run(&context()?, &arguments),
        Verb::Explain(arguments) => explain::run(&context()?, &arguments),
        Verb::Approvals(arguments) => approvals::list(&context()?, &arguments),
        Verb::Approve(arguments) => approvals::approve(&context()?, &arguments),
        Verb::Deny(arguments) => approvals::deny(&context()?, &arguments),
        Verb::Audit(arguments) => audit::run(&context()?, &arguments),
        Verb::Findings(arguments) => findings::run(&context()?, &arguments),
        Verb::Queue(arguments) => queue::run(&context()?, &arguments),
        Verb::Standup(arguments) => report::standup_of_all(&context()?, &arguments),
        Verb::Handoff(arguments) => report::handoff(&context()?, &arguments),
        Verb::Notify(arguments) => notify::run(&context()?, &arguments),
        Verb::Screen(arguments) => screen::run(&context()?, &arguments),
        Verb::Send(arguments) => send::run(&context()?, &arguments),
        Verb::Export(arguments) => export::run(&context()?, &arguments),
        Verb::Redact(arguments) => redact::run(json, &arguments),
        Verb::Hooks(arguments) => hooks::run(&context()?, &arguments),
        Verb::Telemetry(arguments) => telemetry::run(&context()?, &arguments),
        Verb::Policy(arguments) => policy::run(&context()?, &arguments),
        Verb::Doctor => doctor::run(&context()?),
        Verb::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "capture", &mut text);
            Ok(terminal::stdout().write_all(&text)?)
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Finds the session a person means: its id, the agent's id, a run's name, or the beginning or end of an id.
fn find(client: &Client, given: &str) -> anyhow::Result<projections::Session> {
    client.one::<GetSession>(given).map_err(|error| match error.status() {
        Some(404) => Failed::NotFound(format!("no session `{given}`; `capture ps --all` lists them")).into(),
        Some(_) | None => error.into(),
    })
}

/// Takes one of some words; the help lists them.
fn one_of<T: Copy + Send + Sync + std::str::FromStr + 'static>(
    all: &[T],
    word: fn(T) -> &'static str,
) -> impl clap::builder::TypedValueParser<Value = T> + use<T>
where
    T::Err: std::fmt::Display,
{
    use clap::builder::TypedValueParser;
    clap::builder::PossibleValuesParser::new(all.iter().map(|v| word(*v)))
        .try_map(|text| text.parse::<T>().map_err(|error| std::io::Error::other(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
