//! `capture agent`: our own agent, other agents without their user interface, and session files in pi's format.

mod session;

use std::{io::Write, process::ExitCode};

use agent_command::{CacheArguments, CommandPlace, RpcArguments, RunArguments};

use super::{Context, drive};
use crate::terminal;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: AgentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AgentCommand {
    /// Give our own agent one prompt and print its answer.
    ///
    /// Reads of the workspace are done at once. For everything else you are asked at this terminal; what you do not
    /// answer is not done. Text that is piped in goes before the prompt. Exit code 1: it failed; 3: a limit was reached;
    /// 5: it was refused.
    #[command(after_help = "Examples:
  capture agent run --model anthropic/claude-sonnet-5 Where is the configuration read?
  git diff | capture agent run --continue Review this change")]
    Run(Box<RunArguments>),
    /// Drive our own agent from a program: commands on standard input, answers and events on standard output.
    ///
    /// The lines of JSON are those of pi's RPC mode. What is asked about a call goes to the program as
    /// `extension_ui_request`. The session ends with standard input.
    Rpc(Box<RpcArguments>),
    /// Show what each request of a session read from the provider's cache, what was expected, and why it was less.
    Cache(CacheArguments),
    /// Give an agent one prompt, without its user interface, and print what it writes.
    ///
    /// Your policy decides permission requests. If it leaves a request to you, answer at this terminal or with `capture
    /// approve` and `capture deny`.
    Drive(drive::Arguments),
    /// Inspect a session file in the format of the agent pi, or change where the session continues.
    Session(session::Arguments),
}

/// Runs it; what needs no configuration reads none.
pub(super) fn run(
    json: bool,
    arguments: Arguments,
    context: impl FnOnce() -> anyhow::Result<Context>,
) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        AgentCommand::Run(arguments) => agent_command::run(place(context()?)?, *arguments),
        AgentCommand::Rpc(arguments) => agent_command::rpc(place(context()?)?, *arguments),
        AgentCommand::Cache(arguments) => {
            let table = agent_command::cache(&place(context()?)?, &arguments)?;
            if json {
                super::print_json(&table)?;
            } else {
                write!(terminal::stdout(), "{}", table.to_text())?;
            }
            Ok(ExitCode::SUCCESS)
        }
        AgentCommand::Drive(arguments) => drive::run(&context()?, arguments),
        AgentCommand::Session(arguments) => session::run(json, &arguments),
    }
}

fn place(context: Context) -> anyhow::Result<CommandPlace> {
    let policy_file = context.policy_file()?;
    Ok(CommandPlace { policy_file, data: context.data, settings: context.config.agent, json: context.json })
}
