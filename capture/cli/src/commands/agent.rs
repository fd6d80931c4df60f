//! `capture agent`: our own agent, other agents without their user interface, and session files in pi's format.

pub(super) mod arguments;
mod hosted;
mod person;
mod piped;
mod rpc;
mod run;
mod session;

use std::{io::Write, path::PathBuf, process::ExitCode};

use api::{
    routes::UsageOfAll,
    usage::{UsageBy, UsageQuery, UsageSums},
};
use client::Client;

use events::Provider;

use self::arguments::{CacheArguments, CommandPlace, RpcArguments, RunArguments};
use super::{
    context::{Context, find},
    drive,
    output::print_json,
};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: AgentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AgentCommand {
    /// Give capture's own agent one prompt and print its answer.
    ///
    /// The agent reads the workspace without asking. For everything else it asks you at this terminal, and skips a call
    /// if you do not answer. Piped text is placed before the prompt. With `--quiet`, only the answer, questions and
    /// problems are printed.
    ///
    /// Exit codes: 0 if the turn ended, 1 if it failed, 2 for wrong arguments, 3 if a limit was reached, 4 if the session
    /// does not exist, 5 if the prompt was refused, 6 if all calls were skipped, 130 and 143 after a signal.
    #[command(after_help = "Examples:
  capture agent run --model anthropic/claude-sonnet-5 Where is the configuration read?
  git diff | capture agent run --continue Review this change")]
    Run(Box<RunArguments>),
    /// Drive capture's own agent from a program: commands on standard input, answers and events on standard output.
    ///
    /// The JSON lines use the protocol of pi's RPC mode. The agent sends permission requests to the program as
    /// `extension_ui_request`. The session ends when standard input ends.
    Rpc(Box<RpcArguments>),
    /// Show how many tokens each request of a session read from the provider's cache, how many were expected, and why
    /// fewer were read.
    ///
    /// For a session of another agent, show the share of its input that was read from the cache.
    Cache(CacheArguments),
    /// Give an agent one prompt, without its user interface, and print its output.
    ///
    /// Your policy decides permission requests. If it leaves a request to you, answer at this terminal or with `capture
    /// approve` and `capture deny`.
    Drive(drive::Arguments),
    /// Inspect a session file in pi's format, or change the entry at which the session continues.
    Session(session::Arguments),
}

impl Arguments {
    /// Whether this invocation gives a prompt to our own agent.
    pub(super) fn is_run(&self) -> bool {
        matches!(self.verb, AgentCommand::Run(_))
    }
}

/// Runs the command. Subcommands that need no configuration do not read it.
pub(super) fn run(
    (json, quiet): (bool, bool),
    arguments: Arguments,
    context: impl FnOnce() -> anyhow::Result<Context>,
) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        AgentCommand::Run(mut arguments) => {
            let context = context()?;
            let server = context.running().ok().flatten();
            let place = place(context)?;
            arguments.resolve_session(&place, |given| own_id(&server?, given));
            arguments::run(place, quiet, *arguments)
        }
        AgentCommand::Rpc(mut arguments) => {
            let context = context()?;
            let server = context.running().ok().flatten();
            let place = place(context)?;
            arguments.resolve_session(&place, |given| own_id(&server?, given));
            arguments::rpc(place, *arguments)
        }
        AgentCommand::Cache(arguments) => cache(json, context()?, &arguments),
        AgentCommand::Drive(arguments) => drive::run(context()?, arguments),
        AgentCommand::Session(arguments) => session::run(json, arguments, |id| session_file(context()?, id)),
    }
}

/// The id our own agent uses for a session that the server lists under another id.
fn own_id(client: &Client, given: &str) -> Option<String> {
    let session = find(client, given).ok().filter(|session| session.provider == Provider::Capture)?;
    session.provider_session_id
}

/// The file of a session of our own agent, found by the agent's id or the id shown in lists.
fn session_file(context: Context, given: &str) -> anyhow::Result<PathBuf> {
    let found = session_setup::session_file(&context.data, given);
    let own = match &found {
        Ok(_) => None,
        Err(_) => context.running().ok().flatten().and_then(|client| own_id(&client, given)),
    };
    own.map_or(found, |own| session_setup::session_file(&context.data, &own)).map_err(arguments::failed)
}

/// Shows the requests of a session of our own agent, or the share of input that an observed session read from a cache.
fn cache(json: bool, context: Context, arguments: &CacheArguments) -> anyhow::Result<ExitCode> {
    let client = arguments.session().and_then(|_| context.running().ok().flatten());
    let place = place(context)?;
    let table = match arguments::cache(&place, arguments) {
        Ok(table) => table,
        Err(error) => {
            let Some((client, given)) = client.zip(arguments.session()) else { return Err(error) };
            let Ok(session) = find(&client, given) else { return Err(error) };
            if session.provider == Provider::Capture
                && let Some(own) = session.provider_session_id
            {
                // The lists show the server's id; the file contains the agent's own id.
                arguments::cache(&place, &CacheArguments::of(own))?
            } else {
                let session = Some(session.id.to_string());
                let query = UsageQuery { by: Some(UsageBy::Session), session, ..UsageQuery::default() };
                let report = client.get::<UsageOfAll>("", &query)?;
                return if json {
                    print_json(&report).map(|()| ExitCode::SUCCESS)
                } else {
                    observed_cache(&report.total)
                };
            }
        }
    };
    if json {
        print_json(&table)?;
    } else {
        write!(printing::stdout(), "{}", table.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn observed_cache(total: &UsageSums) -> anyhow::Result<ExitCode> {
    let mut out = printing::stdout();
    match total.cache_hit_rate {
        Some(rate) => writeln!(
            out,
            "{:.1} % of the input was read from the cache, in {} calls. Figures for each call exist only for sessions \
             of capture's own agent.",
            rate * 100.0,
            total.calls
        )?,
        None => writeln!(out, "The agent reported no usage.")?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn place(context: Context) -> anyhow::Result<CommandPlace> {
    let policy_file = context.policy_file()?;
    Ok(CommandPlace { policy_file, data: context.data, settings: context.config.agent, json: context.json })
}

/// Prints a warning for the user who runs the agent.
fn warn(text: &str) {
    printing::print_error_line(&format!("capture: {}", printing::safe(text)));
}
