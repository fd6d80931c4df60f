//! `capture agent`: agents without a screen, and session files in pi's format.

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
    /// Run an agent without a screen on one prompt; your policy or a person decides its requests.
    Drive(drive::Arguments),
    /// Inspect a session file in pi's format, or change where the session continues.
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
