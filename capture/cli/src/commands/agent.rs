//! `capture agent`: agents without a screen, and the sessions of our own.

mod session;

use std::process::ExitCode;

use super::{Context, drive};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: AgentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AgentCommand {
    /// Start an agent without a screen, give it a prompt, and answer its requests by policy or by people.
    Drive(drive::Arguments),
    /// Look into a session's file, and change where it goes on.
    Session(session::Arguments),
}

/// Runs it; what needs no configuration reads none.
pub(super) fn run(
    json: bool,
    arguments: Arguments,
    context: impl FnOnce() -> anyhow::Result<Context>,
) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        AgentCommand::Drive(arguments) => drive::run(&context()?, arguments),
        AgentCommand::Session(arguments) => session::run(json, &arguments),
    }
}
